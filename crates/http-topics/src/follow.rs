//! `GET /v1/topics/{topic}/partitions/{partition}/follow`: existing and new records as server-sent
//! events.
//!
//! Records are read from the node only when the connection has room for them. A client that does
//! not read costs one batch of memory.

use std::ops::ControlFlow;
use std::task::{Context, Poll};

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use door::topics::Refused;
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::query;
use http_api::sse::{FRAME_SIZE, KEEPALIVE, Source, break_lines, last_event_id, pulled};
use serde::Deserialize;
use topic_service::records::{NotRead, Reader, Wanted};
use utoipa::IntoParams;

use super::place::Partition;
use super::read::{From, push_record, reader};

/// The start position.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FollowQuery {
    /// The first offset, `earliest` or `latest`; default `earliest`. `Last-Event-ID` takes
    /// precedence.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    from: From,
}

/// Follow a partition: the existing records, then new ones.
///
/// Each event is a `record`, and its id is the offset. A client that reconnects with that id as
/// `Last-Event-ID` continues with the next record. On a failure, the last event is an `error`.
#[utoipa::path(
    get, path = "/v1/topics/{topic}/partitions/{partition}/follow", tag = "topics",
    operation_id = "follow_records",
    params(
        ("topic" = String, Path, description = "Name of the topic"),
        ("partition" = u32, Path, description = "Index of the partition, from 0"),
        FollowQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "Offset of the last received record; the stream continues after it"),
    ),
    responses(
        (status = 200, description = "A stream of events", content((String = "text/event-stream"))),
        (status = 400, description = "The request is invalid", body = ProblemDocument),
        (status = 404, description = "There is no such topic or partition", body = ProblemDocument),
    )
)]
pub(super) async fn follow(
    place: Partition,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let FollowQuery { from } = query(&uri)?;
    let from = match last_event_id::<u64>(&headers)? {
        Some(last) => From::Offset(last.saturating_add(1)),
        None => from,
    };
    let reader = reader(&place, from)?;
    Ok(pulled(RecordEvents(reader), KEEPALIVE))
}

/// The records of a reader, as the source of an event stream.
struct RecordEvents(Reader);

impl Source for RecordEvents {
    fn gather(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> ControlFlow<()> {
        match gather(&mut self.0, cx, out) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                push_error(out, error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Appends events until `out` has [`FRAME_SIZE`] bytes or no record is available.
fn gather(reader: &mut Reader, cx: &Context<'_>, out: &mut Vec<u8>) -> Result<(), NotRead> {
    while out.len() < FRAME_SIZE {
        let Poll::Ready(ready) = reader.poll_ready(cx.waker()) else {
            return Ok(());
        };
        // The stream has no deadline, so it never asks the reader to hurry.
        ready?;
        reader.each(|record| {
            out.extend_from_slice(
                format!("id: {}\nevent: record\ndata: ", record.offset).as_bytes(),
            );
            let begin = out.len();
            push_record(out, record);
            break_lines(out, begin);
            out.extend_from_slice(b"\n\n");
            match out.len() < FRAME_SIZE {
                true => Wanted::More,
                false => Wanted::Enough,
            }
        })?;
    }
    Ok(())
}

/// Appends the `error` event, which is the last of the stream. The client may reconnect.
fn push_error(out: &mut Vec<u8>, error: NotRead) {
    let problem = Problem::from(Refused::from(error));
    out.extend_from_slice(b"event: error\ndata: ");
    out.extend_from_slice(problem.document().to_string().as_bytes());
    out.extend_from_slice(b"\n\n");
}
