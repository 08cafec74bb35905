//! Dispatch of a client's frames to calls on its turn.

use messaging::{Key, Message, Turn};
use model::limits::METHOD_LENGTH_MAX;
use model::{ErrorCode, Failure};
use routing::Ticket;
use wire::{Append, Bind, Correlation, Credit, Flags, Header, Kind, Payload, Read, Settle};
use wire::{RUN_LENGTH_MAX, Run, Subscribe, Takes};

use super::errors::ErrorAnswer;
use super::fatal::{Fatal, protocol};
use super::outlet::{NativeOutlet, ticket};
use super::requests::Requests;

/// Passes one frame to the node.
pub(super) fn dispatch(
    turn: &mut Turn<'_>,
    requests: &mut Requests,
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
    outlet.timing.begin(kind, correlation, turn.now_ns());
    match kind {
        Kind::REQUEST => {
            let stream = flags.contains(Flags::STREAM);
            let message = decode_message(flags, payload)?;
            let tag = claim(requests, correlation)?;
            trace(requests, outlet, header, message);
            requests.request(turn, route, tag, stream, message);
        }
        Kind::REPLY => {
            let more = flags.contains(Flags::MORE);
            if let Some(spans) = outlet.spans.as_ref().filter(|_| !more) {
                spans.end_delivery(ticket(correlation), false);
            }
            turn.reply(ticket(correlation), more, decode_message(flags, payload)?);
        }
        Kind::ERROR => {
            let failure = wire::decode_failure(payload)?;
            if let Some(spans) = &outlet.spans {
                spans.end_delivery(ticket(correlation), true);
            }
            turn.reply_failure(ticket(correlation), failure.after_sending());
        }
        Kind::SEND => {
            let report = match flags.contains(Flags::REPORT) {
                true => Some(claim(requests, correlation)?),
                false => None,
            };
            requests.send(turn, route, report, decode_message(flags, payload)?);
        }
        Kind::WRITE => {
            let mut message = decode_message(flags, payload)?;
            let key = match flags.contains(Flags::KEYED) {
                true => Some(split_key(&mut message)?),
                false => None,
            };
            let tag = claim(requests, correlation)?;
            trace(requests, outlet, header, message);
            match flags.contains(Flags::MEMORY) {
                true => requests.write_to_memory(turn, route, tag, message),
                false => requests.write(turn, route, tag, key, message),
            }
        }
        Kind::APPEND => {
            let append = Append::decode(decode_message(flags, payload)?.body)?;
            let tag = claim(requests, correlation)?;
            requests.append(turn, route, tag, &append)?;
        }
        Kind::READ => {
            let read = Read::decode(decode_message(flags, payload)?.body)?;
            let tag = claim(requests, correlation)?;
            requests.read(turn, route, tag, read);
        }
        Kind::FOLLOW => {
            let read = Read::decode(decode_message(flags, payload)?.body)?;
            let tag = claim(requests, correlation)?;
            requests.follow(route, tag, read);
        }
        Kind::TAKE => {
            let takes = Takes::decode(decode_message(flags, payload)?.body)?;
            let tag = claim(requests, correlation)?;
            if !requests.refuse_quota(tag) {
                requests.take(turn, tag, &takes);
            }
        }
        Kind::SETTLE => {
            let settle = Settle::decode(decode_message(flags, payload)?.body)?;
            let tag = claim(requests, correlation)?;
            if !requests.refuse_quota(tag) {
                requests.settle_hold(tag, &settle);
            }
        }
        Kind::PEEK => {
            let subject = wire::decode_name(decode_message(flags, payload)?.body)?;
            let tag = claim(requests, correlation)?;
            if !requests.refuse_quota(tag) {
                requests.peek(tag, subject);
            }
        }
        Kind::BIND => return bind(turn, requests, route, payload),
        Kind::SUBSCRIBE => {
            let subscribe = Subscribe::decode(payload)?;
            let Subscribe { options, name, .. } = subscribe;
            let with_source = options & wire::SUBSCRIBE_WITH_SOURCE != 0;
            let tag = claim(requests, correlation)?;
            let description = subscribe.description.as_ref();
            requests.subscribe(turn, tag, name, with_source, description);
        }
        Kind::UNSUBSCRIBE => {
            let tag = claim(requests, correlation)?;
            requests.unsubscribe(turn, tag, wire::decode_name(payload)?);
        }
        Kind::CANCEL => requests.cancel(turn, ticket(correlation)),
        Kind::CREDIT => {
            let Credit { messages, bytes } = Credit::decode(payload)?;
            match correlation {
                Correlation::NONE => turn.credit(messages, bytes),
                call => requests.credit(turn, ticket(call), messages),
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

/// Passes one-way messages on one route to the node.
pub(super) fn dispatch_sends(
    turn: &mut Turn<'_>,
    requests: &mut Requests,
    outlet: &NativeOutlet,
    run: &Run<'_>,
) -> Result<(), Fatal> {
    let Header { flags, route, .. } = run.header;
    if flags.contains(Flags::REPORT) {
        for payload in run.payloads() {
            dispatch(turn, requests, outlet, run.header, payload)?;
        }
        return Ok(());
    }
    let mut messages = [Message::default(); RUN_LENGTH_MAX];
    let mut count = 0;
    let mut decoded = Ok(());
    for payload in run.payloads() {
        match decode_message(flags, payload) {
            Ok(message) => messages[count] = message,
            Err(fatal) => {
                // Those before it are sent.
                decoded = Err(fatal);
                break;
            }
        }
        count += 1;
    }
    requests.send_run(turn, route, &messages[..count]);
    decoded
}

/// Begins the span of a request, on a node that exports spans.
fn trace(requests: &Requests, outlet: &NativeOutlet, header: Header, message: Message<'_>) {
    if let Some(spans) = &outlet.spans {
        let tag = header.correlation.as_u64();
        spans.begin_request(header.kind, tag, message.metadata);
        if let Some(name) = requests.name(header.route) {
            spans.set_name(tag, name);
        }
    }
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
    Ok(Key {
        id: Some(id),
        ttl_ms,
    })
}

fn bind(
    turn: &mut Turn<'_>,
    requests: &mut Requests,
    route: u16,
    payload: &[u8],
) -> Result<(), Fatal> {
    let bind = Bind::decode(route, payload)?;
    if bind.method.len() > METHOD_LENGTH_MAX {
        return Err(protocol("a method name is too long"));
    }
    requests
        .bind(turn, &bind)
        .then_some(())
        .ok_or_else(|| skipped("route", u32::from(route)))
}

/// Claims the correlation slot of a request, and returns its tag.
fn claim(requests: &mut Requests, correlation: Correlation) -> Result<Ticket, Fatal> {
    let tag = ticket(correlation);
    requests
        .claim(tag)
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
    requests: &mut Requests,
    header: Header,
    limit: u32,
    fatal: bool,
) -> Result<(), Fatal> {
    let size = header.length;
    let message = format!("the payload has {size} bytes (limit {limit})");
    turn.count(platform::Counter::Oversize);
    if fatal {
        return Err(Fatal {
            code: ErrorCode::TooLarge,
            message,
        });
    }
    match header.kind {
        Kind::REPLY | Kind::ERROR => {
            let failure = Failure::new(ErrorCode::TooLarge, &message).after_sending();
            turn.reply_failure(ticket(header.correlation), failure);
        }
        Kind::REQUEST
        | Kind::WRITE
        | Kind::APPEND
        | Kind::READ
        | Kind::FOLLOW
        | Kind::TAKE
        | Kind::SETTLE
        | Kind::PEEK => {
            let tag = claim(requests, header.correlation)?;
            requests.refuse(tag, ErrorAnswer::new(ErrorCode::TooLarge, message));
        }
        Kind::SEND if header.flags.contains(Flags::REPORT) => {
            let tag = claim(requests, header.correlation)?;
            requests.refuse(tag, ErrorAnswer::new(ErrorCode::TooLarge, message));
        }
        _ => requests.refuse_connection(&ErrorAnswer::new(ErrorCode::TooLarge, message)),
    }
    Ok(())
}
