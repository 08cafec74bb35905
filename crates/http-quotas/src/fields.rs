//! The `RateLimit` and `RateLimit-Policy` header fields (draft-ietf-httpapi-ratelimit-headers-10).

use http_api::reply::{Reply, push_number};
use quota::{Every, Kind, Limit, LimitState, Unit};

/// Nanoseconds per second.
pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// Returns the limit with the smallest remaining share of its capacity.
pub(super) fn tightest<'a>(states: impl Iterator<Item = LimitState<'a>>) -> Option<LimitState<'a>> {
    // a/b < c/d is compared as a × d < c × b, without a division.
    let share = |one: &LimitState<'_>, other: &LimitState<'_>| {
        let own = one.have.saturating_mul(i128::from(other.capacity));
        own.cmp(&other.have.saturating_mul(i128::from(one.capacity)))
    };
    states.min_by(share)
}

/// Returns the remaining credit to report: 0 for a debt.
pub(super) fn remaining(state: &LimitState<'_>) -> u64 {
    u64::try_from(state.have.max(0)).unwrap_or(u64::MAX)
}

/// Adds both fields. `retry_ns` is the time until a denied take would pass. Without it, the time
/// until the limit is full again is reported.
pub(super) fn push(reply: &mut Reply, state: &LimitState<'_>, retry_ns: Option<u64>, now_ns: u64) {
    let limit = state.limit;
    reply.field_with("RateLimit-Policy", |out| {
        push_name(out, &limit.name);
        put(out, ";q=", state.capacity);
        if let Some(unit) = unit(limit.unit) {
            out.extend_from_slice(b";qu=\"");
            out.extend_from_slice(unit.as_bytes());
            out.push(b'"');
        }
        if let Some(window_s) = window_s(limit) {
            put(out, ";w=", window_s);
        }
    });
    let until_reset = || Some(state.reset_ns?.saturating_sub(now_ns));
    let time_ns = retry_ns.or_else(until_reset);
    reply.field_with("RateLimit", |out| {
        push_name(out, &limit.name);
        put(out, ";r=", remaining(state));
        if let Some(time_ns) = time_ns {
            put(out, ";t=", time_ns.div_ceil(SECOND_NS));
        }
    });
}

/// Appends a string of structured fields (RFC 9651). In a limit's name only the backslash needs an
/// escape.
fn push_name(out: &mut Vec<u8>, name: &str) {
    out.push(b'"');
    for byte in name.bytes() {
        if byte == b'\\' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Appends a number, capped at 15 digits as structured fields require.
fn put(out: &mut Vec<u8>, name: &str, number: u64) {
    out.extend_from_slice(name.as_bytes());
    push_number(out, number.min(999_999_999_999_999));
}

/// Returns the quota unit that the draft defines for a unit; `None` for requests, its default.
fn unit(unit: Unit) -> Option<&'static str> {
    match unit {
        Unit::BYTES | Unit::APPENDED_BYTES => Some("content-bytes"),
        Unit::CONCURRENCY | Unit::REQUESTS_IN_FLIGHT => Some("concurrent-requests"),
        _ => None,
    }
}

/// Returns the seconds in which the whole capacity refills; `None` if there is no fixed period.
fn window_s(limit: &Limit) -> Option<u64> {
    match limit.kind {
        Kind::Bucket(bucket) if bucket.amount > 0 => {
            let window_ns = u128::from(bucket.capacity) * u128::from(bucket.period_ns);
            let window_s = window_ns.div_ceil(u128::from(bucket.amount) * u128::from(SECOND_NS));
            u64::try_from(window_s).ok()
        }
        Kind::Budget { every, .. } => match every {
            Every::Minute => Some(60),
            Every::Hour => Some(3_600),
            Every::Day => Some(86_400),
            Every::Week => Some(604_800),
            Every::Month | Every::Never => None,
        },
        Kind::Bucket(_) | Kind::Slots { .. } => None,
    }
}
