//! JSON of the outcome of a take.
//!
//! An admitted take returns the state of its limits. A denied one returns a problem document with
//! the type of the IETF draft and with the limit, the credit left, the credit needed, the retry
//! time, and the amount that would pass now.

use std::fmt::Display;
use std::io::Write;

use axum::http::StatusCode;
use http_api::reply::{JSON, PROBLEM, Reply, push_number};
use model::ErrorCode;
use quota::{HoldId, LimitState, Refused};
use quota_service::{DecidedTake, Denial, Desk, Outcome};

use super::fields;

/// Problem type of draft-ietf-httpapi-ratelimit-headers-10.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

const NS_PER_MS: u64 = 1_000_000;

/// Writes the HTTP reply to one take.
pub(super) fn push_reply(reply: &mut Reply, desk: &Desk, taken: &DecidedTake) {
    let status = status(&taken.outcome);
    let content_type = if status == StatusCode::OK {
        JSON
    } else {
        PROBLEM
    };
    reply.clear(status, content_type);
    let (state, retry_ns) = match &taken.outcome {
        Outcome::Denied(denial) => {
            let retry_ns = denial.retry_after_ns;
            if let Some(retry_ns) = retry_ns {
                reply.number("Retry-After", retry_ns.div_ceil(fields::SECOND_NS));
            }
            let mut states = desk.limit_states();
            (
                states.find(|it| it.limit.name == denial.limit.name),
                retry_ns,
            )
        }
        Outcome::Admitted { .. } => (fields::tightest(desk.limit_states()), None),
        Outcome::Halted { .. }
        | Outcome::Refused(_)
        | Outcome::Unavailable { .. }
        | Outcome::Unconfirmed { .. } => (None, None),
    };
    if let Some(state) = &state {
        fields::push(reply, state, retry_ns, desk.now_ns());
    }
    push(&mut reply.body, desk, taken);
}

/// Appends the JSON of one take.
pub(super) fn push(out: &mut Vec<u8>, desk: &Desk, taken: &DecidedTake) {
    let status = status(&taken.outcome);
    match &taken.outcome {
        Outcome::Admitted { hold, is_repeat } => {
            out.extend_from_slice(br#"{"allowed":true"#);
            if let Some(hold) = hold {
                let ends_ms = hold.deadline_ns.saturating_sub(desk.now_ns()) / NS_PER_MS;
                let id = hold_text(hold.id);
                put(
                    out,
                    format_args!(r#","hold":"{id}","hold_ends_ms":{ends_ms}"#),
                );
            }
            if *is_repeat {
                out.extend_from_slice(br#","repeated":true"#);
            }
            push_limit_states(out, desk.limit_states(), desk.now_ns());
        }
        Outcome::Denied(denial) => {
            let code = match status {
                StatusCode::FORBIDDEN => ErrorCode::Denied,
                _ => ErrorCode::Throttled,
            };
            begin(out, QUOTA_EXCEEDED, status, code);
            push_denial(out, denial);
        }
        Outcome::Halted { prefix, reason } => {
            begin(out, "about:blank", status, ErrorCode::Denied);
            push_detail(out, &format!("`{prefix}` is halted: {reason}"));
            out.extend_from_slice(br#","halted":"#);
            push_text(out, prefix);
        }
        Outcome::Refused(refused) => {
            begin(out, "about:blank", status, refused_code(refused));
            push_detail(out, &refused.to_string());
            if let Refused::AboveCapacity {
                limit,
                capacity,
                need,
            } = refused
            {
                let mut states = desk.limit_states();
                if let Some(state) = states.find(|it| it.id == *limit) {
                    out.extend_from_slice(br#","limit":"#);
                    push_text(out, &state.limit.name);
                }
                put(out, format_args!(r#","capacity":{capacity},"need":{need}"#));
            }
        }
        Outcome::Unavailable { reason } => {
            begin(out, "about:blank", status, ErrorCode::Unavailable);
            push_detail(out, reason);
        }
        Outcome::Unconfirmed { reason } => {
            begin(out, "about:blank", status, ErrorCode::Unconfirmed);
            push_detail(out, reason);
        }
    }
    if taken.is_degraded {
        out.extend_from_slice(br#","degraded":true"#);
    }
    out.push(b'}');
}

/// Returns 429 if credit returns with time, 403 if it does not, 400 if the take can never pass.
fn status(outcome: &Outcome) -> StatusCode {
    match outcome {
        Outcome::Admitted { .. } => StatusCode::OK,
        Outcome::Denied(denial) if denial.is_exhausted() => StatusCode::FORBIDDEN,
        Outcome::Denied(_) => StatusCode::TOO_MANY_REQUESTS,
        Outcome::Halted { .. } => StatusCode::FORBIDDEN,
        Outcome::Refused(Refused::IdReused) => StatusCode::CONFLICT,
        Outcome::Refused(_) => StatusCode::BAD_REQUEST,
        Outcome::Unavailable { .. } | Outcome::Unconfirmed { .. } => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

fn refused_code(refused: &Refused) -> ErrorCode {
    match refused {
        Refused::IdReused => ErrorCode::IdReused,
        _ => ErrorCode::InvalidArgument,
    }
}

fn begin(out: &mut Vec<u8>, kind: &str, status: StatusCode, code: ErrorCode) {
    let (title, number) = (status.canonical_reason().unwrap_or(""), status.as_u16());
    let code = code.as_str();
    put(
        out,
        format_args!(
            r#"{{"type":"{kind}","title":"{title}","status":{number},"code":"{code}","allowed":false"#
        ),
    );
}

fn push_detail(out: &mut Vec<u8>, detail: &str) {
    out.extend_from_slice(br#","detail":"#);
    push_text(out, detail);
}

fn push_denial(out: &mut Vec<u8>, denial: &Denial) {
    let (name, unit) = (&denial.limit.name, denial.limit.unit);
    push_detail(
        out,
        &format!("limit `{name}` has {} {unit} left", denial.would_pass()),
    );
    out.extend_from_slice(br#","violated-policies":["#);
    push_text(out, name);
    out.extend_from_slice(br#"],"limit":"#);
    push_text(out, name);
    let (have, need) = (denial.have, denial.need);
    put(
        out,
        format_args!(r#","unit":"{unit}","have":{have},"need":{need},"retry_ms":"#),
    );
    match denial.retry_after_ns {
        // Rounds up, so that a client never retries too early.
        Some(retry_ns) => put(out, retry_ns.div_ceil(NS_PER_MS)),
        None => out.extend_from_slice(b"null"),
    }
    let would_pass = denial.would_pass();
    put(
        out,
        format_args!(r#","would_pass":{{"{unit}":{would_pass}}}"#),
    );
}

/// Appends `,"limits":[…]`.
pub(super) fn push_limit_states<'a>(
    out: &mut Vec<u8>,
    states: impl Iterator<Item = LimitState<'a>>,
    now_ns: u64,
) {
    out.extend_from_slice(br#","limits":["#);
    for (index, state) in states.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(br#"{"name":"#);
        push_text(out, &state.limit.name);
        out.extend_from_slice(br#","unit":""#);
        out.extend_from_slice(state.limit.unit.as_str().as_bytes());
        out.extend_from_slice(br#"","remaining":"#);
        push_number(out, state.have);
        out.extend_from_slice(br#","capacity":"#);
        push_number(out, state.capacity);
        out.extend_from_slice(br#","reset_ms":"#);
        match state.reset_ns {
            Some(reset_ns) => push_number(out, reset_ns.saturating_sub(now_ns).div_ceil(NS_PER_MS)),
            None => out.extend_from_slice(b"null"),
        }
        if state.shadowed.is_some() {
            out.extend_from_slice(br#","would_deny":true"#);
        }
        if state.is_shared {
            out.extend_from_slice(br#","shared":true"#);
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// Formats the id of a hold as hexadecimal text, since many JSON parsers cannot represent 128-bit
/// numbers.
fn hold_text(HoldId(number): HoldId) -> String {
    format!("{number:032x}")
}

/// Parses the id of a hold: 32 hexadecimal digits, or 16 from an older version.
pub(super) fn parse_hold(text: &str) -> Option<HoldId> {
    let is_one = matches!(text.len(), 16 | 32) && text.bytes().all(|it| it.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok()?;
    is_one.then_some(HoldId(number))
}

fn put(out: &mut Vec<u8>, value: impl Display) {
    // Writing to a Vec does not fail.
    let _ = write!(out, "{value}");
}

/// Appends a JSON string.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    if let Err(error) = serde_json::to_writer(out, text) {
        unreachable!("a text can be written as JSON: {error}");
    }
}
