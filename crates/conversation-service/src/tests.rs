//! Conversations on an in-memory disk, which tests sync explicitly.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use journal::disk::SimulatedDisk;
use journal::disk::simulated::{Fate, Unsynced};
use journal::{Background, Line};
use model::{ErrorCode, Name};
use platform::testing::journal_on;

use super::*;
use crate::testing::World;

mod drafts;
mod erasure;
mod faults;
mod messages;
mod retract;
mod state;

/// Conversations and their disk.
struct Fixture {
    world: World,
    line: Line,
    background: Background,
    disk: SimulatedDisk,
    options: Options,
    assembler: Option<Arc<dyn Assemble>>,
    starts: u64,
}

impl Fixture {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        Self::start(SimulatedDisk::new(11), options, None, 1)
    }

    /// A node to which answers are streamed.
    fn streamed(assembler: impl Assemble + 'static) -> Self {
        let disk = SimulatedDisk::new(11);
        Self::start(disk, Options::default(), Some(Arc::new(assembler)), 1)
    }

    fn start(
        disk: SimulatedDisk,
        options: Options,
        assembler: Option<Arc<dyn Assemble>>,
        starts: u64,
    ) -> Self {
        let (journal, line, background) = journal_on(&disk, starts).unwrap();
        Self {
            world: World::open(journal, options, assembler.clone(), None),
            line,
            background,
            disk,
            options,
            assembler,
            starts,
        }
    }

    /// Simulates a power failure and restarts the node.
    fn crash(self) -> Self {
        let mut rng = fastrand::Rng::with_seed(self.starts);
        self.restart(|disk| disk.crash(&mut rng))
    }

    /// Like [`Fixture::crash`], with a given fate of unsynced data.
    fn crash_with(self, fate: impl FnMut(&Unsynced) -> Fate) -> Self {
        self.restart(|disk| disk.crash_with(fate))
    }

    fn restart(self, crash: impl FnOnce(&SimulatedDisk)) -> Self {
        let Self {
            world,
            line,
            background,
            disk,
            options,
            assembler,
            starts,
        } = self;
        drop((world, line, background));
        crash(&disk);
        Self::start(disk, options, assembler, starts + 1)
    }

    fn conversations(&self) -> &Conversations {
        &self.world.conversations
    }

    /// Appends messages with these ids, whose text is the id.
    fn append(
        &self,
        name: &str,
        expect: Option<u64>,
        ids: &[&str],
    ) -> Result<Pending<Appended>, ConversationError> {
        let messages: Vec<_> = ids.iter().map(|id| message(id, id)).collect();
        let batch = Batch {
            expect,
            messages: &messages,
        };
        self.conversations().append(&named(name), batch)
    }

    /// Like [`Fixture::append`], and waits for the disk.
    fn appended(&mut self, name: &str, ids: &[&str]) -> Appended {
        let mut pending = self.append(name, None, ids).unwrap();
        self.line.step();
        done(&mut pending).unwrap().unwrap()
    }

    fn read(
        &self,
        name: &str,
        side: Side,
        limit: usize,
    ) -> Result<Vec<(u64, String)>, ConversationError> {
        let page = Page {
            side,
            limit,
            bytes: 1 << 20,
        };
        let read = self.conversations().read(&named(name), page)?;
        let told = read.messages().map(|message| {
            let message = message.unwrap();
            (message.seq, text(message.view.parts))
        });
        Ok(told.collect())
    }
}

fn named(name: &str) -> Name {
    Name::parse(name).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns a message without an author; an empty id means none.
fn message<'a>(id: &'a str, parts: &'a str) -> NewMessage<'a> {
    NewMessage {
        id: Some(id).filter(|id| !id.is_empty()),
        role: "user",
        from: "alice",
        tokens: None,
        facts: &[],
        parts: parts.as_bytes(),
        metadata: b"",
    }
}

/// Returns the outcome, if it is ready.
fn done<T>(pending: &mut Pending<T>) -> Option<Result<T, ConversationError>> {
    match pending.poll_answer(Waker::noop()) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

/// Returns the watcher's available items as text.
fn shown(watch: &mut Watch) -> Vec<String> {
    let mut shown = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(next) = watch.poll_next(&mut context) {
        match next {
            Ok(Item::Message(stored)) => {
                let view = stored.view().unwrap();
                shown.push(format!("{} {}", stored.seq, text(view.parts)));
            }
            Ok(Item::Head { head_seq }) => shown.push(format!("head {head_seq}")),
            Ok(Item::Delta {
                id, index, chunk, ..
            }) => shown.push(format!("{id}.{index} {}", text(&chunk))),
            Ok(Item::Stop { id, .. }) => shown.push(format!("stop {id}")),
            Ok(Item::Cleared { through_seq }) => shown.push(format!("cleared {through_seq}")),
            Ok(Item::Retracted {
                first_seq,
                last_seq,
            }) => shown.push(format!("retracted {first_seq} to {last_seq}")),
            Ok(Item::Closed { .. }) => shown.push("closed".to_owned()),
            Err(refusal) => {
                shown.push(refusal.code().to_string());
                break;
            }
        }
    }
    shown
}
