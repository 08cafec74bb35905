//! Table of the README.

use crate::published::table::{RATE, Table, pair, text};

/// The table of the README: one comparison of each part, and some that Telpher loses.
pub(in crate::published) fn overview() -> Table {
    let row = |words: &str, suite: &'static str, subject: &str, baseline: &str| {
        vec![text(words), pair(suite, subject, baseline, RATE)]
    };
    let requests = "agent-request-reply-c1-s16-r0-f64";
    let rpc = |target: &str| {
        format!("{target}-rpc-callback-c1-s128-r0-f64-placement=unpinned-transport=tcp-via=direct")
    };
    let appends = "store-append-c30-s256-r0-f5";
    let takes = "quota-take-c50-s17-r0-f16-agents=10000";
    let produce = "kafka-connections-c128-s256-r0-f1-acks=all";
    let bulk = "kafka-bulk-c8-s1024-r0-f512-acks=all";
    let slim = "agent-request-reply-c1-s1024-r0-f1-applications=slimctl-protocol=slim";
    let reliable = "agent-request-reply-c1-s16-r0-f1-applications=python-reliable-protocol=slim";
    let ours = |shape: &str| format!("telpher-{shape}");
    let theirs = |target: &str, shape: &str| format!("{target}-{shape}");
    let api = format!("telpher-{appends}-door=native");
    Table {
        name: "overview",
        head: &["load, compared with", "ratio of rates"],
        labels: 1,
        rows: vec![
            row(
                "requests through a node, 64 in flight, NATS core",
                "node-messages",
                &ours(requests),
                &theirs("nats", requests),
            ),
            row(
                "direct calls, 64 in flight, tonic",
                "rpc-unpinned",
                &rpc("telpher"),
                &rpc("tonic"),
            ),
            row(
                "direct calls, 64 in flight, a raw TCP echo",
                "rpc-unpinned",
                &rpc("telpher"),
                &rpc("floor"),
            ),
            row(
                "durable messages in conversations, PostgreSQL",
                "store",
                &api,
                &theirs("postgres", appends),
            ),
            row(
                "durable messages in conversations, Redis with `appendfsync always`",
                "store",
                &api,
                &theirs("redis", appends),
            ),
            row(
                "quota takes, 16 in flight, Express with Redis",
                "quota-closed",
                &ours(takes),
                &theirs("express", takes),
            ),
            row(
                "durable Kafka produce, one in flight on each of 128 connections, Apache Kafka with \
                 `flush.messages=1`",
                "kafka-acks",
                &format!("telpher-{produce}-durability=disk"),
                &theirs("kafka-flush", produce),
            ),
            row(
                "Kafka produce in bulk, Telpher durable, Apache Kafka's defaults (no sync)",
                "kafka-bulk",
                &format!("telpher-{bulk}-durability=disk"),
                &theirs("kafka", bulk),
            ),
            row(
                "SLIM request-reply, 1 KiB, SLIM's own node",
                "slim-nodes",
                &ours(slim),
                &theirs("slim", slim),
            ),
            row(
                "SLIM request-reply in reliable sessions, 16 B, SLIM's own node",
                "slim-reliable",
                &ours(reliable),
                &theirs("slim", reliable),
            ),
        ],
    }
}
