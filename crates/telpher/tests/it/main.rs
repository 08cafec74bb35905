//! Integration tests of the executable.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "what goes wrong in a test ends it, and a test that hangs ends by the real clock"
)]

mod access;
mod archive;
mod backup;
mod bench;
mod bench_journal;
mod bench_kafka;
mod bench_quota;
mod bench_slim;
mod bench_store;
mod bridge;
mod browser;
mod clients;
mod cluster;
mod cluster_of_one;
mod command_output;
mod config;
mod contexts;
mod conversation;
mod demo;
mod descriptors;
mod doctor;
mod documents;
mod failures;
mod group_commands;
mod http_agent;
mod http_limits;
mod http_worker;
mod inspect;
mod kafka;
mod kill9;
mod kill9_conversations;
mod kill9_erasures;
mod listen;
mod logs;
mod mailboxes_and_streams;
mod metadata;
mod metrics;
mod monitoring;
mod native;
mod packaging;
mod protocol;
mod quota_commands;
mod quotas;
mod reconnect;
mod redis;
mod revocation;
mod serve;
mod shared_quotas;
mod shutdown;
mod slim;
#[path = "../../../door-slim/tests/it/python.rs"]
mod slim_python;
mod stalled_clients;
mod storage;
mod support;
mod telemetry;
mod tls;
mod tokens;
mod top;
mod topic_commands;
mod upgrade;
mod webhooks;
mod webhooks_tls;
