//! `telpher kafka user`: users of the Kafka listener.
//!
//! The node salts and hashes a password. Passwords are never on the command line or in a file.

use std::io::{BufRead, IsTerminal, Read, Write};

use console::output::{self, Format};
use console::url::encode;
use console::{Environment, Exit, Failure};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use crate::commands::conversation::http::{HttpError, HttpRequest, Node, parse};
use crate::commands::target::{NodeArgs, block_on};

/// Maximum bytes of a password and its line break.
const INPUT_SIZE_MAX: u64 = 1_026;

const ADD: &str = "\
Examples:
  telpher kafka user add ann                         asks for a password
  pass show ann | telpher kafka user add ann         reads the password from a pipe";

const LIST: &str = "\
Examples:
  telpher kafka user list
  telpher kafka user list --json";

const DELETE: &str = "\
Example:
  telpher kafka user delete ann";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Add a user or change its password; the password is the first line of the standard input
    #[command(after_help = ADD)]
    Add(OneArgs),
    /// List the names of the users
    #[command(after_help = LIST)]
    List(ListArgs),
    /// Delete a user; its open connections stay
    #[command(after_help = DELETE)]
    Delete(OneArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct OneArgs {
    /// Name of the user
    user: String,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    node: NodeArgs,
}

pub(super) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Add(args) => {
            let password = password()?;
            let request = HttpRequest::new("PUT", path(&args.user)).body(&json!({
                "password": password,
            }));
            add(&args, request, environment)
        }
        Command::List(args) => list(&args, environment),
        Command::Delete(args) => {
            let request = Ok(HttpRequest::new("DELETE", path(&args.user)));
            delete(&args, request, environment)
        }
    }
}

/// Printed after the first user was added.
const FIRST: &str = "note: this is the first user: from now on Kafka clients have to authenticate; \
                     new connections without credentials are refused\n";

fn path(name: &str) -> String {
    format!("/v1/kafka/users/{}", encode(name))
}

fn add(
    args: &OneArgs,
    request: Result<HttpRequest, HttpError>,
    environment: &Environment,
) -> Result<(), Failure> {
    let user = &args.user;
    let to_failure = |error| report(args.node.format, error);
    let request = request.map_err(to_failure)?;
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let users = node.ask(&HttpRequest::get("/v1/kafka/users")).await;
        let users = parse(&users.map_err(to_failure)?)?;
        let is_first = users["users"].as_array().is_some_and(Vec::is_empty);
        node.ask(&request).await.map_err(to_failure)?;
        let value = json!({"name": user, "is": "added", "is_first": is_first});
        let note = if is_first { FIRST } else { "" };
        output::print(
            args.node.format,
            &value,
            &format!("user `{user}` added\n{note}"),
        )
    })
}

fn delete(
    args: &OneArgs,
    request: Result<HttpRequest, HttpError>,
    environment: &Environment,
) -> Result<(), Failure> {
    let user = &args.user;
    let to_failure = |error| report(args.node.format, error);
    let request = request.map_err(to_failure)?;
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        node.ask(&request).await.map_err(to_failure)?;
        let value = json!({"name": user, "is": "deleted"});
        output::print(
            args.node.format,
            &value,
            &format!("user `{user}` deleted\n"),
        )
    })
}

fn list(args: &ListArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let answer = node.ask(&HttpRequest::get("/v1/kafka/users")).await;
        let answer = parse(&answer.map_err(|error| report(args.node.format, error))?)?;
        let users = answer["users"].as_array().into_iter().flatten();
        let lines: String = users.map(line).collect();
        output::print(args.node.format, &answer, &lines)
    })
}

fn line(user: &Value) -> String {
    let mechanisms = user["mechanisms"].as_array().into_iter().flatten();
    let mechanisms: Vec<_> = mechanisms.filter_map(Value::as_str).collect();
    let name = user["name"].as_str().unwrap_or_default();
    format!("{name}  {}\n", mechanisms.join(" "))
}

/// Converts an error to a failure; with `--json`, also prints it to the standard output.
fn report(format: Format, error: HttpError) -> Failure {
    match error {
        HttpError::Refused(problem) => match problem.print(format) {
            Ok(()) => {
                let message = format!("{}: {}", problem.code, problem.detail);
                Failure::new(Exit::from(problem.code), message)
                    .hint("`telpher kafka user list` lists the users")
            }
            Err(unprinted) => unprinted,
        },
        other => other.report(format, None),
    }
}

/// Reads a password: the first line of the standard input. On a terminal it prompts, without echo.
fn password() -> Result<String, Failure> {
    let input = std::io::stdin();
    let unreadable =
        |error| Failure::new(Exit::Usage, format!("cannot read the password: {error}"));
    let mut line = String::new();
    let mut read = || {
        let mut limited = std::io::BufReader::new(input.lock().take(INPUT_SIZE_MAX));
        limited.read_line(&mut line)
    };
    let read = match std::io::stdin().is_terminal() {
        false => read().map(drop),
        true => read_without_echo(read),
    };
    read.map_err(unreadable)?;
    let password = line.trim_end_matches(['\r', '\n']);
    match password.is_empty() {
        false => Ok(password.to_owned()),
        true => Err(Failure::new(Exit::Usage, "the password is empty")
            .hint("the password is the first line of the standard input")),
    }
}

/// Reads with the echo of the terminal off.
fn read_without_echo(read: impl FnOnce() -> std::io::Result<usize>) -> std::io::Result<()> {
    let mut prompt = std::io::stderr();
    write!(prompt, "Password: ")?;
    prompt.flush()?;
    let echo = Echo::off()?;
    let read = read();
    drop(echo);
    writeln!(prompt)?;
    read.map(drop)
}

/// Restores the echo of the terminal on drop.
struct Echo(Termios);

impl Echo {
    fn off() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // The error has no receiver.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}
