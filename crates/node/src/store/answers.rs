//! The answers of a connection that wait until their data is durable.
//!
//! The queue is owned by the connection's reading task, in the order of the requests. The task
//! registers its waker for the block of the oldest answer only. When it is woken, it sends all
//! answers that are durable in one write.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use journal::{Journal, Status, Ticket as Block};
use model::ErrorCode;
use routing::Ticket;

use super::UNCONFIRMED;
use super::mailbox::Slot;
use super::write::{self, WriteOutcome};
use crate::conversations::Refusal;
use crate::later::Later;
use crate::ports::{Failure, Outgoing};
use crate::quotas::HeldCall;

/// An answer.
pub(crate) enum Answer {
    /// A write is in its mailbox.
    Stored { offset: u64, is_duplicate: bool },
    /// Records are in their stream.
    Appended { first: u64, next: u64 },
    /// The stream does not end at the expected offset.
    Conflict { next: u64 },
    /// Messages are in their conversation.
    Messages {
        first: u64,
        next: u64,
        deduplicated: u32,
        made: Vec<String>,
    },
    /// An append to a conversation was refused, for a reason that depends on data that may not be
    /// durable yet.
    Refused(Refusal),
    /// A write to a mailbox was refused.
    Unwritten(write::Refusal),
    /// A one-way message was delivered and charged.
    Receipt { delivered: u32, dropped: u32 },
    /// A write to memory was delivered and charged.
    Copies(u32),
}

/// An answer that waits to be durable.
pub(crate) struct Waiting {
    pub(crate) tag: Ticket,
    /// The blocks that must be durable.
    pub(crate) tickets: [Option<Block>; 2],
    pub(crate) answer: Answer,
    /// The mailbox that can continue then.
    pub(crate) slot: Option<Arc<Slot>>,
}

/// Maximum number of waiting answers per connection, and maximum size of their requests. Above
/// either, the node does not read from the connection.
const WAITING_MAX: usize = 8_192;
const WAITING_SIZE_MAX: u64 = 8 << 20;

/// The queue of waiting answers.
#[derive(Default)]
pub(crate) struct Answers {
    waiting: VecDeque<Queued>,
    waiting_size: u64,
    /// The block of the client's last charge to a limit with `sync` durability.
    charged: Option<Block>,
    /// The block and the waker that are registered.
    watched: Option<(Block, Waker)>,
}

struct Queued {
    entry: QueueEntry,
    /// Size of the request in bytes.
    size: u64,
    /// The block of the charge for the request, which must be durable, too.
    charged: Option<Block>,
}

enum QueueEntry {
    Known(Waiting),
    /// The answer is known once a mailbox is loaded.
    Later(Ticket, Arc<Later<WriteOutcome>>),
    /// A call that is held until its charge is durable, and is then routed.
    Call(Ticket, HeldCall),
}

/// A queue entry that is due.
pub(super) enum DueEntry {
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
    /// Makes all answers queued from now on wait for that block, too.
    pub(crate) fn rest_on(&mut self, charged: Block) {
        self.charged = Some(charged);
    }

    /// Returns the block of the client's last charge.
    pub(crate) fn charged(&self) -> Option<Block> {
        self.charged
    }

    /// Adds an answer to a request of `size` bytes.
    pub(crate) fn push(&mut self, waiting: Waiting, size: u64) {
        self.queue(QueueEntry::Known(waiting), size);
    }

    /// Adds an answer that waits only for the client's charge.
    pub(crate) fn push_charged(&mut self, tag: Ticket, answer: Answer) {
        let waiting = Waiting {
            tag,
            tickets: [None, None],
            answer,
            slot: None,
        };
        self.push(waiting, 0);
    }

    /// Adds the answer to a write that waits for its mailbox.
    pub(super) fn push_later(&mut self, tag: Ticket, later: Arc<Later<WriteOutcome>>, size: u64) {
        self.queue(QueueEntry::Later(tag, later), size);
    }

    /// Adds a held call.
    pub(crate) fn push_call(&mut self, tag: Ticket, call: HeldCall, size: u64) {
        self.queue(QueueEntry::Call(tag, call), size);
    }

    fn queue(&mut self, entry: QueueEntry, size: u64) {
        let charged = self.charged;
        self.waiting.push_back(Queued {
            entry,
            size,
            charged,
        });
        self.waiting_size += size;
    }

    /// Removes a held call. Returns whether there was one.
    pub(crate) fn cancel_call(&mut self, tag: Ticket) -> bool {
        let is_it =
            |queued: &Queued| matches!(&queued.entry, QueueEntry::Call(of, _) if *of == tag);
        let found = self.waiting.iter().position(is_it);
        let removed = found.and_then(|place| self.waiting.remove(place));
        self.waiting_size -= removed.as_ref().map_or(0, |queued| queued.size);
        removed.is_some()
    }

    /// Returns whether the node should stop reading requests.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX || self.waiting_size >= WAITING_SIZE_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the oldest entry if it is due; otherwise the waker is woken when it may be.
    pub(super) fn next(&mut self, journal: &Journal, waker: &Waker) -> Option<DueEntry> {
        let Queued { entry, charged, .. } = self.waiting.front_mut()?;
        if let QueueEntry::Later(tag, later) = entry {
            let tag = *tag;
            *entry = QueueEntry::Known(match later.take(waker)? {
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
            QueueEntry::Known(oldest) => oldest.tickets,
            QueueEntry::Later(..) | QueueEntry::Call(..) => [None, None],
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
            QueueEntry::Known(waiting) => Some(DueEntry::Answer {
                waiting,
                is_durable,
            }),
            QueueEntry::Call(tag, call) => Some(DueEntry::Call {
                tag,
                call,
                is_charged: is_durable,
            }),
            QueueEntry::Later(..) => None,
        }
    }

    /// Registers the waker for the block, unless it is already registered.
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
    /// Returns the answer as output to the client.
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
