//! Existing and new records as server-sent events.
//!
//! Records are read from the node only when the connection has room. A client that does not read
//! costs one batch of memory.

use std::ops::ControlFlow;
use std::task::{Context, Poll};

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use http_api::sse::{FRAME_SIZE, KEEPALIVE, Source, last_event_id, pulled};
use http_api::{Problem, ProblemDocument, query};
use serde::Deserialize;
use store::{Range, StreamError, StreamExtract, StreamFollower};
use utoipa::IntoParams;

use crate::place::Named;
use crate::problem::of_stream;
use crate::read::value;

/// Most records of a batch.
const BATCH: u32 = 256;

/// Largest records of a batch in bytes, unless one record is larger.
const BATCH_BYTES: u32 = 64 << 10;

/// The start position.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FollowQuery {
    /// First offset; default: the oldest that is stored. `Last-Event-ID` takes precedence.
    from: Option<u64>,
}

/// Follow a stream: the existing records, then new ones.
///
/// Each event is a `record`, and its id is the offset. A client that reconnects with that id as
/// `Last-Event-ID` continues with the next record. On a failure, the last event is an `error`. A
/// stream that does not exist is waited for.
#[utoipa::path(
    get, path = "/streams/{stream}/follow", tag = "streams", operation_id = "follow_stream",
    params(
        ("stream" = String, Path, description = "Name of the stream"),
        FollowQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "Offset of the last received record; the stream continues after it"),
    ),
    responses(
        (status = 200, description = "A stream of events", content((String = "text/event-stream"))),
        (status = 400, description = "The request is invalid", body = ProblemDocument),
    )
)]
pub(super) async fn follow(
    named: Named,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let FollowQuery { from } = query(&uri)?;
    let Named {
        streams, stream, ..
    } = named;
    let from = match last_event_id::<u64>(&headers)? {
        Some(last) => last.saturating_add(1),
        None => from.unwrap_or_else(|| streams.start_of(&stream)),
    };
    let range = Range {
        from,
        records_max: BATCH,
        bytes_max: BATCH_BYTES,
    };
    let follower = StreamFollower::new(&streams, &stream, range);
    Ok(pulled(RecordEvents(follower), KEEPALIVE))
}

/// The records of a follower, as the source of an event stream.
struct RecordEvents(StreamFollower);

impl Source for RecordEvents {
    fn gather(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> ControlFlow<()> {
        while out.len() < FRAME_SIZE {
            match self.0.poll_next(cx.waker()) {
                Poll::Pending => break,
                Poll::Ready(Ok(read)) => push_records(out, &read),
                Poll::Ready(Err(error)) => {
                    push_error(out, error);
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Appends an event for each record. Their JSON has no line breaks.
fn push_records(out: &mut Vec<u8>, read: &StreamExtract) {
    for record in read.records() {
        let (offset, data) = (record.offset, value(&record));
        let event = format!("id: {offset}\nevent: record\ndata: {data}\n\n");
        out.extend_from_slice(event.as_bytes());
    }
}

/// Appends the `error` event, which is the last of the stream. The client may reconnect.
fn push_error(out: &mut Vec<u8>, error: StreamError) {
    let problem = of_stream(error).document();
    out.extend_from_slice(format!("event: error\ndata: {problem}\n\n").as_bytes());
}
