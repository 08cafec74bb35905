//! Messaging with a manual clock, and test clients that record their output.

use std::collections::VecDeque;
use std::sync::Arc;

use model::{Failure, Name};
use parking_lot::Mutex;
use platform::Counter;
use platform::testing::{ManualClock, platform};
use quota_service::{LimitConfig, QuotaService, Quotas};

use crate::{
    Cast, Client, Connection, Facts, Inbox, Limits, Message, Messaging, Outgoing, Outlet, Pushed,
    Route,
};

/// Output that a test client recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordedOutput {
    Message,
    Flow { route: u16, full: bool },
    Credit { messages: u32 },
    Other,
}

#[derive(Default)]
struct OutputRecorder(Mutex<VecDeque<RecordedOutput>>);

impl Inbox for OutputRecorder {
    fn push(&self, outgoing: Outgoing<'_>) -> Pushed {
        if let Outgoing::Sends { messages, .. } = outgoing {
            let recorded = messages.iter().map(|_| RecordedOutput::Message);
            self.0.lock().extend(recorded);
            return Pushed::Queued;
        }
        self.0.lock().push_back(match outgoing {
            Outgoing::Send { .. } => RecordedOutput::Message,
            Outgoing::Flow { route, full } => RecordedOutput::Flow { route, full },
            Outgoing::Credit { messages, .. } => RecordedOutput::Credit { messages },
            _ => RecordedOutput::Other,
        });
        Pushed::Queued
    }

    fn flush(&self) {}
}

impl Client for OutputRecorder {
    fn goaway(&self, _: u32, _: &str) {}

    fn dismiss(&self, _: Failure<'_>) {}

    fn close(&self) {}

    fn queued_size(&self) -> usize {
        0
    }
}

/// Messaging without storage, and its clock.
pub(crate) struct World {
    pub(crate) messaging: Arc<Messaging>,
    clock: Arc<ManualClock>,
}

impl World {
    pub(crate) fn new(limits: Limits) -> Self {
        Self::open(limits, &[])
    }

    /// Opens messaging with these limits of connections and these quotas.
    pub(crate) fn open(limits: Limits, quotas: &[LimitConfig]) -> Self {
        let clock = ManualClock::at(0);
        let platform = platform(clock.clone());
        let options = quota_service::Options::default();
        let service = Arc::new(QuotaService::new(platform.clone(), options, None, None));
        let quotas = quotas.iter().map(|limit| limit.read().unwrap()).collect();
        service.quotas().restore(quotas).unwrap();
        let messaging = Messaging::new(platform, limits, service, None, None);
        Self {
            messaging: Arc::new(messaging),
            clock,
        }
    }

    /// Returns the quotas.
    pub(crate) fn quotas(&self) -> Quotas<'_> {
        self.messaging.quotas()
    }

    /// Returns the value of a counter.
    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.messaging.platform.counters.get(counter)
    }

    /// Advances the clock, with the sweeps that a shell makes.
    pub(crate) fn pass_ms(&self, ms: u64) {
        for _ in 0..ms.div_ceil(100) {
            self.clock.pass_ns(100_000_000);
            self.messaging.sweep();
            self.quotas().sweep();
        }
    }

    /// Creates a client with that credit for one-way messages.
    pub(crate) fn client(&self, credit_messages: u32) -> TestClient {
        let recorder = Arc::new(OutputRecorder::default());
        let outlet = Outlet::Inbox(recorder.clone());
        let facts = Facts {
            name: None,
            principal: access::Principal::open(),
            remote: "test".to_owned(),
            door: "test",
            token: None,
            user: None,
            trusted: false,
            calls_max: 1,
            credit_messages,
            credit_bytes: 1 << 20,
        };
        let connection = self.messaging.connect(facts, |_| outlet).unwrap();
        TestClient {
            connection,
            route: None,
            run_length: 1,
            recorder,
        }
    }

    /// Creates a client with a subscription.
    pub(crate) fn subscriber(&self, name: &str, credit_messages: u32) -> TestClient {
        let mut client = self.client(credit_messages);
        client.subscribe(name);
        client
    }

    /// Creates a client whose route 1 leads to all subscribers of a name.
    pub(crate) fn sender(&self, name: &str) -> TestClient {
        let mut client = self.client(1);
        client.bind(name);
        client
    }
}

pub(crate) struct TestClient {
    pub(crate) connection: Connection,
    /// Route 1.
    route: Option<Route>,
    /// The number of messages that it sends together.
    pub(crate) run_length: usize,
    recorder: Arc<OutputRecorder>,
}

impl TestClient {
    pub(crate) fn subscribe(&mut self, name: &str) {
        let subscribed = self.connection.turn().subscribe(name, false, None);
        subscribed.unwrap();
    }

    pub(crate) fn unsubscribe(&mut self, name: &str) {
        let unsubscribed = self.connection.turn().unsubscribe(name);
        unsubscribed.unwrap();
    }

    /// Binds route 1, to nothing if the name is invalid.
    pub(crate) fn bind(&mut self, name: &str) {
        let mut turn = self.connection.turn();
        if let Some(route) = self.route.take() {
            turn.release(route);
        }
        let name = Name::parse(name).ok();
        self.route = name.map(|name| turn.bind(1, name, Cast::All, ""));
    }

    /// Sends messages, and returns the number of those that a limit refused.
    pub(crate) fn send(&mut self, count: u32) -> usize {
        let mut turn = self.connection.turn();
        let route = self.route.as_ref().unwrap();
        let messages = vec![Message::default(); count as usize];
        let mut refused = 0;
        for run in messages.chunks(self.run_length) {
            let is_sent = run.len() > 1 && turn.send_run(route, run);
            for message in run {
                refused += usize::from(!is_sent && turn.send(route, *message).is_err());
                if !is_sent {
                    turn.consume(0);
                }
            }
            for _ in run.iter().filter(|_| is_sent) {
                turn.consume(0);
            }
        }
        refused
    }

    pub(crate) fn credit(&mut self, messages: u32) {
        self.connection.turn().credit(messages, 0);
    }

    /// Returns the oldest recorded output that was not returned yet.
    pub(crate) fn next(&self) -> Option<RecordedOutput> {
        self.recorder.0.lock().pop_front()
    }

    /// Returns the FLOW frames of route 1 since the last call, ignoring credit.
    pub(crate) fn flows(&self) -> Vec<bool> {
        let given = std::mem::take(&mut *self.recorder.0.lock());
        let flow = |given| match given {
            RecordedOutput::Flow { route: 1, full } => Some(full),
            RecordedOutput::Credit { .. } => None,
            other => panic!("unexpected {other:?}"),
        };
        given.into_iter().filter_map(flow).collect()
    }
}
