//! Dispatch of a client's frames to calls on its turn.

use model::ErrorCode;
use model::limits::METHOD_LENGTH_MAX;
use node::{Cast, Durability, Failure, Key, Message, Range, Ticket, Turn};
use wire::{
    Append, Bind, Correlation, Credit, Flags, Header, Kind, Malformed, Payload, Read, Settle,
    Subscribe, Takes,
};

use super::conversation;
use super::outlet::{NativeOutlet, ticket};
use super::quota::Quota;
use super::topic::TopicsOf;

/// A protocol violation: the client gets this error, and the connection ends.
pub(super) struct Fatal {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

impl From<Malformed> for Fatal {
    fn from(malformed: Malformed) -> Self {
        protocol(malformed.to_string())
    }
}

fn protocol(message: impl Into<String>) -> Fatal {
    Fatal {
        code: ErrorCode::Protocol,
        message: message.into(),
    }
}

/// Passes one frame to the node.
pub(super) fn dispatch(
    turn: &mut Turn<'_>,
    quota: &mut Quota,
    topics: &mut TopicsOf,
    outlet: &NativeOutlet,
    header: Header,
    payload: &[u8],
) -> Result<(), Fatal> {
    let Header {
        kind,
        flags,
        route,
        correlation,
        ..
    } = header;
    match kind {
        Kind::REQUEST => {
            let stream = flags.contains(Flags::STREAM);
            let message = decode_message(flags, payload)?;
            let tag = claim(turn, correlation)?;
            turn.request(route, tag, stream, message);
        }
        Kind::REPLY => {
            let more = flags.contains(Flags::MORE);
            turn.reply(ticket(correlation), more, decode_message(flags, payload)?);
        }
        Kind::ERROR => {
            let wire::Failure {
                code,
                sent,
                retry_after_ms,
                message,
                details,
            } = wire::Failure::decode(payload)?;
            let failure = Failure {
                code,
                sent,
                retry_after_ms,
                message,
                details,
            };
            turn.reply_failure(ticket(correlation), failure.after_sending());
        }
        Kind::SEND => {
            let report = match flags.contains(Flags::REPORT) {
                true => Some(claim(turn, correlation)?),
                false => None,
            };
            turn.send(route, report, decode_message(flags, payload)?);
        }
        Kind::WRITE => {
            let mut message = decode_message(flags, payload)?;
            let key = match flags.contains(Flags::KEYED) {
                true => Some(split_key(&mut message)?),
                false => None,
            };
            let durability = match flags.contains(Flags::MEMORY) {
                true => Durability::Memory,
                false => Durability::Disk(key),
            };
            let tag = claim(turn, correlation)?;
            turn.write(route, tag, durability, message);
        }
        Kind::APPEND => {
            let append = Append::decode(decode_message(flags, payload)?.body)?;
            let tag = claim(turn, correlation)?;
            if turn.topic(route).is_some() {
                topics.append(turn, route, tag, &append)?;
            } else if turn.is_conversation(route) {
                conversation::append(turn, route, tag, &append)?;
            } else {
                turn.append(route, tag, append.expected, append.records());
            }
        }
        Kind::READ => {
            let read = Read::decode(decode_message(flags, payload)?.body)?;
            let tag = claim(turn, correlation)?;
            match turn.topic(route) {
                Some(_) => topics.read(turn, outlet, route, tag, read),
                None => turn.read(route, tag, range(read)),
            }
        }
        Kind::FOLLOW => {
            let read = Read::decode(decode_message(flags, payload)?.body)?;
            let tag = claim(turn, correlation)?;
            match turn.topic(route) {
                Some(_) => topics.follow(turn, route, tag, read),
                None => turn.follow(route, tag, range(read)),
            }
        }
        Kind::TAKE => {
            let takes = Takes::decode(decode_message(flags, payload)?.body)?;
            let tag = claim(turn, correlation)?;
            quota.take(turn, outlet, tag, &takes);
        }
        Kind::SETTLE => {
            let settle = Settle::decode(decode_message(flags, payload)?.body)?;
            let tag = claim(turn, correlation)?;
            quota.settle(turn, outlet, tag, &settle);
        }
        Kind::PEEK => {
            let subject = wire::decode_name(decode_message(flags, payload)?.body)?;
            let tag = claim(turn, correlation)?;
            quota.peek(turn, outlet, tag, subject);
        }
        Kind::BIND => return bind(turn, route, payload),
        Kind::SUBSCRIBE => {
            let Subscribe { options, name } = Subscribe::decode(payload)?;
            let with_source = options & wire::SUBSCRIBE_WITH_SOURCE != 0;
            let tag = claim(turn, correlation)?;
            turn.subscribe(tag, name, with_source);
        }
        Kind::UNSUBSCRIBE => {
            let tag = claim(turn, correlation)?;
            turn.unsubscribe(tag, wire::decode_name(payload)?);
        }
        Kind::CANCEL => {
            let tag = ticket(correlation);
            if !quota.cancel(turn, tag) && !topics.cancel(turn, tag) {
                turn.cancel(tag);
            }
        }
        Kind::CREDIT => {
            let Credit { messages, bytes } = Credit::decode(payload)?;
            match correlation {
                Correlation::NONE => turn.credit(messages, bytes),
                call if topics.credit(ticket(call), messages) => {}
                call => turn.stream_credit(ticket(call), messages),
            }
        }
        Kind::PING => {
            outlet
                .outbox
                .push(|out| wire::encode_pong(correlation, out));
            outlet.outbox.flush();
        }
        // A client leaves by closing the connection; a PONG only shows that it is alive.
        Kind::PONG | Kind::GOAWAY => {}
        kind if kind.is_skippable() => {}
        kind => {
            return Err(protocol(format!(
                "a client may not send frames of kind {kind:?}"
            )));
        }
    }
    Ok(())
}

fn decode_message(flags: Flags, payload: &[u8]) -> Result<Message<'_>, Fatal> {
    let Payload {
        deadline_ms,
        metadata,
        body,
    } = Payload::decode(flags, payload)?;
    Ok(Message {
        deadline_ms,
        metadata,
        body,
    })
}

/// Splits the key from the front of the body.
fn split_key(message: &mut Message<'_>) -> Result<Key, Fatal> {
    let (wire::Key { id, ttl_ms }, body) = wire::Key::split(message.body)?;
    message.body = body;
    Ok(Key { id, ttl_ms })
}

fn range(read: Read) -> Range {
    let Read {
        from,
        records_max,
        bytes_max,
    } = read;
    Range {
        from,
        records_max,
        bytes_max,
    }
}

fn bind(turn: &mut Turn<'_>, route: u16, payload: &[u8]) -> Result<(), Fatal> {
    let bind = Bind::decode(route, payload)?;
    if bind.method.len() > METHOD_LENGTH_MAX {
        return Err(protocol("a method name is too long"));
    }
    let dense = match bind.cast {
        wire::Cast::Any => turn.bind(route, bind.name, Cast::Any, bind.method),
        wire::Cast::All => turn.bind(route, bind.name, Cast::All, bind.method),
        wire::Cast::Stream => turn.bind_stream(route, bind.name),
        wire::Cast::Conversation => turn.bind_conversation(route, bind.name),
        wire::Cast::Topic => turn.bind_topic(route, bind.name),
    };
    dense
        .then_some(())
        .ok_or_else(|| skipped("route", u32::from(route)))
}

/// Claims the correlation slot of a request, and returns its tag.
fn claim(turn: &mut Turn<'_>, correlation: Correlation) -> Result<Ticket, Fatal> {
    let tag = ticket(correlation);
    turn.claim(tag)
        .then_some(tag)
        .ok_or_else(|| skipped("correlation slot", tag.slot))
}

fn skipped(what: &str, number: u32) -> Fatal {
    protocol(format!(
        "{what} {number} skips unused numbers: use the lowest unused one"
    ))
}

/// Answers a frame above the size limit.
pub(super) fn refuse_oversize(
    turn: &mut Turn<'_>,
    header: Header,
    limit: u32,
    fatal: bool,
) -> Result<(), Fatal> {
    let size = header.length;
    let message = format!("the payload has {size} bytes (limit {limit})");
    turn.count(node::Counter::Oversize);
    if fatal {
        return Err(Fatal {
            code: ErrorCode::TooLarge,
            message,
        });
    }
    let failure = Failure::new(ErrorCode::TooLarge, &message);
    match header.kind {
        Kind::REPLY | Kind::ERROR => {
            turn.reply_failure(ticket(header.correlation), failure.after_sending());
        }
        Kind::REQUEST
        | Kind::WRITE
        | Kind::APPEND
        | Kind::READ
        | Kind::FOLLOW
        | Kind::TAKE
        | Kind::SETTLE
        | Kind::PEEK => {
            let tag = claim(turn, header.correlation)?;
            turn.refuse(tag, failure);
        }
        Kind::SEND if header.flags.contains(Flags::REPORT) => {
            let tag = claim(turn, header.correlation)?;
            turn.refuse(tag, failure);
        }
        _ => turn.fail_connection(failure),
    }
    Ok(())
}
