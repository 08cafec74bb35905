//! Requests that wait for the disk: other threads carry them out, one at a time per connection and in
//! order. Pages of the archive are waited for afterwards, and nothing waits behind them.
//!
//! While a request to a conversation waits here, all later appends of the connection to conversations
//! wait behind it, which keeps them in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use conversation_service::{
    Appended, Batch, ConversationError, ConversationRef, Conversations, MessageRange, NewMessage,
    PageRead, PartFact, Pending,
};
use platform::Durable;
use routing::Ticket;
use store::{Range, Stream, StreamError, StreamExtract};

use super::answers::{Answer, Answers, BOUND};
use super::extracts::{send_read, send_records};
use super::stream::streams;

/// The bytes that a page of the archive counts as: at most 64 of them are waited for.
const ARCHIVED_SIZE: usize = BOUND.size / 64;

/// The waiting requests of a connection; see the module's documentation.
pub(super) struct Deferred {
    node: node::Node,
    waiting: VecDeque<Request>,
    /// The number of waiting requests to conversations.
    conversations: usize,
    /// The execution of the oldest request.
    under_way: Option<Execution>,
    /// Pages that the archive was asked for.
    archived: Vec<(Ticket, Pending<PageRead>)>,
}

struct Request {
    tag: Ticket,
    work: Work,
}

enum Work {
    ReadStream(Stream, Range),
    ReadMessages(ConversationRef, MessageRange),
    Append {
        conversation: ConversationRef,
        batch: Arc<OwnedBatch>,
        /// The charge for the append.
        charge: Option<Durable>,
    },
}

/// The execution of a request on another thread.
enum Execution {
    ReadStream(platform::Pending<StreamExtract, StreamError>),
    ReadMessages(Pending<Pending<PageRead>>),
    Append(Pending<Pending<Appended>>),
}

/// The outcome of an execution.
enum ExecutionOutcome {
    Stream(Result<StreamExtract, StreamError>),
    Messages(Result<Pending<PageRead>, ConversationError>),
    Appended(Result<Pending<Appended>, ConversationError>),
}

/// An owned copy of a batch, which outlives its frame.
struct OwnedBatch {
    expect: Option<u64>,
    messages: Vec<OwnedMessage>,
    size: usize,
}

struct OwnedMessage {
    id: Option<String>,
    role: String,
    from: String,
    tokens: Option<u32>,
    facts: Vec<PartFact>,
    parts: Vec<u8>,
    metadata: Vec<u8>,
}

impl Deferred {
    pub(super) fn new(node: node::Node) -> Self {
        Self {
            node,
            waiting: VecDeque::new(),
            conversations: 0,
            under_way: None,
            archived: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.archived.is_empty()
    }

    /// Returns whether requests to conversations wait, which an append must not overtake.
    pub(super) fn has_conversations(&self) -> bool {
        self.conversations > 0
    }

    /// Adds a read of a stream.
    pub(super) fn read_stream(
        &mut self,
        answers: &mut Answers,
        tag: Ticket,
        stream: &Stream,
        range: Range,
    ) {
        self.push(answers, tag, Work::ReadStream(stream.clone(), range));
    }

    /// Adds a read of a conversation.
    pub(super) fn read_messages(
        &mut self,
        answers: &mut Answers,
        tag: Ticket,
        conversation: &ConversationRef,
        range: MessageRange,
    ) {
        self.push(
            answers,
            tag,
            Work::ReadMessages(conversation.clone(), range),
        );
    }

    /// Adds an append to a conversation.
    pub(super) fn append(
        &mut self,
        answers: &mut Answers,
        tag: Ticket,
        conversation: &ConversationRef,
        batch: Batch<'_>,
        charge: Option<Durable>,
    ) {
        let work = Work::Append {
            conversation: conversation.clone(),
            batch: Arc::new(OwnedBatch::new(batch)),
            charge,
        };
        self.push(answers, tag, work);
    }

    /// Waits for a page of the archive.
    pub(super) fn await_archive(
        &mut self,
        answers: &mut Answers,
        tag: Ticket,
        page: Pending<PageRead>,
    ) {
        answers.begin_work(ARCHIVED_SIZE);
        self.archived.push((tag, page));
    }

    fn push(&mut self, answers: &mut Answers, tag: Ticket, work: Work) {
        answers.begin_work(work.size());
        self.conversations += usize::from(work.is_of_conversation());
        self.waiting.push_back(Request { tag, work });
    }

    /// Answers finished requests and starts the next one; the waker is woken when there may be more.
    /// Returns true if the client leaves so much unread that output has to wait.
    pub(super) fn poll(&mut self, answers: &mut Answers, waker: &Waker) -> bool {
        while !self.waiting.is_empty() {
            if answers.is_unread() {
                return true;
            }
            let Some((Request { tag, work }, done)) = self.poll_oldest(waker) else {
                break;
            };
            let size = work.size();
            answers.end_work(size);
            self.conversations -= usize::from(work.is_of_conversation());
            match done {
                ExecutionOutcome::Appended(Ok(pending)) => {
                    answers.push(tag, work.into_charge(), Answer::Messages(pending), size);
                }
                ExecutionOutcome::Messages(Ok(page)) => self.send_page(answers, tag, page, waker),
                ExecutionOutcome::Stream(Ok(read)) => send_records(answers, tag, false, &read),
                ExecutionOutcome::Stream(Err(error)) => answers.fail(tag, error),
                ExecutionOutcome::Messages(Err(error)) | ExecutionOutcome::Appended(Err(error)) => {
                    answers.fail(tag, error);
                }
            }
        }
        self.poll_archived(answers, waker)
    }

    /// Sends a page, now or when the archive has sent it.
    pub(super) fn send_page(
        &mut self,
        answers: &mut Answers,
        tag: Ticket,
        mut page: Pending<PageRead>,
        waker: &Waker,
    ) {
        match page.poll_answer(waker) {
            Poll::Ready(read) => send_read(answers, tag, read),
            Poll::Pending => self.await_archive(answers, tag, page),
        }
    }

    /// Returns the oldest request with its outcome, once it is known; starts it if necessary.
    fn poll_oldest(&mut self, waker: &Waker) -> Option<(Request, ExecutionOutcome)> {
        let oldest = self.waiting.front()?;
        let node = &self.node;
        let execution = self
            .under_way
            .get_or_insert_with(|| oldest.work.begin(node));
        let Poll::Ready(done) = execution.poll(waker) else {
            return None;
        };
        self.under_way = None;
        Some((self.waiting.pop_front()?, done))
    }

    /// Answers with pages from the archive.
    fn poll_archived(&mut self, answers: &mut Answers, waker: &Waker) -> bool {
        let mut index = 0;
        while index < self.archived.len() {
            if answers.is_unread() {
                return true;
            }
            let Poll::Ready(read) = self.archived[index].1.poll_answer(waker) else {
                index += 1;
                continue;
            };
            let (tag, _) = self.archived.swap_remove(index);
            answers.end_work(ARCHIVED_SIZE);
            send_read(answers, tag, read);
        }
        false
    }
}

impl Work {
    /// Returns the size of the request, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Append { batch, .. } => batch.size,
            Self::ReadStream(..) | Self::ReadMessages(..) => 0,
        }
    }

    /// Returns the charge of an append.
    fn into_charge(self) -> Option<Durable> {
        match self {
            Self::Append { charge, .. } => charge,
            Self::ReadStream(..) | Self::ReadMessages(..) => None,
        }
    }

    fn is_of_conversation(&self) -> bool {
        !matches!(self, Self::ReadStream(..))
    }

    fn begin(&self, node: &node::Node) -> Execution {
        match self {
            Self::ReadStream(stream, range) => match streams(node) {
                Ok(streams) => Execution::ReadStream(streams.read(stream, *range)),
                Err(error) => Execution::ReadStream(platform::Pending::known(Err(error))),
            },
            Self::ReadMessages(conversation, range) => {
                let (name, range) = (conversation.name().clone(), *range);
                Execution::ReadMessages(
                    node.offload(move |node| conversations(node)?.read_after(&name, range)),
                )
            }
            Self::Append {
                conversation,
                batch,
                ..
            } => {
                let (name, batch) = (conversation.name().clone(), batch.clone());
                Execution::Append(node.offload(move |node| {
                    let messages = batch.messages();
                    let batch = Batch {
                        expect: batch.expect,
                        messages: &messages,
                    };
                    conversations(node)?.append(&name, batch)
                }))
            }
        }
    }
}

impl Execution {
    fn poll(&mut self, waker: &Waker) -> Poll<ExecutionOutcome> {
        match self {
            Self::ReadStream(read) => read.poll_answer(waker).map(ExecutionOutcome::Stream),
            Self::ReadMessages(read) => read.poll_answer(waker).map(ExecutionOutcome::Messages),
            Self::Append(append) => append.poll_answer(waker).map(ExecutionOutcome::Appended),
        }
    }
}

impl OwnedBatch {
    fn new(batch: Batch<'_>) -> Self {
        let owned = |message: &NewMessage<'_>| OwnedMessage {
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
            messages: batch.messages.iter().map(owned).collect(),
            size: batch.size(),
        }
    }

    fn messages(&self) -> Vec<NewMessage<'_>> {
        self.messages.iter().map(OwnedMessage::lent).collect()
    }
}

impl OwnedMessage {
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

/// Returns the node's conversations.
pub(super) fn conversations(node: &node::Node) -> Result<&Conversations, ConversationError> {
    node.conversations().ok_or(ConversationError::NoStorage)
}
