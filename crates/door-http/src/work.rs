//! Mailboxes, topics and consumer groups of the node as JSON, for the node's own agent. The lists
//! are bounded: they have the largest entries, and the number of the others.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use messaging::mailboxes::{Backlog, MailboxBacklog};
use node::Node;
use serde_json::{Value, json};
use topic_service::{GroupLag, Topic, Topics};
use topics::groups::State;

/// Most entries of a list.
const ENTRIES_MAX: usize = 1_000;

/// Returns `{"mailboxes": [...], "omitted": N, ...}`, those with the most messages first. May read
/// from disk.
pub fn backlog_json(node: &Node) -> Value {
    let mailboxes = node.messaging().mailboxes();
    let backlog = mailboxes.map_or_else(Backlog::default, |it| it.backlog(ENTRIES_MAX));
    let entries: Vec<_> = backlog.mailboxes.iter().map(mailbox).collect();
    json!({
        "messages": backlog.messages,
        "dead": backlog.dead,
        "mailboxes": entries,
        "omitted": backlog.omitted,
    })
}

/// Returns `{"topics": [...], "omitted": N}`, those with the most appended records first.
pub fn topics_json(node: &Node) -> Value {
    let Some(topics) = node.topics() else {
        return json!({ "topics": [], "omitted": 0 });
    };
    let mut sizes: Vec<_> = topics
        .list()
        .iter()
        .map(|topic| TopicSize::of(&topics, topic))
        .collect();
    sizes.sort_by(|one, other| {
        (Reverse(one.end), &one.name).cmp(&(Reverse(other.end), &other.name))
    });
    let omitted = sizes.len().saturating_sub(ENTRIES_MAX);
    sizes.truncate(ENTRIES_MAX);
    let entries: Vec<_> = sizes.iter().map(TopicSize::json).collect();
    json!({ "topics": entries, "omitted": omitted })
}

/// Returns `{"groups": [...], "omitted": N}`, those with the largest lag first. The lag of a group is
/// the sum over all its partitions; the list of them has the partitions with the largest lags of all
/// groups, and the number of the others.
pub fn groups_json(node: &Node) -> Value {
    let Some(topics) = node.topics() else {
        return json!({ "groups": [], "omitted": 0 });
    };
    let (lags, _) = topics.group_lags(usize::MAX);
    let mut by_group: BTreeMap<&str, GroupLags<'_>> = BTreeMap::new();
    for (index, lag) in lags.iter().enumerate() {
        by_group.entry(&lag.group).or_default().add(lag, index);
    }
    let none = GroupLags::default();
    let states = topics.group_states();
    let omitted = states.len().saturating_sub(ENTRIES_MAX);
    let mut groups: Vec<_> = states
        .iter()
        .map(|(name, state)| (&**name, *state, by_group.get(&**name).unwrap_or(&none)))
        .collect();
    groups.sort_by_key(|(name, _, lags)| (Reverse(lags.sum), *name));
    groups.truncate(ENTRIES_MAX);
    let groups: Vec<_> = groups
        .into_iter()
        .map(|(name, state, lags)| lags.json(name, state))
        .collect();
    json!({ "groups": groups, "omitted": omitted })
}

/// The lag of a group.
#[derive(Default)]
struct GroupLags<'a> {
    sum: u64,
    /// Its largest lags, if they are among the largest ones of all groups.
    largest: Vec<&'a GroupLag>,
    /// The number of its other partitions.
    omitted: usize,
}

impl<'a> GroupLags<'a> {
    /// Adds a lag, whose index counts the larger ones of all groups.
    fn add(&mut self, lag: &'a GroupLag, index: usize) {
        self.sum += lag.lag;
        match index < ENTRIES_MAX {
            true => self.largest.push(lag),
            false => self.omitted += 1,
        }
    }

    fn json(&self, name: &str, state: State) -> Value {
        let partitions = self.largest.iter();
        let partitions: Vec<_> = partitions
            .map(|it| json!({ "topic": it.topic, "partition": it.partition, "lag": it.lag }))
            .collect();
        json!({
            "group": name,
            "state": state.name(),
            "lag": self.sum,
            "partitions": partitions,
            "partitions_omitted": self.omitted,
        })
    }
}

fn mailbox(backlog: &MailboxBacklog) -> Value {
    let oldest_age_ms = backlog.oldest_age.map(|age| age.as_millis() as u64);
    json!({
        "name": backlog.name,
        "messages": backlog.messages,
        "dead": backlog.dead,
        "oldest_age_ms": oldest_age_ms,
    })
}

/// The sums of the partitions of a topic.
struct TopicSize {
    name: String,
    partitions: u32,
    /// Records that readers see.
    records: u64,
    /// Records that were ever appended.
    end: u64,
    bytes: u64,
}

impl TopicSize {
    fn of(topics: &Topics, topic: &Topic) -> Self {
        let about = topic.about();
        let mut size = Self {
            name: about.name.clone(),
            partitions: about.partitions,
            records: 0,
            end: 0,
            bytes: 0,
        };
        for partition in 0..about.partitions {
            // A partition of a topic that was deleted meanwhile counts as empty.
            if let Ok(view) = topics.view(topic, partition) {
                size.records += view.high_watermark.saturating_sub(view.log_start);
                size.end += view.high_watermark;
                size.bytes += view.size;
            }
        }
        size
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "partitions": self.partitions,
            "records": self.records,
            "end": self.end,
            "bytes": self.bytes,
        })
    }
}
