//! Answers that wait until what they speak of is durable.
//!
//! They are owned by the task that reads from the connection, in the order of the questions. The
//! task registers its waker for the oldest one's block and for nothing else; when it is woken it
//! answers everything that is durable, in one write.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use journal::{Journal, Status, Ticket as Block};
use model::ErrorCode;
use routing::Ticket;

use super::UNCONFIRMED;
use super::mailbox::Slot;
use super::write::{self, Kept};
use crate::conversations::Refusal;
use crate::later::Later;
use crate::ports::{Failure, Outgoing};
use crate::quotas::HeldCall;

/// What is answered.
pub(crate) enum Answer {
    /// A write is in its mailbox.
    Stored { offset: u64, is_duplicate: bool },
    /// Records are in their stream.
    Appended { first: u64, next: u64 },
    /// The stream ends elsewhere.
    Conflict { next: u64 },
    /// Messages are in their conversation.
    Messages {
        first: u64,
        next: u64,
        deduplicated: u32,
        made: Vec<String>,
    },
    /// They are not, for a reason that rests on what was there.
    Refused(Refusal),
    /// A write is not in its mailbox.
    Unwritten(write::Refusal),
    /// A one-way message was delivered, and charged.
    Receipt { delivered: u32, dropped: u32 },
    /// A write to memory was, and was charged.
    Copies(u32),
}

/// An answer that waits.
pub(crate) struct Waiting {
    pub(crate) tag: Ticket,
    /// What must be durable.
    pub(crate) tickets: [Option<Block>; 2],
    pub(crate) answer: Answer,
    /// The mailbox that may go on then.
    pub(crate) slot: Option<Arc<Slot>>,
}

/// Answers of one connection that may wait, and bytes that they speak of; above either the node
/// does not read from it.
const WAITING_MAX: usize = 8_192;
const WAITING_SIZE_MAX: u64 = 8 << 20;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Answers {
    waiting: VecDeque<Queued>,
    waiting_size: u64,
    /// What the client was charged last, of a limit that is `sync`.
    charged: Option<Block>,
    /// What the waker is registered for.
    watched: Option<(Block, Waker)>,
}

struct Queued {
    entry: Entry,
    /// Bytes that it speaks of.
    size: u64,
    /// What the client was charged for it must be durable, too.
    charged: Option<Block>,
}

enum Entry {
    Known(Waiting),
    /// What it will be is known when a mailbox is loaded.
    Later(Ticket, Arc<Later<Kept>>),
    /// Others answer it.
    Call(Ticket, HeldCall),
}

/// What is due.
pub(super) enum Due {
    Answer {
        waiting: Waiting,
        is_durable: bool,
    },
    Call {
        tag: Ticket,
        call: HeldCall,
        is_charged: bool,
    },
}

impl Answers {
    /// Whatever is added from now on waits for that, too.
    pub(crate) fn rest_on(&mut self, charged: Block) {
        self.charged = Some(charged);
    }

    /// What the client was charged last.
    pub(crate) fn charged(&self) -> Option<Block> {
        self.charged
    }

    /// Adds the newest, which speaks of that many bytes.
    pub(crate) fn push(&mut self, waiting: Waiting, size: u64) {
        self.queue(Entry::Known(waiting), size);
    }

    /// Adds the newest, which waits for what the client was charged and for nothing else.
    pub(crate) fn push_charged(&mut self, tag: Ticket, answer: Answer) {
        let waiting = Waiting {
            tag,
            tickets: [None, None],
            answer,
            slot: None,
        };
        self.push(waiting, 0);
    }

    /// Adds the newest, of a write that waits for its mailbox.
    pub(super) fn push_later(&mut self, tag: Ticket, later: Arc<Later<Kept>>, size: u64) {
        self.queue(Entry::Later(tag, later), size);
    }

    /// Adds a call that is held.
    pub(crate) fn push_call(&mut self, tag: Ticket, call: HeldCall, size: u64) {
        self.queue(Entry::Call(tag, call), size);
    }

    fn queue(&mut self, entry: Entry, size: u64) {
        let charged = self.charged;
        self.waiting.push_back(Queued {
            entry,
            size,
            charged,
        });
        self.waiting_size += size;
    }

    /// Forgets a call that is held; whether there was one.
    pub(crate) fn cancel_call(&mut self, tag: Ticket) -> bool {
        let is_it = |queued: &Queued| matches!(&queued.entry, Entry::Call(of, _) if *of == tag);
        let found = self.waiting.iter().position(is_it);
        let removed = found.and_then(|place| self.waiting.remove(place));
        self.waiting_size -= removed.as_ref().map_or(0, |queued| queued.size);
        removed.is_some()
    }

    /// Whether so much waits that no more should be asked.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX || self.waiting_size >= WAITING_SIZE_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest answer, if it is due; else the waker is woken once it may be.
    pub(super) fn next(&mut self, journal: &Journal, waker: &Waker) -> Option<Due> {
        let Queued { entry, charged, .. } = self.waiting.front_mut()?;
        if let Entry::Later(tag, later) = entry {
            let tag = *tag;
            *entry = Entry::Known(match later.take(waker)? {
                Ok(taken) => taken.waiting(tag),
                Err(refusal) => Waiting {
                    tag,
                    tickets: [None, None],
                    answer: Answer::Unwritten(refusal),
                    slot: None,
                },
            });
        }
        let tickets = match entry {
            Entry::Known(oldest) => oldest.tickets,
            Entry::Later(..) | Entry::Call(..) => [None, None],
        };
        let blocks = tickets.into_iter().chain([*charged]);
        let mut is_durable = true;
        for block in blocks.flatten() {
            let status = match journal.status(block) {
                Status::Pending => self.watch(journal, block, waker),
                status => status,
            };
            match status {
                Status::Pending => return None,
                Status::Durable => {}
                Status::Failed => is_durable = false,
            }
        }
        let Queued {
            entry,
            size,
            charged,
        } = self.waiting.pop_front()?;
        self.waiting_size -= size;
        if self.charged == charged {
            self.charged = None;
        }
        match entry {
            Entry::Known(waiting) => Some(Due::Answer {
                waiting,
                is_durable,
            }),
            Entry::Call(tag, call) => Some(Due::Call {
                tag,
                call,
                is_charged: is_durable,
            }),
            Entry::Later(..) => None,
        }
    }

    /// Has the waker woken for the block, if it is not already to be.
    fn watch(&mut self, journal: &Journal, block: Block, waker: &Waker) -> Status {
        if let Some((watched, known)) = &self.watched
            && *watched == block
            && known.will_wake(waker)
        {
            return Status::Pending;
        }
        self.watched = Some((block, waker.clone()));
        journal.notify(block, waker)
    }
}

impl Waiting {
    /// As the client is told.
    pub(super) fn outgoing<'a>(
        &'a self,
        is_durable: bool,
        details: &'a mut [u8; 8],
        text: &'a mut String,
    ) -> Outgoing<'a> {
        let tag = self.tag;
        if !is_durable {
            let failure = Failure::new(ErrorCode::Unconfirmed, UNCONFIRMED).after_sending();
            return Outgoing::Failure {
                tag: Some(tag),
                failure,
            };
        }
        match &self.answer {
            Answer::Stored {
                offset,
                is_duplicate,
            } => Outgoing::Stored {
                tag,
                offset: *offset,
                is_duplicate: *is_duplicate,
            },
            Answer::Appended { first, next } => Outgoing::Appended {
                tag,
                first: *first,
                next: *next,
            },
            Answer::Messages {
                first,
                next,
                deduplicated,
                made,
            } => Outgoing::MessagesAppended {
                tag,
                first: *first,
                next: *next,
                deduplicated: *deduplicated,
                made,
            },
            Answer::Refused(refusal) => Outgoing::Failure {
                tag: Some(tag),
                failure: refusal.as_failure(details),
            },
            Answer::Unwritten(refusal) => Outgoing::Failure {
                tag: Some(tag),
                failure: refusal.as_failure(),
            },
            Answer::Receipt { delivered, dropped } => Outgoing::Receipt {
                tag,
                delivered: *delivered,
                dropped: *dropped,
            },
            Answer::Copies(copies) => Outgoing::Copies {
                tag,
                copies: *copies,
            },
            Answer::Conflict { next } => {
                *details = next.to_le_bytes();
                *text = format!("the stream ends at {next}");
                let failure = Failure {
                    details,
                    ..Failure::new(ErrorCode::Conflict, text)
                };
                Outgoing::Failure {
                    tag: Some(tag),
                    failure,
                }
            }
        }
    }
}
