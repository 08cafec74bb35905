//! The HTTP API: health, metrics, agents, streams, conversations, topics, quotas and administration.
//!
//! | path | answers | token |
//! |---|---|---|
//! | `/livez` | 200 while the process runs | – |
//! | `/readyz` | 200 if the node accepts work, else 503 with the reason | – |
//! | `/version` | software and protocol versions | – |
//! | `/openapi.json` | a machine-readable description of this API | – |
//! | `/ui/` | the console, a web page | – |
//! | `/metrics` | metrics as Prometheus or OpenMetrics text | any |
//! | `/v1/agents` | the subscribers of each name | any |
//! | `/v1/agents/{name}/…` | see `docs/messaging.md` | any; the name for mailboxes |
//! | `/v1/streams/…` | see `docs/streams.md` | any; the name for deletions |
//! | `/v1/connections` | the open connections | any |
//! | `/v1/history` | the last hour in numbers | any |
//! | `/v1/whoami`, `/v1/errors` | the client's token; the error codes | any |
//! | `/v1/cluster` | the members of the cluster | any |
//! | `/v1/config`, `/v1/doctor` | the configuration; the checks of the environment | admin |
//! | `/v1/conversations/…` | see `docs/conversations.md` | any |
//! | `/v1/topics/…`, `/v1/groups/…` | see `docs/topics.md` | any; admin for offsets of groups |
//! | `/v1/kafka/users/…` | see `docs/kafka.md` | admin |
//! | `/v1/take`, `/v1/settle`, … | see `docs/quotas.md` | any; admin for changes |
//! | `/v1/tickets` | short-lived replacements of a token in a URL, see `docs/reference/http.md` | any |
//!
//! Errors are RFC 9457 problem documents with a `code` of Telpher. The resources are crates of
//! their own (`http-*`); this one owns the sockets, authenticates requests and composes the routes.
//!
//! Invariant: *every request passes the checks of its host and origin, and every route with a client
//! is behind the authentication.*

mod about;
mod access;
mod authentication;
mod fast_path;
mod front;
pub mod head;
mod history;
mod listener;
mod local;
mod member_pages;
mod metrics;
mod openapi;
mod operations;
mod recent;
mod revocable;
mod routes;
mod tickets;
mod uploads;
mod view;
mod work;

pub use self::access::{Access, HostNames, Origins};
pub use http_agents::description_json;
pub use listener::{Options, Serving, Spawn, serve, serve_stream, spawn_here};
pub use local::{Answer, Local};
pub use member_pages::{MemberPages, Served as PageServed};
pub use metrics::EncodeMetrics;
pub use routes::routes;
pub use view::{agents_json, connections_json};
pub use work::{backlog_json, groups_json, topics_json};
