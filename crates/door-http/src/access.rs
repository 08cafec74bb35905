//! Host and origin checks of the HTTP listener, made before every route.
//!
//! A web page in a browser sends requests to every address that its machine reaches, also to a node on
//! loopback that requires no token. Two checks keep foreign pages out:
//!
//! - **Host.** A request must name the node by an IP address, by `localhost`, by a name of the TLS
//!   certificate or by one of `http.hosts`. A page that had its own name resolved to the node's address
//!   (DNS rebinding) cannot do that. While tokens are required every name is accepted, as such a page
//!   has no token.
//! - **Origin.** A request that a browser made for a page of another origin is refused unless the origin
//!   is one of `http.origins`. Pages of those origins get CORS answers. A link to the console may be
//!   anywhere: opening it in a tab of its own is permitted.
//!
//! Clients that are no browsers send neither `Origin` nor `Sec-Fetch-Site`.

mod cors;
mod host;
mod lists;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;
use http_api::Problem;
use model::ErrorCode;
use net::ServerIdentity;
use parking_lot::Mutex;

pub use lists::{HostNames, Origins};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: &str = "sec-fetch-mode";
const SEC_FETCH_DEST: &str = "sec-fetch-dest";

/// Most refused hosts and origins that are logged, each once.
const LOGGED_MAX: usize = 32;

/// The names of this node and the origins whose pages may use it.
#[derive(Debug, Default)]
pub struct Access {
    hosts: HostNames,
    origins: Origins,
    identity: Option<Arc<ServerIdentity>>,
    logged: Mutex<BTreeSet<String>>,
}

/// The admission of a request that may be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Admission {
    /// The origin of the page that made the request, if it is one of `http.origins`.
    origin: Option<HeaderValue>,
}

impl Access {
    /// Creates the check from configured names and origins, and the certificate of the listener.
    pub fn new(hosts: HostNames, origins: Origins, identity: Option<Arc<ServerIdentity>>) -> Self {
        Self {
            hosts,
            origins,
            identity,
            logged: Mutex::default(),
        }
    }

    /// Checks a request by its head. `is_open` is true if clients need no token.
    pub(super) fn judge(
        &self,
        head: &Parts,
        is_open: impl FnOnce() -> bool,
    ) -> Result<Admission, Problem> {
        let host = host_field(head)?;
        let is_known = |host: &str| self.is_known(host);
        let named = [
            host,
            head.uri.authority().map(|authority| authority.as_str()),
        ];
        let unknown = named.into_iter().flatten().find(|host| !is_known(host));
        if let Some(unknown) = unknown
            && is_open()
        {
            return Err(self.foreign_host(unknown));
        }
        if is_visit(head) {
            return Ok(Admission { origin: None });
        }
        let origin = self.judge_origin(&head.headers, host)?;
        Ok(Admission { origin })
    }

    /// Returns true if a `Host` field names this node.
    pub(super) fn is_known(&self, authority: &str) -> bool {
        let Some(host) = host::of_authority(authority) else {
            return false;
        };
        host::is_address(host)
            || host.eq_ignore_ascii_case("localhost")
            || self
                .hosts
                .0
                .iter()
                .any(|pattern| host::matches(pattern, host))
            || self
                .identity
                .as_ref()
                .is_some_and(|it| it.is_valid_for(host))
    }

    /// Checks the origin of a request. Returns it if the page needs a CORS answer.
    fn judge_origin(
        &self,
        headers: &HeaderMap,
        host: Option<&str>,
    ) -> Result<Option<HeaderValue>, Problem> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(_), Some(_)) => Err(Problem::invalid("the request has two `Origin` fields")),
            (Some(origin), None) => {
                let text = origin.to_str().unwrap_or_default();
                let is_listed = self.origins.0.iter().any(|listed| listed == text);
                if is_listed {
                    return Ok(Some(origin.clone()));
                }
                let authority = text.split_once("://").map(|(_, authority)| authority);
                let is_own = match (authority, host) {
                    (Some(authority), Some(host)) => authority.eq_ignore_ascii_case(host),
                    _ => false,
                };
                if is_own {
                    Ok(None)
                } else {
                    Err(self.foreign_origin(text))
                }
            }
            (None, _) => match headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
                None | Some(b"same-origin" | b"none") => Ok(None),
                Some(_) => Err(self.unnamed_origin()),
            },
        }
    }

    fn foreign_host(&self, authority: &str) -> Problem {
        let status = StatusCode::MISDIRECTED_REQUEST;
        let host = host::of_authority(authority).map(str::to_ascii_lowercase);
        let host =
            host.filter(|host| HostNames::parse(host).is_ok_and(|it| it.0 == [host.clone()]));
        let Some(host) = host else {
            let detail = "the `Host` of the request is not a name of this node";
            return Problem::new(status, ErrorCode::Denied, detail);
        };
        let line = option_lines("hosts", &self.hosts.0, &host);
        let detail = format!("`{host}` is not a name of this node (http.hosts): {line}");
        self.log(&host, &detail);
        Problem::new(status, ErrorCode::Denied, detail).with("host", host)
    }

    fn foreign_origin(&self, text: &str) -> Problem {
        let Some(origin) = Origins::parse(text)
            .ok()
            .and_then(|it| it.0.into_iter().next())
        else {
            let detail = "a page without an origin of its own (`Origin: null`) cannot use this node: \
                          serve the page over HTTP and add its origin to `http.origins`";
            return Problem::of(ErrorCode::Denied, detail);
        };
        let line = option_lines("origins", &self.origins.0, &origin);
        let detail =
            format!("pages of `{origin}` are not allowed to use this node (http.origins): {line}");
        self.log(&origin, &detail);
        Problem::of(ErrorCode::Denied, detail).with("origin", origin)
    }

    fn unnamed_origin(&self) -> Problem {
        let detail = "a page of another origin made this request without naming its origin \
                      (`Sec-Fetch-Site`): use `fetch`, and add the page's origin to `http.origins`";
        self.log("Sec-Fetch-Site", detail);
        Problem::of(ErrorCode::Denied, detail)
    }

    fn log(&self, subject: &str, detail: &str) {
        let mut logged = self.logged.lock();
        if logged.len() < LOGGED_MAX && logged.insert(subject.to_owned()) {
            tracing::warn!("refused an HTTP request: {detail}");
        }
    }
}

impl Admission {
    /// Returns the answer to a CORS preflight request, if this is one.
    pub(super) fn preflight(&self, head: &Parts) -> Option<Response> {
        cors::preflight(self.origin.as_ref()?, head)
    }

    /// Lets the page read the answer.
    pub(super) fn mark(self, response: &mut Response) {
        if let Some(origin) = self.origin {
            cors::allow(origin, response.headers_mut());
        }
    }
}

/// Returns whether the request opens the console in a tab or window of its own, for which a link may
/// be anywhere. The console has no data, and other pages can neither read nor frame it.
fn is_visit(head: &Parts) -> bool {
    let has = |name: &str, value: &str| head.headers.get(name).is_some_and(|it| it == value);
    let path = head.uri.path();
    let is_console = path
        .strip_prefix(http_ui::ROOT)
        .is_some_and(|rest| matches!(rest, "" | "/"));
    is_console
        && head.method == Method::GET
        && !head.headers.contains_key(header::ORIGIN)
        && has(SEC_FETCH_MODE, "navigate")
        && has(SEC_FETCH_DEST, "document")
}

/// Returns the `Host` field, which only HTTP/1.0 may omit.
fn host_field(head: &Parts) -> Result<Option<&str>, Problem> {
    let mut fields = head.headers.get_all(header::HOST).iter();
    let host = fields
        .next()
        .map(|value| value.to_str().unwrap_or_default());
    match host {
        Some(_) if fields.next().is_some() => {
            Err(Problem::invalid("the request has two `Host` fields"))
        }
        Some("") => Err(Problem::invalid("the `Host` field of the request is empty")),
        None if head.version > Version::HTTP_10 => {
            Err(Problem::invalid("the request has no `Host` field"))
        }
        host => Ok(host),
    }
}

/// Returns the command line option and configuration entry that would allow `added`.
fn option_lines(option: &str, listed: &[String], added: &str) -> String {
    let mut all: Vec<&str> = listed.iter().map(String::as_str).collect();
    all.push(added);
    let all = all.join(",");
    format!(
        "to allow it, start the node with `--http-{option} {all}` or put \
         `http.{option} = \"{all}\"` into its configuration file"
    )
}

#[cfg(test)]
mod tests;
