//! The console at `/ui/`: a web page that shows and administers the node in a browser.
//!
//! | path | answers | cached |
//! |---|---|---|
//! | `/ui` | a redirect to `/ui/` | no |
//! | `/ui/` | the page | no: validated by `ETag` |
//! | `/ui/{file}` | its script and its style sheet, by names that contain their hash | for ever |
//!
//! The sources are in `ui/`; `cargo xtask ui` builds them into `dist/`, which is committed, so that
//! the node is built without Node.js. The page needs no token: it has no data, and makes the same
//! requests as every other client.
//!
//! Invariant: *the page runs no script and no style that is not one of these files, and sends nothing
//! to another host* (its content security policy).

mod bundle;

use std::io::Read;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use flate2::read::GzDecoder;
use http_api::Problem;
use model::ErrorCode;

/// A file of the bundle.
struct File {
    /// Its name, which contains its hash; empty for the page itself.
    name: &'static str,
    content_type: &'static str,
    /// Part of the SHA-256 of the content.
    hash: &'static str,
    /// The content, compressed.
    gzip: &'static [u8],
}

/// Everything that the page may load and do. Trusted types refuse HTML that is made from text, also
/// by a defect of the console.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Header fields of every answer.
fn common_fields() -> [(HeaderName, &'static str); 6] {
    [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ]
}

/// Returns the routes of the console.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route(ROOT, get(|| async { Redirect::permanent("/ui/") }))
        .route("/ui/", get(|headers: HeaderMap| async move { serve("", &headers) }))
        .route(
            "/ui/{file}",
            get(|Path(name): Path<String>, headers: HeaderMap| async move { serve(&name, &headers) }),
        )
}

/// Path of the console, without the slash at the end.
pub const ROOT: &str = "/ui";

fn serve(name: &str, headers: &HeaderMap) -> Response {
    let Some(file) = bundle::FILES.iter().find(|file| file.name == name) else {
        let detail = format!("the console has no file `{name}`");
        return Problem::of(ErrorCode::NotFound, detail).into_response();
    };
    let tag = format!("\"{}\"", file.hash);
    let is_known = headers.get_all(header::IF_NONE_MATCH).iter().any(|known| {
        let known = known.to_str().unwrap_or_default();
        known
            .split(',')
            .any(|known| known.trim().trim_start_matches("W/") == tag)
    });
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => content(file, headers),
    };
    let fields = response.headers_mut();
    for (name, value) in common_fields() {
        fields.insert(name, HeaderValue::from_static(value));
    }
    let cached = match file.name {
        "" => "no-cache",
        _ => "public, max-age=31536000, immutable",
    };
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static(cached));
    fields.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        fields.insert(header::ETAG, tag);
    }
    response
}

/// Returns a file, compressed if the client accepts that.
fn content(file: &File, headers: &HeaderMap) -> Response {
    let kind = [(header::CONTENT_TYPE, file.content_type)];
    if accepts_gzip(headers) {
        let encoding = [(header::CONTENT_ENCODING, "gzip")];
        return (kind, encoding, Body::from(Bytes::from_static(file.gzip))).into_response();
    }
    let mut plain = Vec::new();
    match GzDecoder::new(file.gzip).read_to_end(&mut plain) {
        Ok(_) => (kind, plain).into_response(),
        Err(error) => {
            let detail = format!("a file of the console cannot be decompressed: {error}");
            Problem::of(ErrorCode::Internal, detail).into_response()
        }
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let fields = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = fields
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = matches!(
            weight.replace(' ', "").as_str(),
            "q=0" | "q=0.0" | "q=0.00" | "q=0.000"
        );
        matches!(name.trim(), "gzip" | "*") && !is_refused
    })
}

#[cfg(test)]
mod tests;
