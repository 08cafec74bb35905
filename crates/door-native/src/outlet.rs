//! The outlet to one native client: encodes what the node pushes on behalf of other clients.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use messaging::{Client, Message, Outgoing, Pushed};
use model::{ErrorCode, Failure, Name};
use net::{Outbox, Sink};
use parking_lot::Mutex;
use platform::Counter;
use routing::Ticket;
use wire::{Bind, Cast, Correlation, Credit, Flags, Goaway, Kind, Payload, SubscriptionEnd};

use super::spans::Spans;
use super::timing::Timing;

/// While a client leaves this many bytes unread, it gets no more items and nothing is read from it.
const UNREAD_SIZE_MAX: usize = 1 << 20;

/// The outlet to one native client.
pub(super) struct NativeOutlet {
    pub(super) outbox: Outbox,
    pub(super) timing: Timing,
    /// The open spans, on a node that exports spans.
    pub(super) spans: Option<Spans>,
    routes: Mutex<Routes>,
    /// Messages are refused while more than this number of bytes is queued.
    queue_size_max: usize,
    /// The node, whose counters count clients that do not read.
    node: node::Node,
    /// The reason why the node closes the connection, once it does.
    dismissal: OnceLock<Farewell>,
}

/// The last error that a client is sent.
#[derive(Clone, Debug)]
pub(super) struct Farewell {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

/// Routes that the node has bound towards the client: their numbers by subscription and method.
///
/// Keys are the addresses of the shared texts, which are held here so that the addresses stay
/// valid. Numbers are reused in order when they are used up: a later BIND replaces the earlier one.
#[derive(Default)]
struct Routes {
    numbers: HashMap<RouteKey, u16>,
    /// The route that was used last: most messages use it again, and then nothing is hashed.
    last: Option<(RouteKey, u16)>,
    held: Vec<(Name, Arc<str>)>,
    next: usize,
}

impl Routes {
    /// Returns the number of a route, and whether the client must be sent a BIND first.
    fn number(&mut self, to: &Name, method: &Arc<str>) -> (u16, bool) {
        let key = key(to, method);
        if let Some((last, number)) = self.last
            && last == key
        {
            return (number, false);
        }
        if let Some(number) = self.numbers.get(&key) {
            self.last = Some((key, *number));
            return (*number, false);
        }
        let index = self.next;
        self.next = (index + 1) % model::limits::ROUTE_COUNT_MAX as usize;
        let number = index as u16 + 1;
        let route = (to.clone(), method.clone());
        self.last = Some((key, number));
        self.numbers.insert(key, number);
        match self.held.get_mut(index) {
            None => self.held.push(route),
            Some(slot) => {
                let (name, method) = std::mem::replace(slot, route);
                self.numbers.remove(&self::key(&name, &method));
            }
        }
        (number, true)
    }

    /// Removes the newest binding, because its BIND was not sent.
    fn forget(&mut self, to: &Name, method: &Arc<str>) {
        self.last = None;
        self.numbers.remove(&key(to, method));
    }
}

/// The addresses of the texts of a subscription and a method.
type RouteKey = (usize, usize);

fn key(to: &Name, method: &Arc<str>) -> RouteKey {
    (to.as_str().as_ptr().addr(), method.as_ptr().addr())
}

impl NativeOutlet {
    pub(super) fn new(sink: Arc<dyn Sink>, queue_size_max: usize, node: node::Node) -> Self {
        Self {
            outbox: Outbox::new(sink),
            timing: Timing::default(),
            spans: node.tracer().cloned().map(Spans::new),
            routes: Mutex::default(),
            queue_size_max,
            node,
            dismissal: OnceLock::new(),
        }
    }

    /// Returns whether the client leaves so much unread that it gets no more items, and that nothing
    /// is read from it.
    pub(super) fn is_unread(&self) -> bool {
        self.outbox.queued_size() > UNREAD_SIZE_MAX
    }

    /// Counts an error that is sent to the client.
    pub(super) fn count_failure(&self, code: ErrorCode) {
        self.node.counters().count_failure(code);
    }

    /// Returns the reason why the node closes the connection, if it does.
    pub(super) fn dismissal(&self) -> Option<&Farewell> {
        self.dismissal.get()
    }

    /// Queues a message for a subscription, and the BIND of its route before it if the route is
    /// new.
    fn push_routed(
        &self,
        to: &Name,
        method: &Arc<str>,
        write: impl FnOnce(u16, &mut Vec<u8>),
    ) -> Pushed {
        let mut routes = self.routes.lock();
        let (route, is_new) = routes.number(to, method);
        let admit = |queued: usize| queued <= self.queue_size_max;
        let pushed = self.outbox.push_if(admit, |out| {
            if is_new {
                Bind {
                    route,
                    cast: Cast::Any,
                    method,
                    name: to.as_str(),
                }
                .encode(out);
            }
            write(route, out);
        });
        match pushed {
            Some(pushed) => convert(pushed),
            None => {
                if is_new {
                    routes.forget(to, method);
                }
                Pushed::Full
            }
        }
    }

    /// Queues an answer. The connection of a client that leaves four queues of answers unread is
    /// closed.
    pub(super) fn push_answer(&self, write: impl FnOnce(&mut Vec<u8>)) -> Pushed {
        let admit = |queued: usize| queued <= self.queue_size_max.saturating_mul(4);
        let write = |out: &mut Vec<u8>| {
            let start = out.len();
            write(out);
            let now_ns = || self.node.ports().clock.now_ns();
            self.timing
                .end(&out[start..], self.node.durations(), now_ns);
            if let Some(spans) = &self.spans {
                spans.end_request(&out[start..]);
            }
        };
        match self.outbox.push_if(admit, write) {
            Some(pushed) => convert(pushed),
            None => {
                self.node.counters().count(Counter::SlowClosed);
                self.outbox.close();
                Pushed::Closed
            }
        }
    }
}

fn convert(pushed: net::Pushed) -> Pushed {
    match pushed {
        net::Pushed::First => Pushed::First,
        net::Pushed::Queued => Pushed::Queued,
        net::Pushed::Closed => Pushed::Closed,
    }
}

/// Converts a ticket or tag to the correlation in a frame.
pub(super) fn correlation(ticket: Ticket) -> Correlation {
    Correlation {
        slot: ticket.slot,
        generation: ticket.generation,
    }
}

/// Converts the correlation in a frame to a ticket or tag.
pub(super) fn ticket(correlation: Correlation) -> Ticket {
    Ticket {
        slot: correlation.slot,
        generation: correlation.generation,
    }
}

fn encode_message(
    kind: Kind,
    flags: Flags,
    route: u16,
    at: Correlation,
    source: Option<&str>,
    message: Message<'_>,
    out: &mut Vec<u8>,
) {
    let Message {
        deadline_ms,
        metadata,
        body,
    } = message;
    match source {
        None => Payload {
            deadline_ms,
            metadata,
            body,
        }
        .encode(kind, flags, route, at, out),
        Some(source) => {
            let metadata = &with_source(Some(source), metadata);
            Payload {
                deadline_ms,
                metadata,
                body,
            }
            .encode(kind, flags, route, at, out);
        }
    }
}

/// Returns the metadata, preceded by the sender's name if there is one.
fn with_source<'a>(source: Option<&str>, metadata: &'a [u8]) -> Cow<'a, [u8]> {
    let Some(source) = source else {
        return Cow::Borrowed(metadata);
    };
    let mut extended = Vec::with_capacity(metadata.len() + source.len() + 16);
    wire::encode_metadata(wire::SOURCE, source.as_bytes(), &mut extended);
    extended.extend_from_slice(metadata);
    Cow::Owned(extended)
}

impl messaging::Inbox for NativeOutlet {
    fn push(&self, outgoing: Outgoing<'_>) -> Pushed {
        match outgoing {
            Outgoing::Request {
                to,
                method,
                ticket,
                stream,
                source,
                message,
            } => {
                let flags = if stream { Flags::STREAM } else { Flags::NONE };
                self.push_routed(to, method, |route, out| {
                    let at = correlation(ticket);
                    encode_message(Kind::REQUEST, flags, route, at, source, message, out);
                })
            }
            Outgoing::Delivery {
                to,
                method,
                ticket,
                source,
                delivery,
                message,
            } => {
                if let Some(spans) = &self.spans {
                    spans.begin_delivery(ticket, to, message.metadata);
                }
                let prefix = wire::Delivery {
                    offset: delivery.offset,
                    delivery: delivery.delivery,
                    written_ms: delivery.written_ms,
                };
                self.push_routed(to, method, |route, out| {
                    let at = correlation(ticket);
                    let metadata = with_source(source, message.metadata);
                    let payload = Payload {
                        deadline_ms: message.deadline_ms,
                        metadata: &metadata,
                        body: message.body,
                    };
                    let prefix = prefix.encode();
                    payload.encode_prefixed(&prefix, Kind::REQUEST, Flags::WRITTEN, route, at, out);
                })
            }
            Outgoing::Send {
                to,
                method,
                source,
                message,
            } => self.push_routed(to, method, |route, out| {
                let at = Correlation::NONE;
                encode_message(Kind::SEND, Flags::NONE, route, at, source, message, out);
            }),
            Outgoing::Sends {
                to,
                method,
                source,
                messages,
            } => self.push_routed(to, method, |route, out| {
                let at = Correlation::NONE;
                for message in messages {
                    encode_message(Kind::SEND, Flags::NONE, route, at, source, *message, out);
                }
            }),
            Outgoing::Reply { tag, more, message } => self.push_answer(|out| {
                let flags = if more { Flags::MORE } else { Flags::NONE };
                encode_message(Kind::REPLY, flags, 0, correlation(tag), None, message, out);
            }),
            Outgoing::Failure { tag, failure } => self.push_answer(|out| {
                wire::encode_failure(&failure, correlation(tag), out);
            }),
            Outgoing::Cancel { ticket } => self.push_answer(|out| {
                wire::encode_cancel(correlation(ticket), out);
            }),
            Outgoing::StreamCredit { ticket, items } => self.push_answer(|out| {
                Credit {
                    messages: items,
                    bytes: 0,
                }
                .encode(correlation(ticket), out);
            }),
            Outgoing::Credit { messages, bytes } => self.push_answer(|out| {
                Credit { messages, bytes }.encode(Correlation::NONE, out);
            }),
            Outgoing::Flow { route, full } => self.push_answer(|out| {
                wire::encode_flow(route, full, out);
            }),
            Outgoing::Ended { name, code } => self.push_answer(|out| {
                SubscriptionEnd {
                    code,
                    name: name.as_str(),
                }
                .encode(out);
            }),
        }
    }

    fn flush(&self) {
        self.outbox.flush();
    }
}

impl Client for NativeOutlet {
    fn goaway(&self, drain_ms: u32, message: &str) {
        let pushed = self.push_answer(|out| {
            let code = ErrorCode::Unavailable;
            Goaway {
                code,
                drain_ms,
                address: "",
                message,
            }
            .encode(out);
        });
        if pushed == Pushed::First {
            self.outbox.flush();
        }
    }

    fn dismiss(&self, failure: Failure<'_>) {
        let farewell = Farewell {
            code: failure.code,
            message: failure.message.to_owned(),
        };
        // The first reason stays.
        let _ = self.dismissal.set(farewell);
        self.outbox.wake();
    }

    fn close(&self) {
        self.outbox.close();
    }

    fn queued_size(&self) -> usize {
        self.outbox.queued_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_keeps_its_number_until_it_is_forgotten() {
        let name = |text: &str| Name::parse(text).unwrap();
        let (one, two) = (name("test/one/a/1"), name("test/two/a/1"));
        let method = Arc::<str>::from("method");
        let mut routes = Routes::default();
        assert_eq!(routes.number(&one, &method), (1, true));
        assert_eq!(routes.number(&two, &method), (2, true));
        for _ in 0..2 {
            assert_eq!(routes.number(&one, &method), (1, false));
            assert_eq!(routes.number(&one, &method), (1, false));
            assert_eq!(routes.number(&two, &method), (2, false));
        }
        routes.forget(&two, &method);
        assert_eq!(routes.number(&two, &method), (3, true));
        assert_eq!(routes.number(&one, &method), (1, false));
    }
}
