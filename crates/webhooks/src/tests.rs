//! Webhooks with a disk in memory and a manual clock.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use conversation_service::{
    Appended, Assemble, AssembledContent, Batch, Change, ConversationError, Details, Limits,
};
use conversations::{NewMessage, Settings, Status};
use journal::Line;
use journal::disk::SimulatedDisk;
use model::ErrorCode;
use platform::testing::{ManualClock, journal_on};
use views::ViewsLocation;

use super::*;

/// A policy that allows every address but an empty one.
struct AllowAll;

impl WebhookPolicy for AllowAll {
    fn check(&self, settings: &WebhookSettings) -> Result<(), String> {
        match &settings.target {
            WebhookTarget::Url(url) if url.is_empty() => Err("there is no URL".to_owned()),
            _ => Ok(()),
        }
    }
}

/// An assembler whose messages are empty.
struct EmptyAssembler;

impl Assemble for EmptyAssembler {
    fn assemble(&self, _: &Limits, _: &mut dyn Iterator<Item = &[u8]>) -> AssembledContent {
        AssembledContent {
            parts: b"[]".to_vec(),
            ..Default::default()
        }
    }
}

struct Fixture {
    conversations: Conversations,
    webhooks: Webhooks,
    clock: Arc<ManualClock>,
    line: Line,
    disk: SimulatedDisk,
    starts: u64,
}

const NAME: &str = "a/b/c";
const AGENT: &str = "a/b/bot";

fn named(name: &str) -> Name {
    Name::parse(name).unwrap()
}

fn settings() -> WebhookSettings {
    WebhookSettings {
        target: WebhookTarget::Url("http://bot/".to_owned()),
        secret: String::new(),
        timeout_ms: 1_000,
        answer_ms: 5_000,
        headers: Vec::new(),
        context: None,
    }
}

fn message<'a>(id: &'a str, from: &'a str) -> NewMessage<'a> {
    NewMessage {
        id: Some(id),
        role: "user",
        from,
        tokens: None,
        facts: &[],
        parts: b"[]",
        metadata: b"",
    }
}

fn done<T, E: From<platform::NotDurable>>(mut pending: platform::Pending<T, E>) -> Result<T, E> {
    match pending.poll_answer(Waker::noop()) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("it is not durable"),
    }
}

impl Fixture {
    /// Creates a conversation with an agent that is called by the schedule.
    fn new(schedule: Schedule) -> Self {
        let disk = SimulatedDisk::new(5);
        let mut fixture = Self::start(disk, 1);
        let put = fixture.webhooks().put(&named(AGENT), settings(), schedule);
        fixture.line.step();
        assert_eq!(done(put.unwrap()), Ok(true));
        let change = Change::Put {
            metadata: None,
            settings: Some(Settings {
                agent: "bot".to_owned(),
                ..Settings::default()
            }),
            is_archived: None,
        };
        let conversations = fixture.conversations.clone();
        let changed = conversations.change(&named(NAME), None, &change).unwrap();
        fixture.line.step();
        done(changed).unwrap();
        assert!(fixture.calls().is_empty());
        fixture
    }

    fn start(disk: SimulatedDisk, starts: u64) -> Self {
        let (journal, line, _) = journal_on(&disk, starts).unwrap();
        let clock = ManualClock::at(0);
        let platform = platform::testing::platform(clock.clone());
        let store = Arc::new(Store::open(journal, 1_000_000, 0).unwrap());
        let conversations = Conversations::open(
            platform.clone(),
            store.clone(),
            conversation_service::Options::default(),
            Some(Arc::new(EmptyAssembler)),
            None,
        )
        .unwrap();
        let views = views::Options {
            place: ViewsLocation::Memory,
            cache_size: 1 << 20,
            sync_interval: Duration::from_secs(1),
            watchers_max: 1,
            labels: |_, _| {},
        };
        let views = Views::new(
            platform.clone(),
            store.clone(),
            conversations.clone(),
            views,
        );
        let parts = WebhookParts {
            options: Options::default(),
            policy: Arc::new(AllowAll),
        };
        let known = conversations.clone();
        Self {
            webhooks: Webhooks::new(platform, store, known, Some(views), parts),
            conversations,
            clock,
            line,
            disk,
            starts,
        }
    }

    /// Advances the clock, with the sweeps that a node makes.
    fn pass_ms(&self, ms: u64) {
        for _ in 0..ms.div_ceil(100) {
            self.clock.pass_ns(100_000_000);
            self.conversations.sweep();
        }
    }

    /// Simulates a power failure and restarts the node.
    fn crash(self) -> Self {
        let Self {
            conversations,
            webhooks,
            line,
            disk,
            starts,
            ..
        } = self;
        drop((conversations, webhooks, line));
        disk.crash(&mut fastrand::Rng::with_seed(starts));
        Self::start(disk, starts + 1)
    }

    fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    fn append(
        &self,
        id: &str,
        from: &str,
    ) -> Result<platform::Pending<Appended, ConversationError>, ConversationError> {
        let batch = Batch {
            expect: None,
            messages: &[message(id, from)],
        };
        let conversations = self.conversations.clone();
        conversations.append(&named(NAME), batch)
    }

    fn append_message(&mut self, id: &str) {
        self.append_message_from(id, "alice");
    }

    fn append_message_from(&mut self, id: &str, from: &str) {
        let pending = self.append(id, from).unwrap();
        self.line.step();
        done(pending).unwrap();
    }

    /// Returns the calls to make, after all changes were processed.
    fn calls(&mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        for _ in 0..4 {
            calls.extend(self.webhooks().tend().unwrap().calls);
            self.line.step();
        }
        calls
    }

    fn call_after(&mut self, ms: u64) -> Call {
        assert!(self.calls().is_empty());
        self.pass_ms(ms);
        let mut calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls.remove(0)
    }

    fn read_mark(&self) -> u64 {
        let conversations = self.conversations.clone();
        let view = done(conversations.get(&named(NAME)).unwrap()).unwrap();
        view.state.cursors.get("bot").unwrap_or(0)
    }

    fn view(&self) -> AgentView {
        self.webhooks().get(&named(AGENT)).unwrap()
    }
}

fn seqs(call: &Call) -> (u64, u64) {
    (call.from_seq(), call.to_seq())
}

fn is_ended(call: &Call) -> bool {
    call.poll_ended(&mut Context::from_waker(Waker::noop()))
        .is_ready()
}

#[test]
fn a_call_waits_for_silence_but_not_for_ever() {
    let mut fixture = Fixture::new(Schedule {
        debounce_ms: 300,
        max_wait_ms: 1_000,
        ..Schedule::default()
    });
    fixture.append_message("one");
    let call = fixture.call_after(300);
    assert_eq!(seqs(&call), (1, 1));
    let id = call.id();
    fixture.append_message_from(&id, "bot");
    call.answered();
    assert!(fixture.calls().is_empty());
    let mut called = None;
    for round in 0..12_u64 {
        fixture.append_message(&format!("more-{round}"));
        if let Some(call) = fixture.calls().pop() {
            called = Some((round, seqs(&call)));
            break;
        }
        fixture.pass_ms(100);
    }
    // A message came every 100 ms. Message 2 was the first one due, as the agent's own answer does
    // not count.
    assert_eq!(called, Some((10, (3, 13))));
}

#[test]
fn read_mark_moves_with_the_durable_answer_across_crashes() {
    let mut fixture = Fixture::new(Schedule::default());
    fixture.append_message("question");
    let call = fixture.call_after(200);
    let id = call.id();
    assert_eq!((call.attempt(), fixture.read_mark()), (1, 0));
    // The agent was called, and the power fails before any answer.
    std::mem::forget(call);
    let mut fixture = fixture.crash();
    let call = fixture.call_after(200);
    assert_eq!((call.id(), fixture.read_mark()), (id.clone(), 0));
    // The answer was decided, and the power fails before it is durable: neither answer nor mark
    // exists.
    let pending = fixture.append(&id, "bot").unwrap();
    drop(pending);
    std::mem::forget(call);
    let mut fixture = fixture.crash();
    let head = |fixture: &Fixture| {
        let conversations = fixture.conversations.clone();
        done(conversations.get(&named(NAME)).unwrap())
            .unwrap()
            .head_seq
    };
    assert_eq!((head(&fixture), fixture.read_mark()), (1, 0));
    let call = fixture.call_after(200);
    fixture.append_message_from(&id, "bot");
    // The answer is durable, and the power fails before it is reported: both exist, once.
    std::mem::forget(call);
    let mut fixture = fixture.crash();
    assert_eq!((head(&fixture), fixture.read_mark()), (2, 1));
    assert!(fixture.calls().is_empty());
    fixture.pass_ms(10_000);
    assert!(fixture.calls().is_empty());
}

#[test]
fn failed_call_is_retried_and_then_a_durable_dead_letter() {
    let mut fixture = Fixture::new(Schedule {
        attempts_max: 2,
        pause_ms: 400,
        ..Schedule::default()
    });
    fixture.append_message("question");
    fixture.call_after(200).failed(503, Retry::Later, "said so");
    assert_eq!(fixture.view().waiting, 1);
    let call = fixture.call_after(400);
    assert_eq!((call.attempt(), fixture.read_mark()), (2, 0));
    call.failed(500, Retry::Later, "said so");
    assert!(fixture.calls().is_empty());
    assert_eq!(fixture.read_mark(), 1, "the conversation goes on");
    let mut fixture = fixture.crash();
    fixture.pass_ms(10_000);
    assert!(fixture.calls().is_empty());
    let dead = fixture.webhooks().dead(&named(AGENT)).unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].conversation, NAME);
    let letter = dead[0].letter;
    let found = (
        letter.from_seq,
        letter.to_seq,
        letter.attempts,
        letter.status,
    );
    assert_eq!(found, (1, 1, 2, 500));

    let webhooks = fixture.webhooks();
    webhooks.retry(&named(AGENT), &named(NAME)).unwrap();
    let missing = webhooks.discard(&named(AGENT), &named(NAME)).unwrap_err();
    assert_eq!(missing.code(), ErrorCode::NotFound);
    let call = fixture.calls().remove(0);
    assert_eq!(seqs(&call), (1, 1));
    // A retry at a user's request survives a power failure.
    std::mem::forget(call);
    let mut fixture = fixture.crash();
    let call = fixture.call_after(200);
    let id = call.id();
    fixture.append_message_from(&id, "bot");
    call.answered();
    assert!(fixture.calls().is_empty());
    let mut fixture = fixture.crash();
    fixture.pass_ms(10_000);
    assert!(fixture.calls().is_empty());
    assert_eq!(fixture.view().dead, 0);
}

#[test]
fn permanent_webhook_error_is_a_dead_letter_at_once() {
    let mut fixture = Fixture::new(Schedule::default());
    fixture.append_message("question");
    fixture.call_after(200).failed(404, Retry::Never, "said so");
    fixture.calls();
    assert_eq!((fixture.view().dead, fixture.view().waiting), (1, 0));
    let webhooks = fixture.webhooks();
    let dead = webhooks.dead(&named(AGENT)).unwrap();
    assert_eq!(dead[0].reason, "said so");
    webhooks.discard(&named(AGENT), &named(NAME)).unwrap();
    fixture.calls();
    let fixture = fixture.crash();
    assert_eq!(fixture.view().dead, 0);
}

#[test]
fn newer_message_interrupts_the_call_and_both_are_sent_next() {
    let mut fixture = Fixture::new(Schedule {
        on_busy: OnBusy::Interrupt,
        ..Schedule::default()
    });
    fixture.append_message("one");
    let call = fixture.call_after(200);
    assert!(!is_ended(&call));
    fixture.append_message("two");
    assert!(fixture.calls().is_empty());
    assert!(is_ended(&call));
    let before = call.id();
    call.failed(0, Retry::Later, "said so");
    let call = fixture.call_after(200);
    assert_eq!((seqs(&call), call.attempt()), ((1, 2), 1));
    assert_ne!(call.id(), before);
}

#[test]
fn on_busy_reject_refuses_messages_of_others_during_a_call() {
    let mut fixture = Fixture::new(Schedule {
        on_busy: OnBusy::Reject,
        ..Schedule::default()
    });
    fixture.append_message("one");
    let call = fixture.call_after(200);
    let refusal = fixture.append("two", "alice").unwrap_err();
    let details = Details {
        seq: Some(1),
        ..Details::default()
    };
    assert_eq!(
        (refusal.code(), refusal.details()),
        (ErrorCode::Busy, details)
    );
    fixture.append_message_from("thought", "bot");
    let id = call.id();
    fixture.append_message_from(&id, "");
    call.answered();
    fixture.append_message("two");
    assert_eq!(fixture.read_mark(), 1);
    assert_eq!(seqs(&fixture.call_after(200)), (4, 4));
}

#[test]
fn later_answer_of_an_agent_moves_its_read_mark() {
    let mut fixture = Fixture::new(Schedule::default());
    fixture.append_message("one");
    fixture.call_after(200).later();
    assert_eq!((fixture.view().calling, fixture.read_mark()), (1, 0));
    fixture.append_message("two");
    fixture.append_message_from("at-last", "bot");
    assert_eq!(fixture.read_mark(), 1);
    // Messages that came meanwhile are left to the next call.
    assert_eq!(seqs(&fixture.call_after(200)), (2, 2));
}

#[test]
fn webhook_is_called_again_when_a_promised_answer_is_late() {
    let mut fixture = Fixture::new(Schedule::default());
    fixture.append_message("one");
    fixture.call_after(200).later();
    fixture.pass_ms(4_900);
    assert!(fixture.calls().is_empty());
    fixture.pass_ms(100);
    assert!(fixture.calls().is_empty());
    let call = fixture.call_after(1_000);
    assert_eq!((seqs(&call), call.attempt()), ((1, 1), 2));
}

#[test]
fn unanswered_messages_cause_a_call_after_restart() {
    let mut fixture = Fixture::new(Schedule::default());
    fixture.append_message("one");
    fixture.append_message("two");
    let mut fixture = fixture.crash();
    assert_eq!(seqs(&fixture.call_after(200)), (1, 2));
}

#[test]
fn partial_answer_does_not_move_the_read_mark() {
    let mut fixture = Fixture::new(Schedule::default());
    fixture.append_message("one");
    let call = fixture.call_after(200);
    let id = call.id();
    let conversations = fixture.conversations.clone();
    let open = |id: &str| {
        let draft = conversation_service::NewDraft {
            id,
            role: "assistant",
            from: "bot",
            metadata: b"",
        };
        conversations.draft_open(&named(NAME), draft)
    };
    let pending = open(&id).unwrap();
    fixture.line.step();
    drop(done(pending).unwrap());
    fixture.line.step();
    assert_eq!(fixture.read_mark(), 0);
    assert_eq!(call.is_answer(2)(), Ok(false));
    let pending = open(&call.answer_id(1)).unwrap();
    fixture.line.step();
    let mut writer = done(pending).unwrap();
    let finished = conversation_service::DraftResult {
        status: Status::Complete,
        tokens: None,
        assembled: &conversation_service::AssembledContent {
            parts: b"[]".to_vec(),
            ..Default::default()
        },
    };
    let pending = writer.finish(finished).unwrap();
    fixture.line.step();
    done(pending).unwrap();
    assert_eq!((fixture.read_mark(), call.is_answer(3)()), (1, Ok(true)));
    call.answered();
    fixture.pass_ms(10_000);
    assert!(fixture.calls().is_empty());
}

#[test]
fn messages_answered_before_a_fork_are_not_called_again() {
    let mut fixture = Fixture::new(Schedule::default());
    fixture.append_message("one");
    let call = fixture.call_after(200);
    let id = call.id();
    fixture.append_message_from(&id, "bot");
    call.answered();
    fixture.append_message("two");
    let call = fixture.call_after(200);
    for (copy, at_seq) in [("a/b/answered", 2), ("a/b/open", 3)] {
        let conversations = fixture.conversations.clone();
        let forked = conversations.fork(&named(NAME), &named(copy), at_seq);
        fixture.line.step();
        done(forked.unwrap()).unwrap();
    }
    let copied = fixture.call_after(200);
    let found = (copied.conversation().base(), seqs(&copied));
    assert_eq!(found, ("a/b/open", (3, 3)));
    assert_eq!(seqs(&call), (3, 3));
}

#[test]
fn webhook_settings_are_validated_stored_and_deleted() {
    let mut fixture = Fixture::new(Schedule::default());
    let nowhere = WebhookSettings {
        target: WebhookTarget::Url(String::new()),
        ..settings()
    };
    let refused = fixture
        .webhooks()
        .put(&named(AGENT), nowhere, Schedule::default());
    assert_eq!(refused.unwrap_err().code(), ErrorCode::InvalidArgument);
    let changed = WebhookSettings {
        secret: "s".to_owned(),
        ..settings()
    };
    let put = fixture
        .webhooks()
        .put(&named(AGENT), changed.clone(), Schedule::default());
    fixture.line.step();
    assert_eq!(done(put.unwrap()), Ok(false));
    let mut fixture = fixture.crash();
    assert_eq!(*fixture.view().settings, changed);
    assert_eq!(fixture.webhooks().list("a/b").unwrap().len(), 1);
    assert!(fixture.webhooks().list("a/x").unwrap().is_empty());
    let deleted = fixture.webhooks().delete(&named(AGENT)).unwrap();
    fixture.line.step();
    done(deleted).unwrap();
    let mut fixture = fixture.crash();
    let missing = fixture.webhooks().get(&named(AGENT)).unwrap_err();
    assert_eq!(missing.code(), ErrorCode::NotFound);
    fixture.append_message("to-nobody");
    fixture.pass_ms(10_000);
    assert!(fixture.calls().is_empty());
}
