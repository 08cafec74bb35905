//! The members of a cluster.

use crate::sample::{History, Question, count, text};
use crate::table::{Cell, Column, Level, Table, column};

const MEMBERS: &[Column] = &[
    column("ID", "id", 0),
    column("NAME", "name", 1),
    column("ROLE", "role", 1),
    column("IN SYNC", "in_sync", 1),
    column("BEHIND", "behind_blocks", 2),
    column("BEHIND/S", "behind_growth_per_second", 5),
    column("CLOCK AHEAD", "clock_ahead_ms", 4),
    column("SHARDS LED", "shards_led", 3),
    column("LINK", "link", 3),
];

/// Returns a row for each member.
pub(super) fn cluster(history: &History) -> Table {
    let (now, question) = (history.now(), Question::Cluster);
    let leader = match now.answers.get(&question) {
        Some(Ok(answer)) => answer["leader"].clone(),
        _ => serde_json::Value::Null,
    };
    let earlier = |id: u64| {
        let nodes = history.before()?.list(&question, "nodes").iter();
        let node = nodes.clone().find(|it| count(&it["id"]) == id)?;
        node["behind_blocks"].as_f64()
    };
    let mut table = Table::new(MEMBERS);
    for node in now.list(&question, "nodes") {
        let id = count(&node["id"]);
        let behind = node["behind_blocks"].as_u64();
        let is_in_sync = node["in_sync"] == true;
        let is_kept_out = node["kept_out"].is_string();
        let role = match (node["id"] == leader, is_kept_out) {
            (true, _) => "leader",
            (false, true) => "kept out",
            (false, false) => text(&node["role"]),
        };
        let growth = history.change(earlier(id), behind.map(|it| it as f64));
        let clock_ahead = node["clock_ahead_ms"].as_f64();
        let cells = vec![
            Cell::Count(id),
            Cell::text(text(&node["name"])),
            Cell::text(role),
            Cell::text(if is_in_sync { "yes" } else { "no" }),
            Cell::count(behind),
            Cell::number(growth),
            Cell::number(clock_ahead),
            Cell::Count(count(&node["shards_led"])),
            Cell::text(text(&node["link"])),
        ];
        let level = Level::warning_if(!is_in_sync || is_kept_out);
        table.push(id.to_string(), cells, level);
    }
    table
}
