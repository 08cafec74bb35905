//! The responses of a leader, and the requests that wait for them.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use kafka::{EncodeError, FrameError};
use net::{Sink, Source};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::request::{PendingRequest, read};

/// Bytes of a response that say which one it is: size and correlation id.
const RESPONSE_HEAD_SIZE: usize = 8;

/// The reason why this node closes a connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum CloseCause {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("the client cannot be written to: {0}")]
    Write(#[from] io::Error),
    #[error("an answer cannot be encoded: {0}")]
    Encode(#[from] EncodeError),
    #[error("it was idle")]
    Idle,
    #[error("no leader answers a request for which clients know no such error")]
    Unanswered,
    #[error("the client has authenticated at a leader that leads no more")]
    Authenticated,
    #[error("the leader has ended within a response")]
    Torn,
    #[error("the leader answers another request than the oldest")]
    Order,
}

/// The requests that a leader has and has not answered, oldest first, each with its time.
#[derive(Default)]
pub(super) struct Unanswered {
    requests: Mutex<VecDeque<(PendingRequest, Instant)>>,
    /// Notified of each request.
    added: Notify,
}

impl Unanswered {
    pub(super) fn push(&self, asked: PendingRequest) {
        self.requests.lock().push_back((asked, Instant::now()));
        self.added.notify_one();
    }

    /// Takes all requests out.
    pub(super) fn take(&mut self) -> impl Iterator<Item = PendingRequest> + use<> {
        let requests = std::mem::take(self.requests.get_mut());
        requests.into_iter().map(|(asked, _)| asked)
    }

    fn pop(&self) -> Option<PendingRequest> {
        self.requests.lock().pop_front().map(|(asked, _)| asked)
    }

    /// Waits until the oldest request is late. It is to be called again after a response.
    async fn late(&self) {
        loop {
            let limit = {
                let requests = self.requests.lock();
                let oldest = requests.front();
                oldest.and_then(|(asked, at)| Some(*at + asked.answer_max()?))
            };
            match limit {
                Some(limit) => return sleep_until(limit).await,
                None => self.added.notified().await,
            }
        }
    }
}

/// The responses of a leader, which are passed on as they arrive.
pub(super) struct Responses {
    source: Box<dyn Source>,
    received: BytesMut,
    /// The size of the rest of the response that is passed on, in bytes.
    rest: usize,
}

impl Responses {
    pub(super) fn new(source: Box<dyn Source>) -> Self {
        Self {
            source,
            received: BytesMut::new(),
            rest: 0,
        }
    }

    /// Passes responses to the client until the leader has ended, is lost (`is_lost`), leads no more (`end`)
    /// or does not work.
    pub(super) async fn pass(
        mut self,
        client: &Arc<dyn Sink>,
        unanswered: &Unanswered,
        mut end: Pin<Box<dyn Future<Output = ()> + Send>>,
        is_lost: &Notify,
    ) -> Result<(), CloseCause> {
        loop {
            let is_whole = self.rest == 0;
            let has_more = tokio::select! {
                has_more = self.read() => has_more,
                () = &mut end => false,
                () = is_lost.notified() => false,
                () = unanswered.late(), if is_whole => false,
            };
            if !has_more {
                return match self.rest {
                    0 => Ok(()),
                    _ => Err(CloseCause::Torn),
                };
            }
            while let Some(part) = self.next_part(unanswered)? {
                net::write_all(&**client, &part).await?;
            }
        }
    }

    /// Receives bytes. Returns false at the end of the connection. Nothing is lost if the future is
    /// dropped.
    async fn read(&mut self) -> bool {
        let Self {
            source, received, ..
        } = self;
        read(&mut **source, |bytes| received.extend_from_slice(bytes)).await
    }

    /// Returns received bytes of one response, if there are any.
    fn next_part(&mut self, unanswered: &Unanswered) -> Result<Option<BytesMut>, CloseCause> {
        if self.rest == 0 {
            let Some(mut head) = self.received.get(..RESPONSE_HEAD_SIZE) else {
                return Ok(None);
            };
            let (size, correlation_id) = (head.get_u32(), head.get_i32());
            if !unanswered
                .pop()
                .is_some_and(|it| it.is_answered_by(correlation_id))
            {
                return Err(CloseCause::Order);
            }
            self.rest = size_of::<u32>() + size as usize;
        }
        if self.received.is_empty() {
            return Ok(None);
        }
        let part = self.received.split_to(self.rest.min(self.received.len()));
        self.rest -= part.len();
        Ok(Some(part))
    }
}
