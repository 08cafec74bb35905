//! Messages through a node, and calls.

use bench::model::Metric;

use crate::published::table::{CPU, P50, RATE, Table, pair, text};

pub(super) fn messages() -> Table {
    let loads = [
        ("requests, 1 in flight", "request-reply-c1-s16-r0-f1"),
        ("requests, 10 in flight", "request-reply-c1-s16-r0-f10"),
        ("requests, 64 in flight", "request-reply-c1-s16-r0-f64"),
        ("publish to 1 subscriber", "publish-c1-s16-r0-subscribers=1"),
        (
            "publish to 10 subscribers",
            "publish-c1-s16-r0-subscribers=10",
        ),
    ];
    let row = |(words, load): (&str, &str)| {
        let cell = |metric| {
            let of = |target: &str| format!("{target}-agent-{load}");
            pair("node-messages", of("telpher"), of("nats"), metric)
        };
        vec![text(words), cell(RATE), cell(CPU)]
    };
    Table {
        name: "messaging",
        head: &["load", "rate", "node CPU per message"],
        labels: 1,
        rows: loads.into_iter().map(row).collect(),
    }
}

pub(super) fn rpc() -> Table {
    let placements = [
        ("two CPUs", "rpc-two-cpus", "two-cpus", "serial"),
        ("unpinned", "rpc-unpinned", "unpinned", "serial"),
        ("one CPU", "rpc-same-cpu", "same-cpu", "blocking"),
    ];
    let mut rows = Vec::new();
    for (words, suite, placement, one_mode) in placements {
        let key = |target: &str, mode: &str, depth: u32| {
            format!(
                "{target}-rpc-{mode}-c1-s128-r0-f{depth}-placement={placement}-transport=tcp-via=direct"
            )
        };
        let mut row = |words: String, modes: [&str; 2], depth: u32, metric: Metric| {
            let rivals = ["floor", "zmq", "tarpc", "tonic"].into_iter();
            let cells = rivals.map(|rival| {
                let (ours, theirs) = (key("telpher", modes[0], depth), key(rival, modes[1], depth));
                pair(suite, ours, theirs, metric)
            });
            rows.push([text(words)].into_iter().chain(cells).collect());
        };
        let one = format!("{words}: 1 in flight, {one_mode}");
        row(format!("{one}, rate"), [one_mode, "serial"], 1, RATE);
        row(format!("{one}, p50"), [one_mode, "serial"], 1, P50);
        for depth in [10, 64, 256] {
            let load = format!("{words}: {depth} in flight, callbacks, rate");
            row(load, ["callback", "callback"], depth, RATE);
        }
    }
    Table {
        name: "rpc",
        head: &[
            "placement, load",
            "TCP echo (upper bound)",
            "ZeroMQ",
            "tarpc",
            "tonic",
        ],
        labels: 1,
        rows,
    }
}
