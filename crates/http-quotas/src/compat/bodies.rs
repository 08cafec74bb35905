//! Answer bodies, with keys in the order of the original.

use std::io::Write;

use axum::http::StatusCode;
use http_api::reply::{JSON, Reply, push_number};
use http_api::time::push_rfc3339;
use quota::{Kind, LimitState};
use serde_json::json;

use super::request::Wrong;
use crate::answer::push_text;
use crate::fields::remaining;

pub(super) fn health(out: &mut Vec<u8>, status: &str, now_ms: u64, redis: &str) {
    // Writing to a Vec does not fail, here and below.
    let _ = write!(out, r#"{{"status":"{status}","timestamp":""#);
    push_rfc3339(out, now_ms);
    let _ = write!(out, r#"","redis":"{redis}"}}"#);
}

pub(super) fn redis(reply: &mut Reply, version: &str) {
    reply.clear(StatusCode::OK, JSON);
    reply.body.extend_from_slice(
        br#"{"success":true,"message":"Redis is working!","testValue":"Hello from IRL!","redisVersion":"#,
    );
    push_text(&mut reply.body, version);
    reply.body.push(b'}');
}

pub(super) fn redis_away(reply: &mut Reply) {
    let message = "Redis does not answer";
    error(reply, StatusCode::INTERNAL_SERVER_ERROR, message);
}

pub(super) fn no_redis(reply: &mut Reply) {
    let message = "No Redis is used: this node stores the quotas";
    error(reply, StatusCode::NOT_IMPLEMENTED, message);
}

pub(super) fn admitted(out: &mut Vec<u8>, tokens: u64, state: &LimitState<'_>) {
    out.extend_from_slice(br#"{"success":true,"message":"Request allowed","tokensConsumed":"#);
    push_number(out, tokens);
    out.extend_from_slice(br#","remaining":"#);
    push_number(out, remaining(state));
    out.extend_from_slice(br#","limit":"#);
    push_number(out, state.capacity);
    out.push(b'}');
}

pub(super) fn denied(out: &mut Vec<u8>, retry_s: Option<u64>, remaining: Option<u64>) {
    out.extend_from_slice(
        br#"{"error":"Too Many Requests","message":"Rate limit exceeded. Please try again later.","retryAfter":"#,
    );
    match retry_s {
        Some(retry_s) => drop(write!(out, "{retry_s}")),
        None => out.extend_from_slice(b"null"),
    }
    if let Some(remaining) = remaining {
        let _ = write!(out, r#","remaining":{remaining}"#);
    }
    out.push(b'}');
}

pub(super) fn quota(out: &mut Vec<u8>, agent: &str, state: &LimitState<'_>) {
    out.extend_from_slice(br#"{"agentId":"#);
    push_text(out, agent);
    let (remaining, limit) = (remaining(state), state.capacity);
    let _ = write!(out, r#","remaining":{remaining},"limit":{limit},"rate":"#);
    push_rate(out, &state.limit.kind);
    match state.touched_ns {
        None => out.extend_from_slice(
            br#","status":"new","message":"No requests made yet. Full quota available."}"#,
        ),
        Some(touched_ns) => {
            out.extend_from_slice(br#","status":"active","lastActivity":""#);
            push_rfc3339(out, touched_ns / 1_000_000);
            out.extend_from_slice(br#""}"#);
        }
    }
}

/// Appends the refill per second; 0 for a limit that does not refill continuously.
fn push_rate(out: &mut Vec<u8>, kind: &Kind) {
    let Kind::Bucket(bucket) = kind else {
        return out.push(b'0');
    };
    let per_second = u128::from(bucket.amount) * 1_000_000_000;
    let period = u128::from(bucket.period_ns);
    let _ = match per_second % period {
        0 => write!(out, "{}", per_second / period),
        _ => write!(out, "{}", per_second as f64 / period as f64),
    };
}

pub(super) fn counted(out: &mut Vec<u8>, number: u64, remaining: u64, reset_s: u64) {
    let limit = super::COUNT_MAX;
    let _ = write!(
        out,
        r#"{{"message":"Request successful!","requestNumber":{number},"remaining":{remaining},"limit":{limit},"resetTime":{reset_s}}}"#
    );
}

pub(super) fn bad_request(reply: &mut Reply, wrong: &Wrong) {
    error(reply, StatusCode::BAD_REQUEST, &wrong.to_string());
}

pub(super) fn halted(reply: &mut Reply) {
    error(reply, StatusCode::FORBIDDEN, "This agent is halted");
}

pub(super) fn unavailable(reply: &mut Reply) {
    let message = "The request cannot be decided or stored now";
    error(reply, StatusCode::SERVICE_UNAVAILABLE, message);
}

pub(super) fn no_limit(reply: &mut Reply) {
    let message = "There is no limit on requests of agents";
    error(reply, StatusCode::SERVICE_UNAVAILABLE, message);
}

/// Answers a body that could not be read: too large, or too slow.
pub(super) fn unread(reply: &mut Reply, status: StatusCode, detail: &str) {
    error(reply, status, detail);
}

pub(super) fn unsupported_encoding(reply: &mut Reply) {
    let message = "Compressed bodies are not supported";
    error(reply, StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
}

fn error(reply: &mut Reply, status: StatusCode, message: &str) {
    reply.clear(status, JSON);
    let error = status.canonical_reason().unwrap_or("Error");
    // serde_json sorts the keys of such an object, which gives the order of the original.
    let _ = write!(
        reply.body,
        "{}",
        json!({"error": error, "message": message})
    );
}
