//! A shell command as an agent: the body is its input, its output is the answer.
//!
//! Time and output are bounded. If a bound is exceeded, or the caller has gone, the command and all
//! processes that it started are killed.

use std::process::Stdio;
use std::time::Duration;

use client::{Envelope, Fault};
use model::{ErrorCode, limits};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Runs the command for a message. The earlier of `timeout` and the caller's deadline ends it.
pub(super) async fn run(
    command: &str,
    envelope: &Envelope,
    timeout: Duration,
) -> Result<Vec<u8>, Fault> {
    let remaining = envelope.deadline_remaining();
    let timeout = remaining.map_or(timeout, |remaining| remaining.min(timeout));
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("TELPHER_SOURCE", envelope.source().unwrap_or_default())
        .env("TELPHER_METHOD", envelope.method())
        .env("TELPHER_NAME", envelope.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A process group of its own, so that all its processes can be killed.
        .process_group(0)
        .spawn()
        .map_err(|error| Fault::new(format!("cannot run sh: {error}")))?;
    let mut group = Group::of(&child);
    let working = work(&mut child, &envelope.body);
    let outcome = match tokio::time::timeout(timeout, working).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let message = format!("the command was killed after {timeout:.1?}");
            Err(Fault::with_code(ErrorCode::DeadlineExceeded, message))
        }
    };
    if child.id().is_none() {
        // The process was reaped, so its id may already belong to another process.
        group.release();
    }
    outcome
}

async fn work(child: &mut Child, input: &[u8]) -> Result<Vec<u8>, Fault> {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (output, ()) = tokio::try_join!(read(stdout), feed(stdin, input))?;
    let status = child.wait().await?;
    match status.success() {
        true => Ok(output),
        false => Err(Fault::new(format!("the command ended with {status}"))),
    }
}

async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> Result<(), Fault> {
    if let Some(mut stdin) = stdin {
        // A command that does not read its input closes it early.
        let _ = stdin.write_all(input).await;
    }
    Ok(())
}

async fn read(stdout: Option<ChildStdout>) -> Result<Vec<u8>, Fault> {
    let limit = limits::FRAME_SIZE_MAX.as_u64();
    let mut output = Vec::new();
    if let Some(stdout) = stdout {
        stdout.take(limit + 1).read_to_end(&mut output).await?;
    }
    if output.len() as u64 > limit {
        let message = format!("the command's output exceeds the limit of {limit} bytes");
        return Err(Fault::with_code(ErrorCode::TooLarge, message));
    }
    Ok(output)
}

/// The command's process group, killed on drop unless the command has ended.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        Self(pid.and_then(Pid::from_raw))
    }

    fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // An error means that the group has already ended.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}
