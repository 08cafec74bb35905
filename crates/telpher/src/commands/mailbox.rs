//! `telpher mailbox`: administration of mailboxes.

use client::Client;
use console::output::{self, Format, table};
use console::{Environment, Exit, Failure, utc};
use model::Name;
use serde_json::Value;
use serve::{Acknowledge, ListMessages, ListNames, Purge, RetryDeadLetters};

use super::agents::{ask, rows, text};
use super::target::{NodeArgs, agent_name, block_on};

const EXAMPLES: &str = "\
Examples:
  telpher mailbox list                          list mailboxes and the number of their messages
  telpher mailbox peek acme/demo/worker         show waiting messages, oldest first
  telpher mailbox ack acme/demo/worker 7        acknowledge message 7: it is not delivered again
  telpher mailbox purge acme/demo/worker        remove all messages
  telpher mailbox peek acme/demo/worker --dead  show dead letters
  telpher mailbox retry acme/demo/worker 7      deliver dead letter 7 again
  telpher mailbox retry acme/demo/worker --all  deliver all dead letters again

A dead letter was delivered as often as allowed without success.
`telpher write` adds messages, `telpher listen` receives them.";

/// Show, acknowledge, remove and redeliver the messages that wait for agents
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List the mailboxes and the number of messages in each
    List(ListArgs),
    /// Show the messages of a mailbox, oldest first, without removing them
    Peek(PeekArgs),
    /// Acknowledge a message on behalf of the agent: it is not delivered again
    Ack(AckArgs),
    /// Remove every message of a mailbox
    Purge(PurgeArgs),
    /// Deliver dead letters again
    Retry(RetryArgs),
}

const LIST: &str = "\
Examples:
  telpher mailbox list
  telpher mailbox list acme/ --json";

const PEEK: &str = "\
Examples:
  telpher mailbox peek acme/demo/worker              the oldest 100 messages
  telpher mailbox peek acme/demo/worker --from 7     messages from offset 7 on
  telpher mailbox peek acme/demo/worker --dead       dead letters, with the cause of each
  telpher mailbox peek acme/demo/worker --json";

const ACK: &str = "\
Example:
  telpher mailbox ack acme/demo/worker 7             the message at offset 7";

const PURGE: &str = "\
Examples:
  telpher mailbox purge acme/demo/worker             every message, dead letters included
  telpher mailbox purge acme/demo/worker --dead      dead letters only";

const RETRY: &str = "\
Examples:
  telpher mailbox retry acme/demo/worker 7           the dead letter at offset 7
  telpher mailbox retry acme/demo/worker --all       all dead letters";

#[derive(Debug, clap::Args)]
#[command(after_help = LIST)]
pub(crate) struct ListArgs {
    /// Prefix of names to list
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = PEEK)]
pub(crate) struct PeekArgs {
    /// Name of the agent
    agent: String,

    /// Show dead letters instead of waiting messages
    #[arg(long)]
    dead: bool,

    /// First offset to show
    #[arg(long, value_name = "OFFSET", default_value_t = 0)]
    from: u64,

    /// Maximum number of messages
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = ACK)]
pub(crate) struct AckArgs {
    /// Name of the agent
    agent: String,

    /// Offset of the message, as `telpher mailbox peek` shows it
    offset: u64,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = PURGE)]
pub(crate) struct PurgeArgs {
    /// Name of the agent
    agent: String,

    /// Remove dead letters only
    #[arg(long)]
    dead: bool,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = RETRY)]
pub(crate) struct RetryArgs {
    /// Name of the agent
    agent: String,

    /// Offset of the dead letter, as `telpher mailbox peek --dead` shows it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    offset: Option<u64>,

    /// Redeliver all dead letters of the mailbox
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    node: NodeArgs,
}

/// Number of entries per request.
const PAGE: usize = 1_000;

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::List(args) => list(&args, environment),
        Command::Peek(args) => peek(&args, environment),
        Command::Ack(args) => ack(&args, environment),
        Command::Purge(args) => purge(&args, environment),
        Command::Retry(args) => retry(&args, environment),
    }
}

fn list(args: &ListArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let found = pages(&client, args.node.format, "mailboxes", &args.prefix).await?;
        let value = serde_json::json!({ "mailboxes": found });
        output::print(args.node.format, &value, &list_table(&found))
    })
}

/// Returns all entries of a list of names.
pub(super) async fn pages(
    client: &Client,
    format: Format,
    list: &str,
    prefix: &str,
) -> Result<Vec<Value>, Failure> {
    let mut found: Vec<Value> = Vec::new();
    loop {
        let last = found.last().and_then(|last| last["name"].as_str());
        let names = ListNames {
            prefix: prefix.to_owned(),
            after: last.unwrap_or_default().to_owned(),
            limit: PAGE,
        };
        let answer = ask(client, format, list, &names).await?;
        let page = rows(&answer, list);
        found.extend_from_slice(page);
        if page.len() < PAGE {
            return Ok(found);
        }
    }
}

fn peek(args: &PeekArgs, environment: &Environment) -> Result<(), Failure> {
    let messages = ListMessages {
        name: base(&args.agent)?,
        dead: args.dead,
        from: args.from,
        limit: args.limit,
        body_size_max: None,
    };
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let value = ask(&client, args.node.format, "messages", &messages).await?;
        output::print(args.node.format, &value, &peek_table(&value))
    })
}

fn ack(args: &AckArgs, environment: &Environment) -> Result<(), Failure> {
    let (name, offset) = (base(&args.agent)?, args.offset);
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let message = Acknowledge {
            name: name.clone(),
            offset,
        };
        let value = ask(&client, args.node.format, "acknowledge", &message).await?;
        let was_there = value["acknowledged"] == true;
        let human = if was_there { "acknowledged\n" } else { "" };
        output::print(args.node.format, &value, human)?;
        match was_there {
            true => Ok(()),
            false => {
                let message = format!("`{name}` has no message at offset {offset}");
                Err(Failure::new(Exit::NotFound, message)
                    .hint(format!("`telpher mailbox peek {name}` shows the messages")))
            }
        }
    })
}

fn purge(args: &PurgeArgs, environment: &Environment) -> Result<(), Failure> {
    let purge = Purge {
        name: base(&args.agent)?,
        dead: args.dead,
    };
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let value = ask(&client, args.node.format, "purge", &purge).await?;
        let human = format!("removed {}\n", text(&value["purged"]));
        output::print(args.node.format, &value, &human)
    })
}

fn retry(args: &RetryArgs, environment: &Environment) -> Result<(), Failure> {
    let name = base(&args.agent)?;
    let retry = RetryDeadLetters {
        name: name.clone(),
        offset: args.offset,
    };
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let value = ask(&client, args.node.format, "retry", &retry).await?;
        let human = format!("redelivered {}\n", text(&value["retried"]));
        output::print(args.node.format, &value, &human)?;
        match args.offset {
            Some(offset) if value["retried"] == 0 => {
                let message = format!("`{name}` has no dead letter at offset {offset}");
                Err(Failure::new(Exit::NotFound, message)
                    .hint(format!("`telpher mailbox peek {name} --dead` shows them")))
            }
            _ => Ok(()),
        }
    })
}

/// Returns the name of an agent's mailbox, which belongs to all its instances.
fn base(agent: &str) -> Result<String, Failure> {
    let name: Name = agent_name(agent)?;
    match name.instance() {
        None => Ok(name.base().to_owned()),
        Some(_) => {
            let message = "a mailbox belongs to all instances of an agent";
            Err(Failure::new(Exit::Usage, message).hint(format!("write {}", name.base())))
        }
    }
}

fn list_table(mailboxes: &[Value]) -> String {
    let keys = ["name", "messages", "dead", "bytes", "unanswered", "oldest"];
    let line = |mailbox: &Value| keys.map(|key| text(&mailbox[key]));
    let lines: Vec<_> = mailboxes.iter().map(line).collect();
    table(
        ["NAME", "MESSAGES", "DEAD", "BYTES", "UNANSWERED", "OLDEST"],
        &lines,
    )
}

fn peek_table(value: &Value) -> String {
    let head = [
        "OFFSET",
        "FROM",
        "WRITTEN",
        "DELIVERIES",
        "STATE",
        "METHOD",
        "BODY",
    ];
    let line = |message: &Value| {
        let written_ms = message["written_ms"].as_u64().unwrap_or(0);
        let state = match message["cause"].as_str() {
            Some(cause) => format!("dead: {cause}"),
            None => text(&message["state"]),
        };
        let body = match &message["body"] {
            Value::Null => "(not UTF-8)".to_owned(),
            body => text(body),
        };
        [
            text(&message["offset"]),
            text(&message["sender"]),
            utc::format(written_ms / 1000),
            text(&message["deliveries"]),
            state,
            text(&message["method"]),
            body,
        ]
    };
    let lines: Vec<_> = rows(value, "messages").iter().map(line).collect();
    table(head, &lines)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mailbox_tables_match_snapshots() {
        let mailbox = json!({
            "name": "a/b/c", "messages": 2, "dead": 1, "bytes": 120, "unanswered": 1, "oldest": 7,
        });
        insta::assert_snapshot!("list", list_table(&[mailbox]));
        let message = json!({
            "offset": 7, "sender": "a/b/alice", "method": "", "written_ms": 1_700_000_000_123_u64,
            "expires_ms": 1_700_000_600_123_u64, "deliveries": 1, "state": "unanswered",
            "pause_ms": null, "cause": null, "body": "line\none",
        });
        let mut dead = message.clone();
        (dead["state"], dead["cause"]) = ("dead".into(), "refused".into());
        insta::assert_snapshot!("peek", peek_table(&json!({ "messages": [message, dead] })));
    }

    #[test]
    fn instance_name_is_refused_as_a_mailbox_name() {
        assert_eq!(base("worker").unwrap(), "default/default/worker");
        assert_eq!(base("a/b/c/1").unwrap_err().exit, Exit::Usage);
    }
}
