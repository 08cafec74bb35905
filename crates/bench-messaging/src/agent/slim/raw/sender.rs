//! Sender process: one connection, one message after the other.

use tokio::sync::Mutex;

use super::{AgentMode, RECEIVER, RawSpec, SENDER, SenderCounts, name};
use crate::agent::drive::{Exchange, SendLoop};
use crate::agent::slim::channel::{self, Kind, ReceiveHalf, SendHalf};
use bench::pacing::Schedule;
use bench::workload::role::{Failure, Ready, lines, runtime, write_line};
use meter::clock::now_ns;

/// Exchanges before the window.
const WARM_UP_COUNT: u32 = 30;

/// Plays the sender.
///
/// # Errors
/// When the node cannot be reached or a message of the warm-up fails.
pub fn send_raw(spec: &RawSpec) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let runtime = runtime()?;
    let load = runtime.block_on(Load::connect(spec))?;
    for _ in 0..WARM_UP_COUNT {
        runtime.block_on(load.exchange(Kind::WarmUp))?;
    }
    let mut lines = lines();
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if runtime.block_on(lines.recv()).is_none() {
        return Ok(());
    }
    let drive = SendLoop {
        schedule: Schedule::new(spec.rate, 1, 0),
        window_ns: spec.window_ns,
        in_flight: 1,
    };
    let start_ns = now_ns();
    let tally = drive.run(&load, &runtime);
    let scheduled_ns = if spec.rate > 0 { spec.window_ns } else { 0 };
    let window_ns = (now_ns() - start_ns).max(scheduled_ns);
    write_line(&SenderCounts { tally, window_ns })?;
    // Messages in the outgoing queue leave until the suite has counted.
    runtime.block_on(lines.recv());
    Ok(())
}

struct Load<'a> {
    spec: &'a RawSpec,
    body: Vec<u8>,
    send_half: Mutex<SendHalf>,
    receive_half: Mutex<ReceiveHalf>,
}

impl<'a> Load<'a> {
    async fn connect(spec: &'a RawSpec) -> Result<Self, Failure> {
        let (send_half, receive_half) = channel::subscribed(&spec.address, name(SENDER)).await?;
        Ok(Self {
            spec,
            body: vec![0; spec.size],
            send_half: Mutex::new(send_half),
            receive_half: Mutex::new(receive_half),
        })
    }

    async fn exchange(&self, kind: Kind) -> Result<(), Failure> {
        let mut send_half = self.send_half.lock().await;
        let (from, to) = (name(SENDER), name(RECEIVER));
        send_half.publish(from, to, kind, &self.body).await?;
        if !self.is_one_way() {
            let answer = self.receive_half.lock().await.published().await?;
            if answer.size < self.body.len() {
                return Err("an answer of another size".into());
            }
        }
        Ok(())
    }
}

impl Exchange for Load<'_> {
    async fn send_one(&self) -> Result<(), &'static str> {
        self.exchange(Kind::Counted).await.map_err(|_| "stream")
    }

    fn is_one_way(&self) -> bool {
        self.spec.mode != AgentMode::RequestReply
    }
}
