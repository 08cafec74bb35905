//! Admitting new members, at the leader.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use journal::{AppendError, Journal, MEMBERS_STREAM, ReadLimit, ShardId, Status, StreamId};
use net::Stream;
use openraft::ChangeMembers;
use tokio::time::{Instant, sleep};

use crate::group::{ChangeError, Group};
use crate::link::{Image, JoinAnswer, answer_join, read_request, send_image};
use crate::member::Addresses;
use crate::node::Node;
use crate::raft::decode_membership;
use crate::wait::decided;

/// Stream in shard 0 with a record for each id that was given out: the id is the offset plus one. So
/// no id is given out twice, also after its member was removed.
pub const IDS_STREAM: StreamId = StreamId(u64::MAX - 1);

/// Time limit until all shards have a new member.
const MEMBER_MAX: Duration = Duration::from_secs(60);

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

impl Node {
    /// Serves a node that asks to become a member: gives it an id, adds it without a vote, and sends
    /// it an image of what this journal has filed. `image` makes the image; it may block.
    pub async fn admit(
        &self,
        mut stream: Stream,
        now_ms: u64,
        image: impl FnOnce() -> io::Result<Box<dyn Image>> + Send + 'static,
    ) -> io::Result<()> {
        let addresses = read_request(&mut stream).await?;
        // Nothing is purged until the image is made: it must end where the log begins.
        let held = self.purging.lock().await;
        let added = match self.add_newcomer(addresses, now_ms).await {
            Ok(id) => id,
            Err(ChangeError::Moved { leader }) => {
                let members = self.members();
                let leader = members.iter().find(|it| Some(it.id) == leader);
                let leader = leader.map(|it| it.addresses.link.clone());
                let elsewhere = JoinAnswer::Elsewhere(leader.unwrap_or_default());
                return answer_join(&*stream.sink, &elsewhere).await;
            }
            Err(error) => {
                return answer_join(&*stream.sink, &JoinAnswer::Refused(error.to_string())).await;
            }
        };
        let made = tokio::task::spawn_blocking(image).await;
        let image = made.map_err(io::Error::other)??;
        drop(held);
        let accepted = JoinAnswer::Accepted {
            cluster: self.cluster(),
            id: added,
        };
        answer_join(&*stream.sink, &accepted).await?;
        send_image(&*stream.sink, image.disk()).await
    }

    /// Adds a member with a new id to all shards, without a vote. From then on, nothing that it lacks
    /// is purged.
    async fn add_newcomer(&self, addresses: Addresses, now_ms: u64) -> Result<u64, ChangeError> {
        let refused = |reason: String| ChangeError::Refused { reason };
        let checked = addresses.check();
        checked.map_err(|error| refused(error.to_string()))?;
        let first = self.group(ShardId(0));
        if first.reigns.borrow().is_none() {
            return Err(first.moved());
        }
        let known = self.members();
        let mut known = known.iter();
        if let Some(member) = known.find(|it| it.addresses.link == addresses.link) {
            let reason = format!(
                "node {} has the address {}: remove it first, if it is gone for good",
                member.id, addresses.link
            );
            return Err(refused(reason));
        }
        let deadline = Instant::now() + MEMBER_MAX;
        let groups = self.groups();
        while !groups.iter().all(|it| it.log.has_filed_purged()) {
            if Instant::now() > deadline {
                return Err(refused("filing the purged log takes too long".to_owned()));
            }
            sleep(PAUSE).await;
        }
        let id = new_id(first, now_ms).await?;
        let added = ChangeMembers::AddNodes([(id, addresses)].into());
        first.change(added).await?;
        loop {
            let has_member = |group: &Group| {
                let (membership, is_settled) = group.membership();
                is_settled && membership.get_node(&id).is_some()
            };
            if groups.iter().all(has_member) {
                return Ok(id);
            }
            if Instant::now() > deadline {
                return Err(ChangeError::NoQuorum);
            }
            sleep(PAUSE).await;
        }
    }
}

/// Gives out an id that no member has or had.
async fn new_id(group: &Group, now_ms: u64) -> Result<u64, ChangeError> {
    let (membership, _) = group.membership();
    let members = membership.nodes().map(|(id, _)| *id);
    let founders = founders(&group.log.journal);
    let highest = members.chain(founders).max().unwrap_or_default();
    let deadline = Instant::now() + MEMBER_MAX;
    while Instant::now() < deadline {
        let journal = &group.log.journal;
        let appended = journal
            .lock(ShardId(0), now_ms)
            .append(IDS_STREAM, None, 0, &[]);
        let appended = match appended {
            Ok(appended) => appended,
            Err(AppendError::Moved) => return Err(group.moved()),
            Err(AppendError::Full) => {
                sleep(PAUSE).await;
                continue;
            }
            Err(error) => {
                let reason = error.to_string();
                return Err(ChangeError::Refused { reason });
            }
        };
        let status = decided(|waker| journal.notify(appended.ticket, waker));
        match status.await {
            Status::Durable if appended.offset + 1 > highest => return Ok(appended.offset + 1),
            Status::Durable => {}
            _ => return Err(group.moved()),
        }
    }
    Err(ChangeError::NoQuorum)
}

/// Returns the highest id that a member has or had in a journal that no consensus uses; 0 if there
/// was none.
pub(crate) fn highest_id(journal: &Journal) -> u64 {
    let ids = journal.stream(ShardId(0), IDS_STREAM);
    let given = ids.map_or(0, |ids| ids.next);
    founders(journal).into_iter().fold(given, u64::max)
}

/// Returns the ids of the first members.
fn founders(journal: &Journal) -> BTreeSet<u64> {
    let limit = ReadLimit {
        records: 1,
        bytes: usize::MAX,
    };
    let read = journal.read(ShardId(0), MEMBERS_STREAM, 0, limit);
    let first = read.ok().and_then(|read| read.records.into_iter().next());
    let decoded = first.and_then(|record| decode_membership(record.payload).ok());
    decoded.map_or_else(BTreeSet::new, |(_, membership)| {
        membership.nodes().map(|(id, _)| *id).collect()
    })
}
