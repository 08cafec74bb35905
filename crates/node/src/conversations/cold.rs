//! A connection's requests to conversations that are not in memory. Other threads carry them out,
//! one at a time per connection and in order; the connection polls for the answers.
//!
//! While an append waits here, all later appends of the connection wait behind it, which keeps them
//! in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use model::{ErrorCode, Name};
use routing::Ticket;

use super::append::Batch;
use super::behind::{ArchivedPage, Behind};
use super::native::{answer_of, span};
use super::pending::Undurable;
use super::{Appended, Conversations, NewMessage, PageRead, PartFact, Pending, Refusal};
use crate::later::Later;
use crate::node::Inner;
use crate::ports::offload::Overloaded;
use crate::store::{Range, UNREAD_SIZE_MAX, Waiting};
use crate::turn::Turn;

/// Maximum requests of one connection that wait, and their maximum bytes; above either, the node
/// stops reading from the connection.
const WAITING_MAX: usize = 1_024;
const WAITING_SIZE_MAX: usize = 8 << 20;

/// Maximum archive pages that one connection waits for; above this, the node stops reading from the
/// connection.
const ARCHIVED_MAX: usize = 64;

/// Waiting requests of a connection; see the module docs.
#[derive(Default)]
pub(crate) struct Cold {
    waiting: VecDeque<DeferredRequest>,
    /// Bytes of the waiting requests.
    size: usize,
    /// The execution of the oldest request.
    under_way: Option<Arc<Later<DeferredOutcome>>>,
    /// Pages requested from the archive. Nothing waits behind them.
    archived: Vec<(Ticket, ArchivedPage)>,
}

struct DeferredRequest {
    tag: Ticket,
    name: Name,
    what: What,
}

enum What {
    Append(Arc<OwnedBatch>),
    Read(Range),
}

/// An owned copy of a batch, which outlives its frame.
struct OwnedBatch {
    expect: Option<u64>,
    messages: Vec<KeptMessage>,
    size: usize,
}

struct KeptMessage {
    id: Option<String>,
    role: String,
    from: String,
    tokens: Option<u32>,
    facts: Vec<PartFact>,
    parts: Vec<u8>,
    metadata: Vec<u8>,
}

enum DeferredOutcome {
    Appended(Result<Pending<Appended>, Refusal>),
    Read(Result<Behind, Refusal>),
}

impl From<Overloaded> for Refusal {
    fn from(overloaded: Overloaded) -> Self {
        Self::new(ErrorCode::Busy, overloaded.to_string())
    }
}

impl OwnedBatch {
    fn new(batch: Batch<'_>) -> Self {
        let kept = |message: &NewMessage<'_>| KeptMessage {
            id: message.id.map(str::to_owned),
            role: message.role.to_owned(),
            from: message.from.to_owned(),
            tokens: message.tokens,
            facts: message.facts.to_vec(),
            parts: message.parts.to_vec(),
            metadata: message.metadata.to_vec(),
        };
        Self {
            expect: batch.expect,
            messages: batch.messages.iter().map(kept).collect(),
            size: batch.size(),
        }
    }

    fn append(
        &self,
        conversations: Conversations<'_>,
        name: &Name,
    ) -> Result<Pending<Appended>, Refusal> {
        let messages: Vec<_> = self.messages.iter().map(KeptMessage::lent).collect();
        let batch = Batch {
            expect: self.expect,
            messages: &messages,
        };
        conversations.append(name, batch)
    }
}

impl KeptMessage {
    fn lent(&self) -> NewMessage<'_> {
        NewMessage {
            id: self.id.as_deref(),
            role: &self.role,
            from: &self.from,
            tokens: self.tokens,
            facts: &self.facts,
            parts: &self.parts,
            metadata: &self.metadata,
        }
    }
}

impl Cold {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.archived.is_empty()
    }

    /// Returns whether appends wait, which a new append must not overtake.
    pub(super) fn has_appends(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether the limits are reached, so that no more requests should be read.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
            || self.size >= WAITING_SIZE_MAX
            || self.archived.len() >= ARCHIVED_MAX
    }

    pub(super) fn push_append(&mut self, tag: Ticket, name: Name, batch: Batch<'_>) {
        let kept = OwnedBatch::new(batch);
        self.size += kept.size;
        let what = What::Append(Arc::new(kept));
        self.waiting.push_back(DeferredRequest { tag, name, what });
    }

    pub(super) fn push_read(&mut self, tag: Ticket, name: Name, range: Range) {
        let what = What::Read(range);
        self.waiting.push_back(DeferredRequest { tag, name, what });
    }

    pub(super) fn push_archived(&mut self, tag: Ticket, page: ArchivedPage) {
        self.archived.push((tag, page));
    }

    /// Returns a page that the archive has sent.
    fn next_archived(&mut self, task: &Waker) -> Option<(Ticket, Result<PageRead, Refusal>)> {
        let mut pages = self.archived.iter_mut().enumerate();
        let come = pages.find_map(|(at, (_, page))| Some((at, page.take(task)?)));
        let (at, read) = come?;
        let (tag, _) = self.archived.swap_remove(at);
        Some((tag, read))
    }

    /// Returns the result of the oldest request, and the request's bytes; starts it if necessary.
    /// `None` while it is running.
    fn next(
        &mut self,
        inner: &Arc<Inner>,
        task: &Waker,
    ) -> Option<(Ticket, usize, DeferredOutcome)> {
        let oldest = self.waiting.front()?;
        if self.under_way.is_none() {
            self.under_way = Some(oldest.begin(inner));
        }
        let done = self.under_way.as_ref()?.take(task)?;
        self.under_way = None;
        let oldest = self.waiting.pop_front()?;
        let size = oldest.size();
        self.size -= size;
        Some((oldest.tag, size, done))
    }
}

impl DeferredRequest {
    fn size(&self) -> usize {
        match &self.what {
            What::Append(kept) => kept.size,
            What::Read(_) => 0,
        }
    }

    fn begin(&self, inner: &Arc<Inner>) -> Arc<Later<DeferredOutcome>> {
        let name = self.name.clone();
        match &self.what {
            What::Append(kept) => {
                let kept = kept.clone();
                elsewhere(inner, DeferredOutcome::Appended, move |it| {
                    kept.append(it, &name)
                })
            }
            What::Read(range) => {
                let (after, limit) = span(*range);
                elsewhere(inner, DeferredOutcome::Read, move |it| {
                    it.read_behind(&name, after, limit)
                })
            }
        }
    }
}

/// Runs a job on a thread that may read from the disk.
pub(super) fn elsewhere<T: Send + 'static, U: Send + 'static>(
    inner: &Arc<Inner>,
    told: fn(Result<T, Refusal>) -> U,
    work: impl FnOnce(Conversations<'_>) -> Result<T, Refusal> + Send + 'static,
) -> Arc<Later<U>> {
    let job = {
        let inner = inner.clone();
        move || {
            let done = match &inner.store {
                Some(store) => work(Conversations {
                    inner: &inner,
                    store,
                    moment: None,
                }),
                None => Err(Refusal::new(
                    ErrorCode::Unsupported,
                    "this node keeps nothing",
                )),
            };
            told(done)
        }
    };
    inner.make_elsewhere(job).unwrap_or_else(|overloaded| {
        let later = Later::default();
        later.put(told(Err(overloaded.into())));
        Arc::new(later)
    })
}

impl Turn<'_> {
    /// Answers finished requests and starts the next one. Returns true if the client's unread
    /// output is too large to continue.
    pub(crate) fn look_after_cold(&mut self, task: &Waker) -> bool {
        while self.local.cold.has_appends() {
            if self.peer.outlet.queued_size() > UNREAD_SIZE_MAX {
                return true;
            }
            let Some((tag, size, done)) = self.local.cold.next(self.inner, task) else {
                break;
            };
            let refused = match done {
                DeferredOutcome::Appended(Ok(pending)) => {
                    let Undurable { tickets, outcome } = pending.into_undurable();
                    let waiting = Waiting {
                        tag,
                        tickets,
                        answer: answer_of(outcome),
                        slot: None,
                    };
                    self.local.answers.push(waiting, size as u64);
                    continue;
                }
                DeferredOutcome::Read(Ok(Behind::Read(read))) => {
                    self.send_messages(tag, false, &read)
                }
                DeferredOutcome::Read(Ok(Behind::Archived(page))) => {
                    self.local.cold.push_archived(tag, page);
                    continue;
                }
                DeferredOutcome::Appended(Err(refusal)) | DeferredOutcome::Read(Err(refusal)) => {
                    Err(refusal)
                }
            };
            if let Err(refusal) = refused {
                self.refuse_messages(tag, &refusal);
            }
        }
        self.look_after_archived(task)
    }

    /// Answers with pages from the archive. Returns true if the client's unread output is too large
    /// to continue.
    fn look_after_archived(&mut self, task: &Waker) -> bool {
        loop {
            if self.peer.outlet.queued_size() > UNREAD_SIZE_MAX {
                return !self.local.cold.archived.is_empty();
            }
            let Some((tag, read)) = self.local.cold.next_archived(task) else {
                return false;
            };
            let sent = read.and_then(|read| self.send_messages(tag, false, &read));
            if let Err(refusal) = sent {
                self.refuse_messages(tag, &refusal);
            }
        }
    }
}
