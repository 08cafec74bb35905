//! `telpher conversation put`, `fork`, `clear`, `retract` and `delete`.

use console::{Environment, Failure, output};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::append::parse_json;
use super::http::{HttpRequest, Node, print_answer};
use super::name::{conversation_name, path_of, short};
use super::show::about;
use crate::commands::target::{NodeArgs, block_on};

const PUT_EXAMPLES: &str = "\
Examples:
  telpher conversation put support-42 --metadata '{\"user\":\"alice\",\"tier\":\"gold\"}'
  telpher conversation put support-42 --merge --metadata '{\"tier\":null}'
                                             remove `tier`, keep the rest
  telpher conversation put support-42 --ttl 86400
                                             erase it one day after its last message
  telpher conversation put support-42 --context-defaults '{\"budget\":8000,\"drop_first\":[\"tool_output\"]}'
                                             the defaults of its context windows
  telpher conversation put support-42 --archived true
                                             make it read-only

Settings that are not given stay unchanged.";

const FORK_EXAMPLES: &str = "\
Examples:
  telpher conversation fork support-42 support-42-b          copy the whole conversation
  telpher conversation fork support-42 support-42-b --at 7   copy its first seven messages";

const CLEAR_EXAMPLES: &str = "\
Examples:
  telpher conversation clear support-42              erase all messages
  telpher conversation clear support-42 --expect 41  only if message 41 is still the newest

The settings, the metadata and the read marks stay, and the next message gets the next number.";

const RETRACT_EXAMPLES: &str = "\
Examples:
  telpher conversation retract support-42 --expect 41 --last 2   take back the two newest messages
  telpher conversation retract support-42 --expect 41 --after 35 take back all messages after 35

The messages are hidden and their numbers are not used again. Their bytes stay on disk: `clear` and \
`delete` erase them.";

#[derive(Debug, clap::Args)]
#[command(after_help = PUT_EXAMPLES)]
pub(crate) struct PutArgs {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// JSON object about the conversation; `list --metadata` searches it
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    /// Merge the metadata into the stored metadata (RFC 7396); do not create the conversation
    #[arg(long)]
    merge: bool,

    /// Seconds after the last message until the conversation is erased; 0 means never
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,

    /// Number of newest messages that are kept; 0 keeps all
    #[arg(long, value_name = "N")]
    keep_last: Option<u64>,

    /// Bytes of newest messages that are kept; 0 keeps all
    #[arg(long, value_name = "BYTES")]
    keep_bytes: Option<u64>,

    /// Webhook agent that answers the conversation; empty for none
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Participant, whether it writes or not; replaces the participants named before
    #[arg(long, value_name = "WHO")]
    participant: Vec<String>,

    /// Defaults of context windows, as a JSON object; see `telpher conversation context`
    #[arg(long, value_name = "JSON")]
    context_defaults: Option<String>,

    /// True makes the conversation read-only
    #[arg(long, value_name = "true|false")]
    archived: Option<bool>,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = FORK_EXAMPLES)]
pub(crate) struct ForkArgs {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// Id of the copy, in the same namespace
    id: String,

    /// Number of the last message to copy [default: the newest]
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CLEAR_EXAMPLES)]
pub(crate) struct ClearArgs {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// Clear only if this is the number of the newest message
    #[arg(long, value_name = "SEQ")]
    expect: Option<u64>,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = RETRACT_EXAMPLES)]
#[command(group = clap::ArgGroup::new("extent").required(true))]
pub(crate) struct RetractArgs {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// Number of the newest message; if it is another one, nothing is retracted
    #[arg(long, value_name = "SEQ")]
    expect: u64,

    /// Number of newest messages to retract; all if there are fewer
    #[arg(long, value_name = "N", group = "extent")]
    last: Option<u64>,

    /// Retract all messages after this number
    #[arg(long, value_name = "SEQ", group = "extent")]
    after: Option<u64>,

    /// Id of the request; a repeated request with the same id is answered like the first one
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Serialize)]
struct Retract<'a> {
    expect: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Serialize)]
struct Settings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_last: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    participants: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    archived: Option<bool>,
}

pub(super) fn run(args: &PutArgs, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    let json = |flag: &str, text: &Option<String>| {
        let text = text.clone();
        text.map(|text| parse_json(flag, text)).transpose()
    };
    let settings = Settings {
        metadata: json("--metadata", &args.metadata)?,
        ttl_s: args.ttl,
        keep_last: args.keep_last,
        keep_bytes: args.keep_bytes,
        agent: args.agent.as_deref(),
        participants: &args.participant,
        context: json("--context-defaults", &args.context_defaults)?,
        archived: args.archived,
    };
    let method = if args.merge { "PATCH" } else { "PUT" };
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let exchange = async {
            let request = HttpRequest::new(method, path_of(&name)).body(&settings)?;
            node.ask(&request).await
        };
        let answer = exchange.await;
        let answer = answer.map_err(|error| error.report(args.node.format, Some(&name)))?;
        print_answer(args.node.format, &answer, about)
    })
}

pub(super) fn run_fork(args: &ForkArgs, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    let mut fork = json!({ "id": args.id });
    if let Some(at) = args.at {
        fork["at_seq"] = at.into();
    }
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let exchange = async {
            let path = format!("{}/fork", path_of(&name));
            node.ask(&HttpRequest::new("POST", path).body(&fork)?).await
        };
        let answer = exchange.await;
        let answer = answer.map_err(|error| error.report(args.node.format, Some(&name)))?;
        print_answer(args.node.format, &answer, about)
    })
}

pub(super) fn run_clear(args: &ClearArgs, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let mut request = HttpRequest::new("POST", format!("{}/clear", path_of(&name)));
        if let Some(expect) = args.expect {
            request = request.header("if-match", format!("\"{expect}\""));
        }
        let answer = node.ask(&request).await;
        let answer = answer.map_err(|error| error.report(args.node.format, Some(&name)))?;
        print_answer(args.node.format, &answer, about)
    })
}

pub(super) fn run_retract(args: &RetractArgs, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    let retract = Retract {
        expect: args.expect,
        last: args.last,
        after: args.after,
        id: args.id.as_deref(),
    };
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let exchange = async {
            let path = format!("{}/retract", path_of(&name));
            node.ask(&HttpRequest::new("POST", path).body(&retract)?)
                .await
        };
        let answer = exchange.await;
        let answer = answer.map_err(|error| error.report(args.node.format, Some(&name)))?;
        print_answer(args.node.format, &answer, retracted)
    })
}

/// Formats the result of a retraction.
fn retracted(answer: &Value) -> String {
    let head = &answer["head_seq"];
    match answer["count"].as_u64() {
        Some(0) | None => format!("no message to retract, the newest number is {head}\n"),
        Some(count) => {
            let messages = if count == 1 { "message" } else { "messages" };
            let (first, last) = (&answer["first_seq"], &answer["last_seq"]);
            format!("retracted {count} {messages}: numbers {first} to {last} have none now\n")
        }
    }
}

pub(super) fn run_delete(args: &DeleteArgs, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let exchange = node.ask(&HttpRequest::new("DELETE", path_of(&name))).await;
        exchange.map_err(|error| error.report(args.node.format, Some(&name)))?;
        let human = format!("{} is erased\n", short(&name));
        output::print(
            args.node.format,
            &json!({ "erased": name.as_str() }),
            &human,
        )
    })
}
