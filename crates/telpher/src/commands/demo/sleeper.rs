//! The agent that is killed: a process that takes requests and never answers them.

use std::path::Path;
use std::process::Stdio;

use client::{Client, ConnectionState, SubscribeOptions};
use console::{Environment, Failure, call_failure};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::stage::{broken, demo_name};
use crate::commands::target::Target;

const AGENT: &str = "sleeper";

/// Runs the agent: takes requests until its connection is lost.
pub(super) async fn run(url: &str, environment: &Environment) -> Result<(), Failure> {
    let client: Client = Target::at(url).connect(environment).await?;
    let name = demo_name(AGENT)?;
    let mut requests = client
        .subscribe_with(&name, SubscribeOptions::new())
        .await
        .map_err(|error| call_failure(&name, &error))?;
    console::output::print_text("ready\n")?;
    let mut held = Vec::new();
    let mut events = client.events();
    let is_over = |state: &ConnectionState| !matches!(state, ConnectionState::Connected { .. });
    tokio::select! {
        () = async { while let Some(request) = requests.next().await { held.push(request); } } => {}
        _ = events.wait_for(is_over) => {}
    }
    Ok(())
}

/// A handle of the agent's process, which is killed on drop.
pub(super) struct Sleeper {
    child: Child,
}

impl Sleeper {
    /// Starts the process and waits until the agent is subscribed.
    pub(super) async fn start(url: &str) -> Result<Self, Failure> {
        let executable = std::env::current_exe().map_err(broken)?;
        let mut child = command(&executable, url).spawn().map_err(broken)?;
        let mut ready = [0; 6];
        match child.stdout.take() {
            Some(mut stdout) => stdout.read_exact(&mut ready).await.map_err(broken)?,
            None => return Err(broken("the sleeper has no output")),
        };
        Ok(Self { child })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Kills the process with SIGKILL.
    pub(super) async fn kill(mut self) -> Result<(), Failure> {
        self.child.kill().await.map_err(broken)
    }
}

fn command(executable: &Path, url: &str) -> Command {
    let mut command = Command::new(executable);
    command
        .args(["demo", "--sleeper", url])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}
