//! `telpher kafka user`: who comes in by a password.
//!
//! The node salts and hashes a password; it is in no command line and in no file.

use std::io::{BufRead, IsTerminal, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use crate::commands::conversation::ask::{Node, Question, Trouble, encode, parse};
use crate::commands::target::{Target, block_on};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::settings::Environment;

/// Bytes of a password, and the end of its line.
const INPUT_SIZE_MAX: u64 = 1_026;

const ADD: &str = "\
Examples:
  telpher kafka user add ann                         asks for a password
  pass show ann | telpher kafka user add ann         takes it from a pipe";

const LIST: &str = "\
Examples:
  telpher kafka user list
  telpher kafka user list --json";

const DELETE: &str = "\
Example:
  telpher kafka user delete ann";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Add a user, or give one another password: the first line of the standard input
    #[command(after_help = ADD)]
    Add(OneArgs),
    /// List the users: their names, never their passwords
    #[command(after_help = LIST)]
    List(ListArgs),
    /// Let a user in no more; who is in stays until its connection ends
    #[command(after_help = DELETE)]
    Delete(OneArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct OneArgs {
    /// Its name
    user: String,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

pub(super) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Add(args) => {
            let password = password()?;
            let question = Question::new("PUT", path(&args.user)).body(&json!({
                "password": password,
            }));
            add(&args, question, environment)
        }
        Command::List(args) => list(&args, environment),
        Command::Delete(args) => {
            let question = Ok(Question::new("DELETE", path(&args.user)));
            delete(&args, question, environment)
        }
    }
}

/// Printed behind the first user.
const FIRST: &str = "note: this is the first user: from now on Kafka clients have to authenticate; \
                     new connections without credentials are refused\n";

fn path(name: &str) -> String {
    format!("/v1/kafka/users/{}", encode(name))
}

fn add(
    args: &OneArgs,
    question: Result<Question, Trouble>,
    environment: &Environment,
) -> Result<(), Failure> {
    let user = &args.user;
    let telling = |trouble| tell(args.format, trouble);
    let question = question.map_err(telling)?;
    block_on(async {
        let node = Node::connect(&args.target, environment).await?;
        let users = node.ask(&Question::get("/v1/kafka/users")).await;
        let users = parse(&users.map_err(telling)?)?;
        let is_first = users["users"].as_array().is_some_and(Vec::is_empty);
        node.ask(&question).await.map_err(telling)?;
        let value = json!({"name": user, "is": "added", "is_first": is_first});
        let note = if is_first { FIRST } else { "" };
        output::print(args.format, &value, &format!("user `{user}` added\n{note}"))
    })
}

fn delete(
    args: &OneArgs,
    question: Result<Question, Trouble>,
    environment: &Environment,
) -> Result<(), Failure> {
    let user = &args.user;
    let telling = |trouble| tell(args.format, trouble);
    let question = question.map_err(telling)?;
    block_on(async {
        let node = Node::connect(&args.target, environment).await?;
        node.ask(&question).await.map_err(telling)?;
        let value = json!({"name": user, "is": "deleted"});
        output::print(args.format, &value, &format!("user `{user}` deleted\n"))
    })
}

fn list(args: &ListArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let node = Node::connect(&args.target, environment).await?;
        let answer = node.ask(&Question::get("/v1/kafka/users")).await;
        let answer = parse(&answer.map_err(|trouble| tell(args.format, trouble))?)?;
        let users = answer["users"].as_array().into_iter().flatten();
        let lines: String = users.map(line).collect();
        output::print(args.format, &answer, &lines)
    })
}

fn line(user: &Value) -> String {
    let mechanisms = user["mechanisms"].as_array().into_iter().flatten();
    let mechanisms: Vec<_> = mechanisms.filter_map(Value::as_str).collect();
    let name = user["name"].as_str().unwrap_or_default();
    format!("{name}  {}\n", mechanisms.join(" "))
}

/// Why there is no answer, as a person reads it; for programs also as JSON.
fn tell(format: Format, trouble: Trouble) -> Failure {
    match trouble {
        Trouble::Refused(problem) => match problem.print(format) {
            Ok(()) => {
                let message = format!("{}: {}", problem.code, problem.detail);
                Failure::new(Exit::from(problem.code), message)
                    .hint("`telpher kafka user list` lists the users")
            }
            Err(unprinted) => unprinted,
        },
        other => other.tell(format, None),
    }
}

/// The first line of the standard input; of a person it is asked for, and not shown.
fn password() -> Result<String, Failure> {
    let input = std::io::stdin();
    let unreadable =
        |error| Failure::new(Exit::Usage, format!("the password cannot be read: {error}"));
    let mut line = String::new();
    let mut read = || {
        let mut limited = std::io::BufReader::new(input.lock().take(INPUT_SIZE_MAX));
        limited.read_line(&mut line)
    };
    let read = match std::io::stdin().is_terminal() {
        false => read().map(drop),
        true => unseen(read),
    };
    read.map_err(unreadable)?;
    let password = line.trim_end_matches(['\r', '\n']);
    match password.is_empty() {
        false => Ok(password.to_owned()),
        true => Err(Failure::new(Exit::Usage, "there is no password")
            .hint("it is the first line of the standard input")),
    }
}

/// Reads while the terminal shows nothing of it.
fn unseen(read: impl FnOnce() -> std::io::Result<usize>) -> std::io::Result<()> {
    let mut prompt = std::io::stderr();
    write!(prompt, "Password: ")?;
    prompt.flush()?;
    let shown = Echo::off()?;
    let read = read();
    drop(shown);
    writeln!(prompt)?;
    read.map(drop)
}

/// The terminal shows again what is typed when this is dropped.
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
        // There is nobody to tell.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}
