//! The connection of a client, and the successive connections to leaders that serve it.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use net::{Output, Sink, Stream};
use platform::NotDurable;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::request::{PendingRequest, Requests, VERSIONS_MAX};
use super::responses::{CloseCause, Responses, Unanswered};
use super::{Follower, Leader, LeaderStream};
use crate::inbox::Trust;
use crate::listener::BrokerAddress;
use crate::reply::Reply;

/// Time for which a request waits for a leader before it is answered with an error.
const ANSWERED_WAIT_MAX: Duration = Duration::from_secs(1);

/// Time for which a request waits that is not answered without a leader. The connection ends then.
const UNANSWERED_WAIT_MAX: Duration = Duration::from_secs(3);

/// The connection of a client.
pub(super) struct Connection<'a, L> {
    follower: &'a Follower,
    leader: &'a L,
    /// The address at which the client is told to find this broker.
    own: BrokerAddress,
    requests: Requests,
    sink: Arc<dyn Sink>,
    unanswered: Unanswered,
    /// The client has begun to authenticate at the leader.
    is_authenticating: bool,
}

/// The side that has ended an exchange.
enum ExchangeEnd {
    Client,
    Leader,
}

impl<'a, L: Leader> Connection<'a, L> {
    pub(super) fn new(
        follower: &'a Follower,
        leader: &'a L,
        own: BrokerAddress,
        stream: Stream,
    ) -> Self {
        Self {
            follower,
            leader,
            own,
            requests: Requests::new(stream.source),
            sink: stream.sink,
            unanswered: Unanswered::default(),
            is_authenticating: false,
        }
    }

    /// Serves the client until it disconnects.
    pub(super) async fn run(mut self) -> Result<(), CloseCause> {
        let idle_timeout = self.follower.options.idle_timeout;
        loop {
            let trust = self.trust();
            let next = timeout(idle_timeout, self.requests.next(trust));
            let Some(frame) = next.await.map_err(|_| CloseCause::Idle)?? else {
                return Ok(());
            };
            let Some((leader, frame)) = self.reach(frame).await? else {
                continue;
            };
            match self.exchange(leader, frame).await? {
                ExchangeEnd::Client => return Ok(()),
                ExchangeEnd::Leader => self.refuse_unanswered().await?,
            }
        }
    }

    /// Connects to the leader for a request, and returns both. Without a leader, returns `None` after all
    /// received requests were answered here.
    async fn reach(
        &mut self,
        mut frame: Bytes,
    ) -> Result<Option<(LeaderStream, Bytes)>, CloseCause> {
        let wait_max = match PendingRequest::of(&frame).is_for_versions() {
            true => VERSIONS_MAX,
            false => ANSWERED_WAIT_MAX,
        };
        if let Some(leader) = self.leader.connect(wait_max).await {
            return Ok(Some((leader, frame)));
        }
        loop {
            let Some(reply) = self.refusal(PendingRequest::of(&frame), NotDurable::Moved) else {
                let leader = self.leader.connect(UNANSWERED_WAIT_MAX).await;
                let leader = leader.ok_or(CloseCause::Unanswered)?;
                return Ok(Some((leader, frame)));
            };
            self.write(reply).await?;
            let trust = self.trust();
            // The client has waited for the next ones, too.
            match self.requests.received(trust)? {
                Some(next) => frame = next,
                None => return Ok(None),
            }
        }
    }

    /// Returns how large frames may be. The leader checks it again.
    fn trust(&self) -> Trust {
        let is_open = || self.follower.open_services(self.leader).is_some();
        match self.is_authenticating || is_open() {
            true => self.admitted(),
            false => Trust::Stranger,
        }
    }

    fn admitted(&self) -> Trust {
        Trust::Admitted {
            frame_size_max: self.follower.options.frame_size_max,
        }
    }

    /// Answers what the leader has not answered. It may be executed or not.
    async fn refuse_unanswered(&mut self) -> Result<(), CloseCause> {
        if self.is_authenticating {
            return Err(CloseCause::Authenticated);
        }
        for asked in self.unanswered.take() {
            let reply = self.refusal(asked, NotDurable::Cut);
            self.write(reply.ok_or(CloseCause::Unanswered)?).await?;
        }
        Ok(())
    }

    fn refusal(&self, asked: PendingRequest, error: NotDurable) -> Option<Reply> {
        let services = self.follower.open_services(self.leader);
        self.follower.refuse(asked, error, &self.own, services)
    }

    async fn write(&mut self, reply: Reply) -> Result<(), CloseCause> {
        // A refusal has no records, so all of it is in the buffer.
        let mut out = Output::default();
        reply.write(&mut out)?;
        Ok(net::write_all(&*self.sink, out.buffer()).await?)
    }

    /// Passes requests to a leader, beginning with `frame`, and its answers to the client.
    async fn exchange(
        &mut self,
        leader: LeaderStream,
        frame: Bytes,
    ) -> Result<ExchangeEnd, CloseCause> {
        let LeaderStream { stream, end } = leader;
        let Stream { source, sink, .. } = stream;
        let is_lost = Notify::new();
        let (trust, admitted) = (self.trust(), self.admitted());
        let Self {
            requests,
            unanswered,
            is_authenticating,
            sink: client,
            ..
        } = self;
        // A leader may end before the first poll of `outward`. The request must be answered then, too.
        record(&frame, unanswered, is_authenticating);
        let outward = async {
            let mut frame = frame;
            loop {
                if write_frame(&*sink, &frame).await.is_err() {
                    // A response may be on its way to the client, which must be complete.
                    is_lost.notify_one();
                    pending::<()>().await;
                }
                let trust = match *is_authenticating {
                    true => admitted,
                    false => trust,
                };
                frame = match requests.next(trust).await? {
                    Some(next) => next,
                    None => return Ok::<_, CloseCause>(ExchangeEnd::Client),
                };
                record(&frame, unanswered, is_authenticating);
            }
        };
        let inward = Responses::new(source).pass(client, unanswered, end, &is_lost);
        let ended = tokio::select! {
            ended = outward => ended,
            ended = inward => ended.map(|()| ExchangeEnd::Leader),
        };
        sink.close();
        ended
    }
}

/// Records a request that is passed to a leader.
fn record(frame: &Bytes, unanswered: &Unanswered, is_authenticating: &mut bool) {
    let asked = PendingRequest::of(frame);
    *is_authenticating |= asked.is_for_authentication();
    if asked.has_answer() {
        unanswered.push(asked);
    }
}

/// Writes a frame with its size.
async fn write_frame(sink: &dyn Sink, frame: &Bytes) -> io::Result<()> {
    // The size of a frame that was received is less than 2 GiB.
    let mut bytes = (frame.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(frame);
    net::write_all(sink, &bytes).await
}
