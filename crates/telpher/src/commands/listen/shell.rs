//! A shell command as an agent: the body is its input, its output the answer.
//!
//! Bounded in time and in output; when either is exceeded, or nobody waits any more, the command and
//! everything that it started end.

use std::process::Stdio;
use std::time::Duration;

use client::{Envelope, Fault};
use model::{ErrorCode, limits};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Runs the command for one message; `timeout` or the caller's deadline ends it, what is earlier.
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
        // Of its own, so that all of it can be ended.
        .process_group(0)
        .spawn()
        .map_err(|error| Fault::new(format!("cannot run sh: {error}")))?;
    let mut group = Group::of(&child);
    let working = work(&mut child, &envelope.body);
    let outcome = match tokio::time::timeout(timeout, working).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let message = format!("the command was ended after {timeout:.1?}");
            Err(Fault::with_code(ErrorCode::DeadlineExceeded, message))
        }
    };
    if child.id().is_none() {
        // It has been waited for: its number may be somebody else's by now.
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
        let message = format!("the command's output is above {limit} bytes");
        return Err(Fault::with_code(ErrorCode::TooLarge, message));
    }
    Ok(output)
}

/// The command's processes: ended with this, unless they have ended by themselves.
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
            // Nobody is left to be told that nobody was left.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}
