//! Topics, consumer groups and their partitions.

use std::collections::{BTreeMap, BTreeSet};

use crate::sample::{History, Question, Sample, Values, count, entries, text};
use crate::table::{Cell, Column, Level, Table, column};

const TOPICS: &[Column] = &[
    column("TOPIC", "topic", 0),
    column("PARTITIONS", "partitions", 4),
    column("RECORDS/S", "records_per_second", 1),
    column("RECORDS", "records", 2),
    column("SIZE", "bytes", 3),
    column("GROUPS", "groups", 5),
    column("LAG", "lag", 1),
];

const GROUPS: &[Column] = &[
    column("GROUP", "group", 0),
    column("STATE", "state", 2),
    column("TOPICS", "topics", 4),
    column("PARTITIONS", "partitions", 5),
    column("LAG", "lag", 1),
    column("GROWTH/S", "growth_per_second", 3),
];

const PARTITIONS: &[Column] = &[
    column("PARTITION", "partition", 0),
    column("RECORDS/S", "records_per_second", 1),
    column("START", "start", 3),
    column("END", "end", 2),
    column("RECORDS", "records", 3),
    column("SIZE", "bytes", 4),
    column("LAG", "lag", 1),
];

const GROUP_PARTITIONS: &[Column] = &[
    column("TOPIC", "topic", 0),
    column("PARTITION", "partition", 1),
    column("LAG", "lag", 1),
    column("GROWTH/S", "growth_per_second", 2),
];

/// The lag of groups in one topic.
#[derive(Default)]
struct TopicLag<'a> {
    groups: BTreeSet<&'a str>,
    lag: u64,
    by_partition: BTreeMap<u64, u64>,
}

/// Returns the lag of all groups by topic.
fn lags(sample: &Sample) -> BTreeMap<&str, TopicLag<'_>> {
    let mut lags: BTreeMap<&str, TopicLag<'_>> = BTreeMap::new();
    for group in sample.list(&Question::Groups, "groups") {
        for partition in entries(group, "partitions") {
            let topic = lags.entry(text(&partition["topic"])).or_default();
            let lag = count(&partition["lag"]);
            topic.groups.insert(text(&group["group"]));
            topic.lag += lag;
            *topic
                .by_partition
                .entry(count(&partition["partition"]))
                .or_default() += lag;
        }
    }
    lags
}

/// Returns a row for each topic.
pub(super) fn topics(history: &History) -> Table {
    let now = history.now();
    let end = |it: &serde_json::Value| count(&it["end"]) as f64;
    let before = Values::of(history.before(), &Question::Topics, "topics", "name", end);
    let lags = lags(now);
    let mut table = Table::new(TOPICS);
    for topic in now.list(&Question::Topics, "topics") {
        let name = text(&topic["name"]);
        let lag = lags.get(name);
        let cells = vec![
            Cell::text(name),
            Cell::Count(count(&topic["partitions"])),
            Cell::number(history.rate(before.get(name), Some(end(topic)))),
            Cell::Count(count(&topic["records"])),
            Cell::Bytes(count(&topic["bytes"])),
            Cell::Count(lag.map_or(0, |it| it.groups.len() as u64)),
            Cell::count(lag.map(|it| it.lag)),
        ];
        table.push(name, cells, Level::Normal);
    }
    table
}

/// Returns a row for each consumer group.
pub(super) fn groups(history: &History) -> Table {
    let lag = |it: &serde_json::Value| count(&it["lag"]) as f64;
    let before = Values::of(history.before(), &Question::Groups, "groups", "group", lag);
    let mut table = Table::new(GROUPS);
    for group in history.now().list(&Question::Groups, "groups") {
        let (name, state) = (text(&group["group"]), text(&group["state"]));
        let partitions = entries(group, "partitions");
        let topics: BTreeSet<_> = partitions.iter().map(|it| text(&it["topic"])).collect();
        let cells = vec![
            Cell::text(name),
            Cell::text(state),
            Cell::Count(topics.len() as u64),
            Cell::Count(partitions.len() as u64 + count(&group["partitions_omitted"])),
            Cell::Count(count(&group["lag"])),
            Cell::number(history.change(before.get(name), Some(lag(group)))),
        ];
        let is_unread = state == "Empty" && lag(group) > 0.0;
        table.push(name, cells, Level::warning_if(is_unread));
    }
    table
}

/// Returns a row for each partition of a topic.
pub(super) fn partitions(history: &History, topic: &str) -> Table {
    let (now, question) = (history.now(), Question::Topic(topic.to_owned()));
    let before = history.before();
    let ends: BTreeMap<u64, f64> = before
        .map_or(&[][..], |it| it.list(&question, "state"))
        .iter()
        .map(|it| (count(&it["partition"]), count(&it["end"]) as f64))
        .collect();
    let lags = lags(now);
    let mut table = Table::new(PARTITIONS);
    for partition in now.list(&question, "state") {
        let number = count(&partition["partition"]);
        let (start, end) = (count(&partition["start"]), count(&partition["end"]));
        let lag = lags.get(topic);
        let lag = lag.and_then(|it| it.by_partition.get(&number).copied());
        let cells = vec![
            Cell::Count(number),
            Cell::number(history.rate(ends.get(&number).copied(), Some(end as f64))),
            Cell::Count(start),
            Cell::Count(end),
            Cell::Count(end.saturating_sub(start)),
            Cell::Bytes(count(&partition["size"])),
            Cell::count(lag),
        ];
        table.push(number.to_string(), cells, Level::Normal);
    }
    table
}

/// Returns a row for each partition that a group has committed an offset for.
pub(super) fn group_partitions(history: &History, wanted: &str) -> Table {
    let partitions_of = |sample: Option<&Sample>| {
        let groups = sample.map_or(&[][..], |it| it.list(&Question::Groups, "groups"));
        let group = groups.iter().find(|it| text(&it["group"]) == wanted);
        group.map_or(Vec::new(), |it| entries(it, "partitions").to_vec())
    };
    let key = |it: &serde_json::Value| format!("{} {}", text(&it["topic"]), it["partition"]);
    let before: BTreeMap<_, _> = partitions_of(history.before())
        .iter()
        .map(|it| (key(it), count(&it["lag"]) as f64))
        .collect();
    let mut table = Table::new(GROUP_PARTITIONS);
    for partition in partitions_of(Some(history.now())) {
        let (key, lag) = (key(&partition), count(&partition["lag"]));
        let cells = vec![
            Cell::text(text(&partition["topic"])),
            Cell::Count(count(&partition["partition"])),
            Cell::Count(lag),
            Cell::number(history.change(before.get(&key).copied(), Some(lag as f64))),
        ];
        table.push(key, cells, Level::Normal);
    }
    table
}
