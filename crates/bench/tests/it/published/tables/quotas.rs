//! Takes from quotas.

use crate::published::table::{CPU, RATE, Table, pair, text};

pub(super) fn takes() -> Table {
    let row = |words: &str, suite: &'static str, ours: &str, theirs: &str| {
        let [subject, baseline] = [("telpher", ours), theirs.split_once(' ').unwrap()]
            .map(|(target, shape)| format!("{target}-quota-take-{shape}"));
        vec![
            text(words),
            text(format!("`{suite}`")),
            pair(suite, &*subject, &*baseline, RATE),
            pair(suite, subject, baseline, CPU),
        ]
    };
    let one = "c50-s17-r0-f1-agents=10000";
    let sixteen = "c50-s17-r0-f16-agents=10000";
    let closed =
        |words, ours, rival: &str| row(words, "quota-closed", ours, &format!("{rival} {ours}"));
    Table {
        name: "quotas",
        head: &["compared with", "results", "rate", "server CPU per take"],
        labels: 2,
        rows: vec![
            closed("Express with Redis, one in flight", one, "express"),
            closed("Express with Redis, 16 in flight", sixteen, "express"),
            closed("throttlecrab, one in flight", one, "throttlecrab"),
            closed("throttlecrab, 16 in flight", sixteen, "throttlecrab"),
            row(
                "throttlecrab with 16 in flight; Telpher with arrays of 100",
                "quota-batch",
                "c8-s17-r0-f1-agents=10000-batch=100",
                "throttlecrab c8-s17-r0-f16-agents=10000",
            ),
            row(
                "a Redis script per take; Telpher leasing from that Redis, one agent, arrays of 100",
                "quota-redis",
                "c48-s17-r0-f1-agents=1-batch=100-capacity=10000000-nodes=1",
                "redis-script c48-s17-r0-f16-agents=1-capacity=10000000",
            ),
        ],
    }
}
