//! One stream of a client: its link, what it sends, what it is sent.
//!
//! ```text
//! ## Connecting => Linked: its first message is a link negotiation, within the time it has
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use node::{Connection, Counter, Outlet as _};
use slim::{Accepted, Ack, Act, Header, Inbox, Item, Link, Message};
use tokio::time::{Instant, Sleep};

use super::exchange::Round;
use super::outlet::{Put, SlimOutlet};
use super::status::{Code, Status};
use super::{Door, Options};

/// How this node calls itself.
const NODE_ID: &str = "telpher";

/// Pieces read before other clients of the thread get their turn.
const PIECES_PER_ROUND: usize = 16;

/// A receiver that takes nothing for so long is not waited for.
const STALL: Duration = Duration::from_millis(100);

/// What only makes sense while the stream is there.
pub(super) struct Stream {
    door: Door,
    /// Counts as a connection of the node, under this number in the table.
    connection: Connection,
    /// Who the client is, as rules know it.
    name: Arc<str>,
    receive: RecvStream,
    send: SendStream<Bytes>,
    inbox: Inbox,
    outlet: Arc<SlimOutlet>,
    /// The client sends no more.
    is_over: bool,
    opened: Instant,
    ending_since: Option<Instant>,
    is_cut_off: bool,
    pressure: Pressure,
    /// Whether something that it should not have sent was told of.
    has_warned: bool,
}

/// Receivers that have not caught up with what this client sends.
#[derive(Default)]
struct Pressure {
    by: Vec<Arc<SlimOutlet>>,
    /// What each had taken when it was looked at last.
    taken: Vec<u64>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    pub(super) fn new(
        door: &Door,
        connection: Connection,
        name: Arc<str>,
        outlet: Arc<SlimOutlet>,
        receive: RecvStream,
        send: SendStream<Bytes>,
    ) -> Self {
        Self {
            inbox: Inbox::new(door.options.message_size_max),
            door: door.clone(),
            connection,
            name,
            receive,
            send,
            outlet,
            is_over: false,
            opened: Instant::now(),
            ending_since: None,
            is_cut_off: false,
            pressure: Pressure::default(),
            has_warned: false,
        }
    }

    /// Whether it has a link.
    pub(super) fn is_linked(&self) -> bool {
        self.outlet.link().is_some()
    }

    /// Ends it when it has had its time to negotiate, and cuts it off when it has had its time to
    /// read what it was sent before the end.
    pub(super) fn check_time(&mut self, now: Instant) {
        let time = self.door.options.negotiation_timeout;
        if self.outlet.ending().is_some() {
            let since = *self.ending_since.get_or_insert(now);
            self.is_cut_off = now - since >= time;
        } else if !self.is_linked() && now - self.opened >= time {
            let message = "no link negotiation arrived in time";
            self.outlet
                .end(Status::new(Code::DeadlineExceeded, message));
        }
    }

    /// Reads and writes what there is. Ready when the stream has ended; `progress` is set when
    /// something went in or out.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        round: &mut Round,
        progress: &mut bool,
    ) -> Poll<()> {
        self.outlet.register(cx);
        if self.is_cut_off {
            self.send.send_reset(Reason::CANCEL);
            return Poll::Ready(());
        }
        if self.outlet.ending().is_none() {
            self.read(cx, round, progress);
        }
        self.write(cx, progress)
    }

    fn read(&mut self, cx: &mut Context<'_>, round: &mut Round, progress: &mut bool) {
        for _ in 0..PIECES_PER_ROUND {
            if self.is_over || self.pressure.holds(cx) {
                return;
            }
            match self.receive.poll_data(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(piece))) => {
                    *progress = true;
                    // What was given out is given back: a stream that has ended needs no window.
                    let _ = self.receive.flow_control().release_capacity(piece.len());
                    if let Err(status) = self.take_in(piece, round) {
                        self.outlet.end(status);
                        return;
                    }
                }
                Poll::Ready(Some(Err(_)) | None) => {
                    self.is_over = true;
                    self.outlet.end(Status::new(Code::Ok, ""));
                }
            }
        }
        cx.waker().wake_by_ref();
    }

    fn take_in(&mut self, piece: Bytes, round: &mut Round) -> Result<(), Status> {
        self.inbox.feed(piece);
        loop {
            let item = self.inbox.pull();
            match item.map_err(|error| Status::new(Code::Unimplemented, error.to_string()))? {
                None => return Ok(()),
                Some(Item::Message(message)) => self.take(message, round)?,
                Some(Item::Oversize(size)) => {
                    self.connection.count(Counter::Oversize);
                    let size_max = self.door.options.message_size_max;
                    self.warn(format_args!(
                        "a message of {size} bytes, {size_max} are allowed"
                    ));
                }
            }
        }
    }

    fn take(&mut self, bytes: Bytes, round: &mut Round) -> Result<(), Status> {
        let outlet = self.outlet.clone();
        let Some(link) = outlet.link() else {
            return self.negotiate(&bytes, round);
        };
        match Message::scan(&bytes) {
            Ok(Message::Publish(routed)) => {
                if !self.verify(link, &routed.header, round) {
                    return Ok(());
                }
                if !self.may(Act::Send, &routed.header) {
                    self.warn(format_args!("to a name that rules keep it from"));
                    return Ok(());
                }
                if !round.forward.prepare(&routed) {
                    self.connection.count(Counter::SlimExpired);
                    return Ok(());
                }
                let tail = bytes.slice(routed.tail_start()..);
                let (sender, pressing) = (self.connection.id().0, &mut self.pressure.by);
                let counters = self.door.node.counters();
                let exchange = &self.door.exchange;
                exchange.publish(&routed, &tail, sender, round, pressing, counters);
            }
            Ok(Message::Subscribe {
                header,
                subscription_id,
            }) => {
                if self.verify(link, &header, round) {
                    self.subscribe(&header, subscription_id);
                }
            }
            Ok(Message::Unsubscribe {
                header,
                subscription_id,
            }) => {
                if self.verify(link, &header, round) {
                    self.unsubscribe(&header, subscription_id);
                }
            }
            // A link is negotiated once, and only nodes are owed answers.
            Ok(Message::Link(_) | Message::Ack(_)) => {}
            Err(malformed) => {
                self.connection.count(Counter::SlimMalformed);
                self.warn(format_args!("a message that is none: {malformed}"));
            }
        }
        Ok(())
    }

    fn negotiate(&mut self, bytes: &Bytes, round: &mut Round) -> Result<(), Status> {
        let refuse = |reason: &dyn std::fmt::Display| {
            self.connection.count(Counter::ProtocolErrors);
            let id = self.connection.id().0;
            tracing::info!(connection = id, %reason, "SLIM link refused");
            Status::new(Code::InvalidArgument, reason.to_string())
        };
        let asked = match Message::scan(bytes) {
            Ok(Message::Link(Some(asked))) => asked,
            Ok(_) => return Err(refuse(&"the first message is no link negotiation")),
            Err(malformed) => return Err(refuse(&malformed)),
        };
        let accepted = Accepted::new(&asked, NODE_ID, &self.door.exchange.random);
        let Accepted { link, reply } = accepted.map_err(|refused| refuse(&refused))?;
        self.outlet.set_link(link);
        if self.outlet.answer(&reply) == Put::First {
            round.dirty.push(self.outlet.clone());
        }
        Ok(())
    }

    fn verify(&mut self, link: &Link, header: &Header<'_>, round: &mut Round) -> bool {
        let is_right = link.verify(header, &mut round.scratch);
        if !is_right {
            self.connection.count(Counter::SlimBadMacs);
            self.warn(format_args!("a header whose MAC is wrong"));
        }
        is_right
    }

    fn subscribe(&self, header: &Header<'_>, id: u64) {
        if !self.has_hop_left(header) {
            return;
        }
        if !self.may(Act::Subscribe, header) {
            let refused = format!(
                "rules keep this client from subscribing to {}",
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
        self.acknowledge(id, done.map_err(|error| error.to_string()));
    }

    fn unsubscribe(&self, header: &Header<'_>, id: u64) {
        if !self.has_hop_left(header) {
            return;
        }
        let (key, connection) = (header.destination.encoded.key(), self.connection.id().0);
        let done = self.door.exchange.unsubscribe(key, connection, id);
        self.acknowledge(id, done.map_err(|error| error.to_string()));
    }

    fn may(&self, act: Act, header: &Header<'_>) -> bool {
        let agent = &header.destination.encoded.prefix;
        let may = self.door.options.rules.allow(act, agent, &self.name);
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

    /// Answers, unless it was replayed: then nobody waits for an answer.
    fn acknowledge(&self, subscription_id: u64, done: Result<(), String>) {
        if subscription_id == 0 {
            return;
        }
        let error = done.as_ref().err().map(String::as_str);
        let ack = Ack {
            subscription_id,
            error,
        };
        // The own queue is looked at in this round.
        let _ = self.outlet.answer(&ack.encode());
    }

    /// Says once what the client does wrong.
    fn warn(&mut self, what: std::fmt::Arguments<'_>) {
        if !std::mem::replace(&mut self.has_warned, true) {
            let id = self.connection.id().0;
            tracing::warn!(connection = id, "a SLIM client sent {what}");
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, progress: &mut bool) -> Poll<()> {
        while self.outlet.queued_size() > 0 {
            if self.send.capacity() == 0 {
                self.send.reserve_capacity(self.outlet.queued_size());
            }
            while self.send.capacity() == 0 {
                match self.send.poll_capacity(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                }
            }
            let Some(piece) = self.outlet.take() else {
                break;
            };
            if self.send.send_data(piece, false).is_err() {
                return Poll::Ready(());
            }
            *progress = true;
        }
        match self.outlet.ending() {
            None => Poll::Pending,
            Some(status) => {
                *progress = true;
                // It may have gone already.
                let _ = self.send.send_trailers(status.trailers());
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.door.exchange.remove(self.connection.id().0);
    }
}

impl Pressure {
    /// Whether somebody is to be waited for.
    fn holds(&mut self, cx: &mut Context<'_>) -> bool {
        if self.by.is_empty() {
            return false;
        }
        self.by.retain(|outlet| outlet.presses(cx.waker()));
        if self.by.is_empty() {
            self.taken.clear();
            self.alarm = None;
            return false;
        }
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL)));
        if self.taken.len() != self.by.len() {
            self.taken = self.by.iter().map(|outlet| outlet.taken()).collect();
        }
        if alarm.as_mut().poll(cx).is_ready() {
            for (outlet, taken) in self.by.iter().zip(&mut self.taken) {
                let now = outlet.taken();
                if std::mem::replace(taken, now) == now {
                    outlet.give_up_waiting();
                }
            }
            alarm.as_mut().reset(Instant::now() + STALL);
            // Once more, for whoever is not waited for now and for the alarm.
            cx.waker().wake_by_ref();
        }
        true
    }
}
