//! Receiver process: echoes requests, and counts messages.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use parking_lot::Mutex;

use super::{AgentMode, RECEIVER, RawSpec, SENDER, name};
use crate::agent::slim::channel::{self, Kind, ReceiveHalf, SendHalf};
use bench::measurement::{Arrivals, Sink};
use bench::workload::role::{Failure, Ready, answer_lines, runtime, write_line};
use meter::clock::now_ns;

/// Plays the receiver: answers each line with the counts so far.
///
/// # Errors
/// When the node cannot be reached or ends the stream.
pub fn receive_raw(spec: &RawSpec) -> Result<(), Failure> {
    let sink = Arc::new(Mutex::new(Sink::default()));
    runtime()?.block_on(async {
        let (send_half, mut receive_half) =
            channel::subscribed(&spec.address, name(RECEIVER)).await?;
        let serving = serve(spec, send_half, &mut receive_half, &sink);
        write_line(&Ready::default())?;
        let counted = sink.clone();
        let ended = answer_lines(move || write_line(&*counted.lock()));
        match select(pin!(serving), ended).await {
            Either::Left((failed, _)) => failed,
            Either::Right((ended, _)) => ended?,
        }
    })
}

async fn serve(
    spec: &RawSpec,
    mut send_half: SendHalf,
    receive_half: &mut ReceiveHalf,
    sink: &Mutex<Sink>,
) -> Result<(), Failure> {
    let body = vec![0; spec.size];
    loop {
        let arrived = receive_half.published().await?;
        if arrived.kind == Kind::Counted {
            let mut sink = sink.lock();
            sink.received += 1;
            Arrivals::note(&mut sink.arrivals, now_ns());
            if arrived.size < spec.size {
                *sink.errors.entry("wrong_size".to_owned()).or_default() += 1;
            }
        }
        if spec.mode == AgentMode::RequestReply {
            let (from, to) = (name(RECEIVER), name(SENDER));
            send_half.publish(from, to, arrived.kind, &body).await?;
        }
    }
}
