//! Probes, metrics and the console of a member of a cluster that has no services, because another one
//! leads or its data is damaged. All other requests are answered with the reason.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use door::Gate;
use http_api::{Problem, bearer_of, unauthenticated};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use model::ErrorCode;
use platform::Membership;
use store::StorageView;
use tokio::net::TcpStream;

use crate::metrics::{Format, render_member};

/// Time limit for the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(10);

/// Request lines of the pages.
const LINES: [&[u8]; 3] = [b"GET /livez", b"GET /readyz", b"GET /metrics"];

/// Request line of the console, whose files are below its path.
const CONSOLE: &[u8] = b"GET /ui";

/// Reason of a refusal while a member is known to lead.
const NO_ANSWER: &str =
    "the member that leads does not answer; wait a moment and repeat the request";

/// The pages of a member.
#[derive(Clone)]
pub struct MemberPages {
    /// The members, if they are known.
    pub membership: Option<Arc<dyn Membership>>,
    /// Returns the state of the journal, if it is open.
    pub storage: Option<Arc<dyn Fn() -> StorageView + Send + Sync>>,
    /// Checks the tokens of those that read the metrics.
    pub gate: Arc<dyn Gate>,
    /// Returns the reason why the member is not ready, if it is not.
    pub unready: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

/// Whether the pages serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// They do.
    Yes,
    /// They do not.
    No,
    /// More bytes of its first line are needed.
    Unknown,
}

impl MemberPages {
    /// Returns whether the pages serve a request that begins with these bytes.
    pub fn serves(line: &[u8]) -> Served {
        for page in LINES.into_iter().chain([CONSOLE]) {
            match line.strip_prefix(page) {
                Some([]) => return Served::Unknown,
                Some([b' ' | b'?', ..]) => return Served::Yes,
                Some([b'/', ..]) if page == CONSOLE => return Served::Yes,
                Some(_) => {}
                None if page.starts_with(line) => return Served::Unknown,
                None => {}
            }
        }
        Served::No
    }

    /// Serves one request of a connection.
    pub async fn serve(&self, socket: TcpStream) {
        let router = Router::new()
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .merge(http_ui::routes())
            .fallback(refuse)
            .with_state(self.clone());
        let serving = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_MAX)
            .keep_alive(false)
            .serve_connection(TokioIo::new(socket), TowerToHyperService::new(router));
        if let Err(error) = serving.await {
            tracing::debug!(%error, "HTTP connection ended");
        }
    }
}

async fn readyz(State(pages): State<MemberPages>) -> Response {
    match (pages.unready)() {
        None => "ready\n".into_response(),
        Some(reason) => Problem::of(ErrorCode::Unavailable, reason).into_response(),
    }
}

async fn metrics(
    State(pages): State<MemberPages>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let admitted = pages.gate.admit(bearer_of(&headers));
    admitted.map_err(unauthenticated)?;
    let accept = headers.get_all(header::ACCEPT).into_iter();
    let format = Format::of(accept.filter_map(|value| value.to_str().ok()));
    let storage = pages.storage.map(|view| view());
    let page = render_member(pages.membership, storage, format);
    Ok(([(header::CONTENT_TYPE, format.content_type())], page).into_response())
}

async fn refuse(State(pages): State<MemberPages>) -> Problem {
    let reason = (pages.unready)();
    let reason = reason.unwrap_or_else(|| NO_ANSWER.to_owned());
    Problem::of(ErrorCode::Unavailable, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_known_by_their_first_line() {
        for (line, served) in [
            (&b"GET /readyz HTTP/1.1"[..], Served::Yes),
            (b"GET /metrics?a=1", Served::Yes),
            (b"GET /livez ", Served::Yes),
            (b"GET /livez", Served::Unknown),
            (b"GET /", Served::Unknown),
            (b"", Served::Unknown),
            (b"GET /ui HTTP/1.1", Served::Yes),
            (b"GET /ui/", Served::Yes),
            (b"GET /ui/app-1.js HTTP/1.1", Served::Yes),
            (b"GET /ui", Served::Unknown),
            (b"GET /uix", Served::No),
            (b"GET /livez/", Served::No),
            (b"GET /livezz", Served::No),
            (b"GET /v1/agents", Served::No),
            (b"POST /metrics ", Served::No),
        ] {
            assert_eq!(MemberPages::serves(line), served, "{line:?}");
        }
    }
}
