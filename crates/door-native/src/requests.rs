//! The state of one connection behind its frames: routes by number, answers in order, followers and
//! requests that wait.

use std::sync::Arc;
use std::task::{Context, Waker};

use conversation_service::{MessageFollower, PartFact};
use messaging::{Connection, DescribedMethod, Description, Key, Message, Requested, Turn};
use routing::Ticket;
use store::{Range, StreamFollower};
use wire::{Append, Bind, Read, Settle, Takes};

use super::answers::{Answer, Answers};
use super::conversation::Appender;
use super::deferred::Deferred;
use super::errors::ErrorAnswer;
use super::fatal::Fatal;
use super::followers::{Followers, Source};
use super::outlet::{NativeOutlet, correlation};
use super::quota::{Owner, Quota};
use super::routes::{RecordRoute, Routes, is_own, unsupported};
use super::{conversation, deferred, stream, topic};

/// The requests of one connection; see the module's documentation.
pub(super) struct Requests {
    node: node::Node,
    routes: Routes,
    /// The number of tag slots that the client has used.
    slots: u32,
    answers: Answers,
    deferred: Deferred,
    followers: Followers,
    quota: Quota,
    /// The facts of the messages of an append; memory that is reused.
    facts: Vec<PartFact>,
}

impl Requests {
    pub(super) fn new(node: &node::Node, outlet: Arc<NativeOutlet>, owner: Owner) -> Self {
        Self {
            node: node.clone(),
            routes: Routes::new(node.clone()),
            slots: 0,
            answers: Answers::new(outlet),
            deferred: Deferred::new(node.clone()),
            followers: Followers::default(),
            quota: Quota::new(node.clone(), owner),
            facts: Vec::new(),
        }
    }

    /// Registers a tag used by the client. Tag slots are dense from 0. Returns false if the slot
    /// skips others, which violates the protocol.
    #[must_use]
    pub(super) fn claim(&mut self, tag: Ticket) -> bool {
        if tag.slot == self.slots {
            self.slots += 1;
        }
        tag.slot < self.slots
    }

    /// Returns the name that a route leads to, if it leads to an agent.
    pub(super) fn name(&self, route: u16) -> Option<&model::Name> {
        self.routes.name(route).ok().map(messaging::Route::name)
    }

    /// Binds a route. Returns false if its number skips others, which violates the protocol.
    #[must_use]
    pub(super) fn bind(&mut self, turn: &mut Turn<'_>, bind: &Bind<'_>) -> bool {
        self.routes.bind(turn, bind)
    }

    /// Answers a request with an error.
    pub(super) fn refuse(&mut self, tag: Ticket, error: ErrorAnswer) {
        self.answers.fail(tag, error);
    }

    /// Sends an error that belongs to no request.
    pub(super) fn refuse_connection(&mut self, error: &ErrorAnswer) {
        self.answers.fail_connection(error);
    }

    /// Subscribes to a name.
    pub(super) fn subscribe(
        &mut self,
        turn: &mut Turn<'_>,
        tag: Ticket,
        name: &str,
        with_source: bool,
        description: Option<&wire::Description<'_>>,
    ) {
        let refused = self.node.refused_on_cluster("agents and their messages");
        if let Some(reason) = refused.filter(|_| !is_own(name)) {
            return self.answers.fail(tag, unsupported(&reason));
        }
        let description = match description.map(describe).transpose() {
            Ok(description) => description,
            Err(reason) => return self.answers.fail(tag, ErrorAnswer::invalid(reason)),
        };
        let subscribed = turn.subscribe(name, with_source, description);
        self.answer_subscription(tag, subscribed);
    }

    /// Answers a request about quotas with an error if the node is a member of a cluster. Returns true
    /// if it did.
    pub(super) fn refuse_quota(&mut self, tag: Ticket) -> bool {
        let refused = self.node.refused_on_cluster("quotas");
        let is_refused = refused.is_some();
        if let Some(reason) = refused {
            self.answers.fail(tag, unsupported(&reason));
        }
        is_refused
    }

    /// Ends a subscription.
    pub(super) fn unsubscribe(&mut self, turn: &mut Turn<'_>, tag: Ticket, name: &str) {
        let unsubscribed = turn.unsubscribe(name);
        self.answer_subscription(tag, unsubscribed);
    }

    fn answer_subscription(
        &mut self,
        tag: Ticket,
        name: Result<model::Name, messaging::SubscribeError>,
    ) {
        match name {
            Ok(name) => self.answers.send(|out| {
                wire::encode_subscribed(name.as_str(), correlation(tag), out);
            }),
            Err(error) => self.answers.fail(tag, error),
        }
    }

    /// Routes a call.
    pub(super) fn request(
        &mut self,
        turn: &mut Turn<'_>,
        route: u16,
        tag: Ticket,
        stream: bool,
        message: Message<'_>,
    ) {
        let bound = match self.routes.name(route) {
            Ok(bound) => bound,
            Err(error) => return self.answers.fail(tag, error),
        };
        match turn.request(bound, tag, stream, message) {
            Ok(Requested::Sent) => {}
            Ok(Requested::Held(call, charge)) => {
                let (size, call) = (message.size() as usize, Answer::Call { route, call });
                self.answers.push(tag, Some(charge), call, size);
            }
            Err(error) => self.answers.fail(tag, error),
        }
    }

    /// Sends a one-way message; `report` requests a receipt.
    pub(super) fn send(
        &mut self,
        turn: &mut Turn<'_>,
        route: u16,
        report: Option<Ticket>,
        message: Message<'_>,
    ) {
        match self.routes.name(route) {
            Ok(route) => match turn.send(route, message) {
                Ok((copies, charge)) => {
                    if let Some(tag) = report {
                        self.answers
                            .push_charged(tag, charge, Answer::Receipt(copies));
                    }
                }
                Err(throttled) => self.refuse_send(report, throttled.into()),
            },
            Err(error) => self.refuse_send(report, error),
        }
        turn.consume(message.size());
    }

    /// Sends one-way messages on one route, in order.
    pub(super) fn send_run(&mut self, turn: &mut Turn<'_>, route: u16, messages: &[Message<'_>]) {
        let bound = self.routes.name(route);
        if bound.is_ok_and(|route| turn.send_run(route, messages)) {
            return messages.iter().for_each(|it| turn.consume(it.size()));
        }
        for message in messages {
            self.send(turn, route, None, *message);
        }
    }

    #[cold]
    fn refuse_send(&mut self, report: Option<Ticket>, error: ErrorAnswer) {
        match report {
            Some(tag) => self.answers.fail(tag, error),
            None => self.node.counters().count_failure(error.code),
        }
    }

    /// Writes a message to a mailbox.
    pub(super) fn write(
        &mut self,
        turn: &mut Turn<'_>,
        route: u16,
        tag: Ticket,
        key: Option<Key>,
        message: Message<'_>,
    ) {
        let size = message.size();
        let written = self.routes.name(route);
        match written.and_then(|route| Ok(turn.write(route, key, message)?)) {
            Ok((pending, charge)) => {
                self.answers
                    .push(tag, charge, Answer::Write(pending), size as usize);
            }
            Err(error) => self.answers.fail(tag, error),
        }
        turn.consume(size + key.map_or(0, |_| Key::SIZE));
    }

    /// Sends a one-way message that is acknowledged once it is enqueued.
    pub(super) fn write_to_memory(
        &mut self,
        turn: &mut Turn<'_>,
        route: u16,
        tag: Ticket,
        message: Message<'_>,
    ) {
        let written = self.routes.name(route);
        match written.and_then(|route| Ok(turn.write_to_memory(route, message)?)) {
            Ok((copies, charge)) => {
                self.answers
                    .push_charged(tag, charge, Answer::Copies(copies));
            }
            Err(error) => self.answers.fail(tag, error),
        }
        turn.consume(message.size());
    }

    /// Appends to the stream, the conversation or the topic of a route.
    pub(super) fn append(
        &mut self,
        turn: &mut Turn<'_>,
        route: u16,
        tag: Ticket,
        append: &Append<'_>,
    ) -> Result<(), Fatal> {
        let (node, answers) = (&self.node, &mut self.answers);
        match self.routes.records(route) {
            Ok(RecordRoute::Stream(stream)) => {
                stream::append(node, turn, answers, tag, stream, append)
            }
            Ok(RecordRoute::Conversation(conversation)) => {
                let appender = Appender {
                    node,
                    answers,
                    deferred: &mut self.deferred,
                    facts: &mut self.facts,
                };
                conversation::append(appender, turn, tag, conversation, append)?;
            }
            Ok(RecordRoute::Topic(topic)) => {
                topic::append(node, turn, answers, tag, topic, append)?
            }
            Err(error) => answers.fail(tag, error),
        }
        Ok(())
    }

    /// Reads from the stream, the conversation or the topic of a route.
    pub(super) fn read(&mut self, turn: &mut Turn<'_>, route: u16, tag: Ticket, read: Read) {
        // Locks of conversations come before the table's lock.
        turn.unlock_table();
        let (node, answers, deferred) = (&self.node, &mut self.answers, &mut self.deferred);
        match self.routes.records(route) {
            Ok(RecordRoute::Stream(stream)) => {
                stream::read(node, answers, deferred, tag, stream, range(read));
            }
            Ok(RecordRoute::Conversation(conversation)) => {
                conversation::read(node, answers, deferred, tag, conversation, range(read));
            }
            Ok(RecordRoute::Topic(topic)) => {
                topic::read(node, answers, &mut self.followers, tag, topic, read);
            }
            Err(error) => answers.fail(tag, error),
        }
    }

    /// Follows the stream, the conversation or the topic of a route. Items are sent after the turn,
    /// when the followers are polled.
    pub(super) fn follow(&mut self, route: u16, tag: Ticket, read: Read) {
        let node = &self.node;
        let source = match self.routes.records(route) {
            Ok(RecordRoute::Stream(stream)) => stream::streams(node)
                .map(|streams| StreamFollower::new(streams, stream, range(read)))
                .map(Source::Stream)
                .map_err(ErrorAnswer::from),
            Ok(RecordRoute::Conversation(conversation)) => {
                let range = conversation::message_range(range(read));
                deferred::conversations(node)
                    .map(|it| MessageFollower::new(it, conversation, range))
                    .map(Source::Messages)
                    .map_err(ErrorAnswer::from)
            }
            Ok(RecordRoute::Topic(topic)) => {
                let (answers, followers) = (&mut self.answers, &mut self.followers);
                return topic::follow(node, answers, followers, tag, topic, read);
            }
            Err(error) => Err(error),
        };
        let added = source.and_then(|source| self.followers.add(tag, source));
        if let Err(error) = added {
            self.answers.fail(tag, error);
        }
    }

    /// Decides takes.
    pub(super) fn take(&mut self, turn: &Turn<'_>, tag: Ticket, takes: &Takes<'_>) {
        self.quota.take(turn, &mut self.answers, tag, takes);
    }

    /// Ends a hold.
    pub(super) fn settle_hold(&mut self, tag: Ticket, settle: &Settle<'_>) {
        self.quota.settle(&mut self.answers, tag, settle);
    }

    /// Answers the state of a subject's limits.
    pub(super) fn peek(&mut self, tag: Ticket, subject: &str) {
        self.quota.peek(&mut self.answers, tag, subject);
    }

    /// Cancels a request of the client.
    pub(super) fn cancel(&mut self, turn: &mut Turn<'_>, tag: Ticket) {
        let answers = &mut self.answers;
        if self.quota.cancel(answers, tag) {
            return;
        }
        if self.followers.end(tag) {
            return answers.fail(tag, ErrorAnswer::cancelled());
        }
        if answers.cancel_call(tag) {
            let message = "cancelled by the caller before it was routed";
            let error = ErrorAnswer::new(model::ErrorCode::Cancelled, message);
            return answers.fail(tag, error);
        }
        if turn.cancel(tag) {
            answers.fail(tag, ErrorAnswer::cancelled());
        }
    }

    /// Adds the client's credit for items.
    pub(super) fn credit(&mut self, turn: &mut Turn<'_>, tag: Ticket, items: u32) {
        if !self.followers.credit(tag, items) {
            turn.stream_credit(tag, items);
        }
    }

    /// Sends the answers of a chunk, in one write.
    pub(super) fn flush(&mut self) {
        self.answers.flush();
    }

    /// Returns whether the bound on waiting answers and requests is reached.
    pub(super) fn is_full(&self) -> bool {
        self.answers.is_full()
    }

    /// Sends the answers and the items that have become available; the task is woken when there may
    /// be more: by `disk` together with the other tasks of the thread. Returns true if output has to
    /// wait because the client leaves too much unread.
    pub(super) fn settle(
        &mut self,
        connection: &mut Connection,
        cx: &mut Context<'_>,
        disk: &Waker,
    ) -> bool {
        let answers = &mut self.answers;
        let mut is_unread = false;
        if !self.deferred.is_empty() {
            // The appends of finished requests may be durable already.
            is_unread |= self.deferred.poll(answers, disk);
        }
        if !self.quota.is_empty() {
            self.quota.poll(cx, answers);
        }
        if !answers.is_empty() {
            let mut turn = connection.turn();
            answers.poll(&mut turn, &self.routes, disk);
        }
        is_unread |= self
            .followers
            .poll(&self.node, answers, &Context::from_waker(disk));
        answers.flush();
        is_unread
    }
}

/// Returns a description whose schemas are valid JSON.
fn describe(description: &wire::Description<'_>) -> Result<Description, String> {
    let methods = description.methods.iter().map(|method| {
        for (what, schema) in [("input", method.input), ("output", method.output)] {
            if !schema.is_empty() {
                let checked = message_json::schema::check(schema);
                let name = method.name;
                checked.map_err(|reason| {
                    format!("`{what}` of the method `{name}` is no JSON Schema: {reason}")
                })?;
            }
        }
        Ok(DescribedMethod {
            name: method.name.to_owned(),
            is_streamed: method.is_streamed,
            text: method.text.to_owned(),
            input: method.input.to_owned(),
            output: method.output.to_owned(),
        })
    });
    Ok(Description {
        version: description.version.to_owned(),
        text: description.text.to_owned(),
        methods: methods.collect::<Result<_, String>>()?,
    })
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
