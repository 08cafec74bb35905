//! The link of one client: handles its messages, independent of the transport.
//!
//! ```text
//! ## Connecting => Linked: its first message is a link negotiation, in time
//! ## Connecting, Linked => Ending: the client was told why, and is cut off if it does not read that
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use messaging::Connection;
use platform::{Counter, Span, SpanKind};
use slim::{Accepted, Ack, Act, Header, Link, Message, Routed};
use tokio::time::Sleep;

use super::admission::Entered;
use super::exchange::Fanout;
use super::listener::{Door, Options};
use super::outlet::SlimOutlet;
use super::pressure::Pressure;
use super::refusals::LEGACY;
use super::round::Round;
use super::scope::Scope;
use super::status::{Code, Status};

/// Outcomes of messages, in spans.
const WRONG_MAC: &str = "wrong header MAC";
const NO_HOP_LEFT: &str = "no hop left";

/// The id of this node in link negotiations.
pub(super) const NODE_ID: &str = "telpher";

/// The link of one client, for gRPC and WebSocket.
pub(super) struct ClientLink {
    door: Door,
    /// Its connection to the node; the number of the connection is its key in the table.
    connection: Connection,
    /// The client's name in rules.
    name: Arc<str>,
    /// The names that its token allows.
    scope: Scope,
    /// The `user-agent` of its request.
    software: String,
    outlet: Arc<SlimOutlet>,
    /// Expires with the client's credentials.
    expiry: Option<Pin<Box<Sleep>>>,
    stage: Stage,
    pressure: Pressure,
    /// Expires when a client that exceeded a limit may be read from again.
    mute: Option<Pin<Box<Sleep>>>,
    /// True once a wrong message of this client was logged.
    has_warned: bool,
}

/// The stage of the link, with the time limit of the stage.
enum Stage {
    Connecting(Pin<Box<Sleep>>),
    Linked,
    Ending(Pin<Box<Sleep>>),
}

impl ClientLink {
    pub(super) fn new(door: &Door, entered: Entered) -> Self {
        let Entered {
            connection,
            outlet,
            name,
            scope,
            software,
            time_left,
        } = entered;
        let alarm = |left: Duration| Box::pin(tokio::time::sleep(left));
        let stage = Stage::Connecting(alarm(door.options.negotiation_timeout));
        Self {
            door: door.clone(),
            connection,
            name,
            scope,
            software,
            outlet,
            expiry: time_left.map(alarm),
            stage,
            pressure: Pressure::default(),
            mute: None,
            has_warned: false,
        }
    }

    /// Returns the client's send queue.
    pub(super) fn outlet(&self) -> &SlimOutlet {
        &self.outlet
    }

    /// Returns whether the link is negotiated.
    pub(super) fn is_linked(&self) -> bool {
        self.outlet.link().is_some()
    }

    /// Ends the link when the time for the negotiation is over or the credentials have expired.
    /// Returns ready when the time to read the last data is over too.
    pub(super) fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_expiry(cx);
        loop {
            let is_ending = self.outlet.ending().is_some();
            match &mut self.stage {
                Stage::Connecting(_) | Stage::Linked if is_ending => {
                    let time = self.door.options.negotiation_timeout;
                    self.stage = Stage::Ending(Box::pin(tokio::time::sleep(time)));
                }
                Stage::Connecting(_) if self.outlet.link().is_some() => self.stage = Stage::Linked,
                Stage::Connecting(alarm) => {
                    ready!(alarm.as_mut().poll(cx));
                    let message = "no link negotiation arrived in time";
                    self.outlet
                        .end(Status::new(Code::DeadlineExceeded, message));
                    self.outlet.give_up_negotiation();
                }
                Stage::Linked => return Poll::Pending,
                Stage::Ending(alarm) => return alarm.as_mut().poll(cx),
            }
        }
    }

    /// Ends the link when its credentials have expired; the client may reconnect with newer ones.
    fn poll_expiry(&mut self, cx: &mut Context<'_>) {
        if let Some(expiry) = &mut self.expiry
            && expiry.as_mut().poll(cx).is_ready()
        {
            self.expiry = None;
            let id = self.connection.id().0;
            tracing::info!(connection = id, "a SLIM client's JWT has expired");
            self.outlet
                .end(Status::new(Code::Unauthenticated, "the JWT has expired"));
        }
    }

    /// Returns whether reading has to wait for receivers or for a limit.
    pub(super) fn is_held(&mut self, cx: &mut Context<'_>) -> bool {
        let is_over = |mute: &mut Pin<Box<Sleep>>| mute.as_mut().poll(cx).is_ready();
        if self.mute.as_mut().is_some_and(is_over) {
            self.mute = None;
        }
        self.mute.is_some() || self.pressure.holds(cx)
    }

    /// Charges a message; returns false if it is refused. SLIM has no answer to a message: a
    /// refused one is dropped, and its session ends as if nobody had received it. A message that
    /// exceeds the limit is forwarded, and nothing more is read until the limit has refilled.
    fn charge(&mut self) -> bool {
        match self.connection.charge_sends(1) {
            Ok(receipt) => {
                if !receipt.pause.is_zero() {
                    self.mute = Some(Box::pin(tokio::time::sleep(receipt.pause)));
                }
                true
            }
            Err(throttled) => {
                let counters = self.door.node.counters();
                counters.count_failure(throttled.code());
                self.warn(format_args!(
                    "a message that was refused: {}",
                    throttled.message()
                ));
                false
            }
        }
    }

    /// Handles a message of the client; an error ends the link.
    pub(super) fn take(&mut self, bytes: Bytes, round: &mut Round) -> Result<(), Status> {
        let outlet = self.outlet.clone();
        let Some(link) = outlet.link() else {
            return self.negotiate(&bytes);
        };
        match Message::scan(&bytes) {
            Ok(Message::Publish(routed)) => {
                let span = self.begin_span("slim publish", &routed.header);
                let published = self.publish(link, &routed, &bytes, round);
                if let Some(mut span) = span {
                    match published {
                        Ok(fanout) => fanout.describe(&mut span),
                        Err(reason) => span.fail(reason),
                    }
                }
            }
            Ok(Message::Subscribe {
                header,
                subscription_id,
            }) => {
                let span = self.begin_span("slim subscribe", &header);
                let done = match self.verify(link, &header, round) {
                    true => self.subscribe(&header, subscription_id),
                    false => Err(WRONG_MAC.to_owned()),
                };
                end_span(span, done);
            }
            Ok(Message::Unsubscribe {
                header,
                subscription_id,
            }) => {
                let span = self.begin_span("slim unsubscribe", &header);
                let done = match self.verify(link, &header, round) {
                    true => self.unsubscribe(&header, subscription_id),
                    false => Err(WRONG_MAC.to_owned()),
                };
                end_span(span, done);
            }
            // A link is negotiated once, and only nodes expect acknowledgements.
            Ok(Message::Link(_) | Message::Ack(_)) => {}
            Err(malformed) => {
                self.connection.count(Counter::SlimMalformed);
                self.warn(format_args!("a malformed message: {malformed}"));
            }
        }
        Ok(())
    }

    /// Forwards a message; the error says why it was dropped.
    fn publish(
        &mut self,
        link: &Link,
        routed: &Routed<'_>,
        bytes: &Bytes,
        round: &mut Round,
    ) -> Result<Fanout, &'static str> {
        if !self.verify(link, &routed.header, round) {
            return Err(WRONG_MAC);
        }
        if !self.may(Act::Send, &routed.header) {
            self.warn(format_args!(
                "a message that the rules forbid, or from a name that its token does not allow"
            ));
            return Err("forbidden by the rules or the token");
        }
        if !self.charge() {
            return Err("refused by a limit");
        }
        if !round.forward.prepare(routed) {
            self.connection.count(Counter::SlimExpired);
            return Err(NO_HOP_LEFT);
        }
        let tail = bytes.slice(routed.tail_start()..);
        let (sender, pressing) = (self.connection.id().0, &mut self.pressure.by);
        let counters = self.door.node.counters();
        let exchange = &self.door.exchange;
        Ok(exchange.publish(routed, &tail, sender, round, pressing, counters))
    }

    /// Begins the span of a message, on a node that exports spans and if it is traced.
    fn begin_span(&self, name: &'static str, header: &Header<'_>) -> Option<Span> {
        let tracer = self.door.node.tracer()?;
        let mut span = tracer.begin(None, SpanKind::Server, || name.to_owned())?;
        span.set_text("messaging.system", "slim");
        span.set_text("telpher.name", header.destination.to_string());
        Some(span)
    }

    /// Counts a message that was too large and was skipped.
    pub(super) fn skip(&mut self, size: u64) {
        self.connection.count(Counter::Oversize);
        let size_max = self.door.options.message_size_max;
        self.warn(format_args!(
            "a message of {size} bytes (limit {size_max}, slim.message_size_max)"
        ));
    }

    /// Counts a protocol violation, and ends the link.
    pub(super) fn violation(&self, status: Status) {
        self.connection.count(Counter::ProtocolErrors);
        let refusals = &self.door.refusals;
        refusals.log(self.outlet.remote(), &status.message);
        self.outlet.end(status);
    }

    fn negotiate(&mut self, bytes: &Bytes) -> Result<(), Status> {
        let refuse = |reason: &dyn std::fmt::Display| {
            self.connection.count(Counter::ProtocolErrors);
            self.door.refusals.log(self.outlet.remote(), reason);
            Status::new(Code::InvalidArgument, reason.to_string())
        };
        if slim::is_legacy(bytes) {
            let refusals = &self.door.refusals;
            refusals.expect(self.outlet.remote(), &self.software);
            let message = refuse(&LEGACY).message;
            return Err(Status::new(Code::FailedPrecondition, message));
        }
        let asked = match Message::scan(bytes) {
            Ok(Message::Link(Some(asked))) => asked,
            Ok(_) => return Err(refuse(&"the first message is not a link negotiation")),
            Err(malformed) => return Err(refuse(&malformed)),
        };
        let accepted = Accepted::new(&asked, NODE_ID, &self.door.exchange.random);
        let Accepted { link, reply } = accepted.map_err(|refused| refuse(&refused))?;
        self.outlet.set_link(link);
        // The queue is written in this round.
        let _ = self.outlet.answer(&reply);
        Ok(())
    }

    fn verify(&mut self, link: &Link, header: &Header<'_>, round: &mut Round) -> bool {
        let is_right = link.verify(header, &mut round.scratch);
        if !is_right {
            self.connection.count(Counter::SlimBadMacs);
            self.warn(format_args!("a message with a wrong header MAC"));
        }
        is_right
    }

    /// Subscribes the client; the error says why it is not.
    fn subscribe(&self, header: &Header<'_>, id: u64) -> Result<(), String> {
        if !self.has_hop_left(header) {
            return Err(NO_HOP_LEFT.to_owned());
        }
        if !self.may(Act::Subscribe, header) {
            let refused = format!(
                "the rules or the token of this client do not allow it to subscribe to {}",
                header.destination
            );
            return self.acknowledge(id, Err(refused));
        }
        let Options {
            subscriptions_max, ..
        } = *self.door.options;
        let (name, connection) = (&header.destination, self.connection.id().0);
        let exchange = &self.door.exchange;
        let done = exchange.subscribe(name, connection, id, &self.outlet, subscriptions_max);
        self.acknowledge(id, done.map_err(|error| error.to_string()))
    }

    /// Ends a subscription; the error says why it does not.
    fn unsubscribe(&self, header: &Header<'_>, id: u64) -> Result<(), String> {
        if !self.has_hop_left(header) {
            return Err(NO_HOP_LEFT.to_owned());
        }
        let (key, connection) = (header.destination.encoded.key(), self.connection.id().0);
        let done = self.door.exchange.unsubscribe(key, connection, id);
        self.acknowledge(id, done.map_err(|error| error.to_string()))
    }

    fn may(&self, act: Act, header: &Header<'_>) -> bool {
        let agent = &header.destination.encoded.prefix;
        let own = match act {
            Act::Send => &header.source.encoded.prefix,
            Act::Subscribe => agent,
        };
        let is_own = self.scope.contains(own);
        let may = is_own && self.door.options.rules.allow(act, agent, &self.name);
        if !may {
            self.connection.count(Counter::SlimForbidden);
        }
        may
    }

    fn has_hop_left(&self, header: &Header<'_>) -> bool {
        let is_left = header.ttl > 1;
        if !is_left {
            self.connection.count(Counter::SlimExpired);
        }
        is_left
    }

    /// Answers a subscription, except a replayed one, for which no client waits. Returns its outcome.
    fn acknowledge(&self, subscription_id: u64, done: Result<(), String>) -> Result<(), String> {
        if subscription_id == 0 {
            return done;
        }
        let error = done.as_ref().err().map(String::as_str);
        let ack = Ack {
            subscription_id,
            error,
        };
        // The queue is written in this round.
        let _ = self.outlet.answer(&ack.encode());
        done
    }

    /// Logs the client's first error.
    fn warn(&mut self, what: std::fmt::Arguments<'_>) {
        if !std::mem::replace(&mut self.has_warned, true) {
            let id = self.connection.id().0;
            tracing::warn!(connection = id, "a SLIM client sent {what}");
        }
    }
}

/// Ends the span of a subscription.
fn end_span(span: Option<Span>, done: Result<(), String>) {
    if let Some(mut span) = span
        && let Err(reason) = done
    {
        span.fail(reason);
    }
}

impl Drop for ClientLink {
    fn drop(&mut self) {
        self.door.exchange.remove(self.connection.id().0);
    }
}
