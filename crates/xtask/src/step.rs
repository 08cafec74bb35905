//! Runs one command of a task, with a heading, its duration and a time limit.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Poll interval of a running step.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns a `cargo` command with these arguments, as if it were not called from inside `cargo
/// run`.
///
/// Cargo describes the running package in environment variables. Build scripts that watch them
/// would run again, and half of the dependencies would be built twice.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(cargo_path());
    command.args(args);
    forget_cargo(&mut command);
    command
}

/// Removes what `cargo run` has added to the environment of a command that calls cargo itself.
pub(crate) fn forget_cargo(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if INHERITED.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&*name);
        }
    }
}

const INHERITED: [&str; 5] = [
    "CARGO_BIN_",
    "CARGO_CRATE_",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PRIMARY_",
];

fn cargo_path() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Runs the command under a heading. Fails when the command fails or takes longer than `limit`.
pub(crate) fn run(title: &str, command: &mut Command, limit: Duration) -> Result<()> {
    heading(title);
    let start = now();
    let status = run_bounded(command, limit).with_context(|| title.to_owned())?;
    let seconds = start.elapsed().as_secs_f64();
    if !status.success() {
        bail!("{title} failed after {seconds:.1} s ({status})");
    }
    eprintln!("   {title}: ok, {seconds:.1} s");
    Ok(())
}

/// Prints a heading.
pub(crate) fn heading(title: &str) {
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let rule = "─".repeat(60usize.saturating_sub(title.chars().count()));
    match colours {
        true => eprintln!("\n\x1b[1m── {title} {rule}\x1b[0m"),
        false => eprintln!("\n── {title} {rule}"),
    }
}

/// Returns the output of a command that changes nothing.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", command_line(command)))?;
    if !output.status.success() {
        bail!("{} failed ({})", command_line(command), output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Formats the command as in a shell.
fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns true if a program with this name is in `PATH`.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Runs the command. Kills it and fails when it takes longer than `limit`.
pub(crate) fn run_bounded(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    // At a terminal, Ctrl-C must reach all processes, and a user is there to press it. Otherwise
    // the step gets a process group of its own, so that all of it can be killed.
    let grouped = !std::io::stdin().is_terminal();
    if grouped {
        command.process_group(0);
    }
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {}", command_line(command)))?;
    let start = now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > limit {
            end(&mut child, grouped)?;
            bail!("not done after {} s: killed", limit.as_secs());
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn end(child: &mut Child, grouped: bool) -> Result<()> {
    if grouped {
        // Use the shell's own `kill`: the program may not be installed.
        let kill = format!("kill -s KILL -- -{}", child.id());
        let status = Command::new("sh").args(["-c", &kill]).status();
        if !status.is_ok_and(|status| status.success()) {
            child.kill()?;
            bail!("cannot end the process group {}", child.id());
        }
    } else {
        child.kill()?;
    }
    child.wait()?;
    Ok(())
}

/// Returns the current time.
pub(crate) fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "a developer's tool: no simulation owns its time"
    )]
    Instant::now()
}

/// Fails if a task that takes no arguments has any.
pub(crate) fn expect_none(args: &[String]) -> Result<()> {
    match args.first() {
        Some(arg) => bail!("this task takes no arguments: `{arg}`"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_step_reports_its_failure() {
        run("true", &mut Command::new("true"), Duration::from_secs(60)).unwrap();
        let error = run("false", &mut Command::new("false"), Duration::from_secs(60)).unwrap_err();
        assert!(error.to_string().starts_with("false failed"), "{error}");
        let mut missing = Command::new("no-such-program-anywhere");
        assert!(run("missing", &mut missing, Duration::from_secs(60)).is_err());
    }

    #[test]
    fn a_step_that_hangs_is_ended() {
        let mut command = Command::new("sleep");
        let error = run("hang", command.arg("600"), Duration::ZERO).unwrap_err();
        assert_eq!(format!("{error:#}"), "hang: not done after 0 s: killed");
    }

    #[test]
    fn cargo_subprocess_does_not_inherit_cargo_pkg_variables() {
        let command = cargo(&["--version"]);
        let removed: Vec<_> = command
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .collect();
        // Cargo also runs tests with these variables.
        assert!(
            removed.iter().any(|(name, _)| *name == "CARGO_PKG_NAME"),
            "{removed:?}"
        );
        assert!(!removed.iter().any(|(name, _)| *name == "CARGO_HOME"));
        assert!(
            read(&mut cargo(&["--version"]))
                .unwrap()
                .starts_with("cargo ")
        );
    }
}
