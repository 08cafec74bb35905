//! `telpher conversation show` and `context`.

use console::output::columns;
use console::url::encode;
use console::{Environment, Exit, Failure};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::http::{HttpError, HttpRequest, Node, print_answer, query};
use super::name::{conversation_name, path_of};
use super::render;
use crate::commands::agents::{rows, text};
use crate::commands::target::{NodeArgs, block_on};

const SHOW_EXAMPLES: &str = "\
Examples:
  telpher conversation show support-42             its settings and its newest 20 messages
  telpher conversation show support-42 --last 3    its settings and its newest 3 messages
  telpher conversation show support-42 --after 40 --limit 10
                                                   its settings and messages 41 to 50
  telpher conversation show support-42 --json | jq -r '.messages[].parts[0].text'";

const CONTEXT_EXAMPLES: &str = "\
Examples:
  telpher conversation context support-42 --budget 8000
                                             the newest turns that fit into 8000 tokens
  telpher conversation context support-42 --budget 8000 --reserve 1000 --drop-first tool_output
                                             drop old outputs of tools first
  telpher conversation context support-42 --policy last_n --n 20
  telpher conversation context support-42 --json | jq .messages

Options that are not given default to the conversation's settings.";

#[derive(Debug, clap::Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// Number of newest messages to show [default: 20]
    #[arg(long, value_name = "N", conflicts_with_all = ["after", "before", "limit"])]
    last: Option<u64>,

    /// Show the messages after this number
    #[arg(long, value_name = "SEQ", conflicts_with = "before")]
    after: Option<u64>,

    /// Show the newest messages before this number
    #[arg(long, value_name = "SEQ")]
    before: Option<u64>,

    /// Maximum number of messages
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MessageArgs {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// Id of the message
    id: String,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CONTEXT_EXAMPLES)]
pub(crate) struct ContextArgs {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// Maximum number of tokens of the window, including --reserve
    #[arg(long, value_name = "TOKENS")]
    budget: Option<u64>,

    /// Tokens of the budget that stay free for the answer
    #[arg(long, value_name = "TOKENS")]
    reserve: Option<u64>,

    /// Policy of the window: budget, last_n, skip_parts or manual
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,

    /// Maximum number of messages for last_n and skip_parts
    #[arg(long, value_name = "N")]
    n: Option<u64>,

    /// Roles whose messages are always kept, separated by commas
    #[arg(long, value_name = "ROLES")]
    keep: Option<String>,

    /// Kinds of parts to drop first: reasoning, tool_call, tool_output, file, source, data, other
    #[arg(long, value_name = "KINDS")]
    drop_first: Option<String>,

    /// Number of newest turns with tools that keep all their parts
    #[arg(long, value_name = "N")]
    keep_tool_turns: Option<u64>,

    /// Step by which the start of the window moves, as a share of the budget: 0 to 0.5
    #[arg(long, value_name = "PART")]
    step: Option<f64>,

    #[command(flatten)]
    node: NodeArgs,
}

/// Default number of messages.
const LAST: u64 = 20;

/// The JSON output; both members are the node's answers, unchanged.
#[derive(Serialize)]
struct ShownMessage<'a> {
    conversation: &'a RawValue,
    messages: &'a RawValue,
}

pub(super) fn run(args: &ShowArgs, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    let last = match (args.after, args.before, args.limit) {
        (None, None, None) => Some(args.last.unwrap_or(LAST)),
        _ => None,
    };
    let page = query(&[
        ("last", last.map(|it| it.to_string())),
        ("after", args.after.map(|it| it.to_string())),
        ("before", args.before.map(|it| it.to_string())),
        ("limit", args.limit.map(|it| it.to_string())),
    ]);
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let exchange = async {
            let path = path_of(&name);
            let conversation = node.ask(&HttpRequest::get(&path)).await?;
            let page = node
                .ask(&HttpRequest::get(format!("{path}/messages{page}")))
                .await?;
            Ok::<_, HttpError>((conversation, page))
        };
        let exchange = exchange.await;
        let (conversation, page) =
            exchange.map_err(|error| error.report(args.node.format, Some(&name)))?;
        print_answer(
            args.node.format,
            &join_answers(&conversation, &page)?,
            |shown| {
                let messages = rows(shown, "messages").iter().map(render::message);
                let about = about(&shown["conversation"]);
                match rows(shown, "messages").is_empty() {
                    true => about,
                    false => format!("{about}\n{}", messages.collect::<String>()),
                }
            },
        )
    })
}

pub(super) fn run_message(args: &MessageArgs, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let path = format!("{}/messages/{}", path_of(&name), encode(&args.id));
        let answer = node.ask(&HttpRequest::get(path)).await;
        let answer = answer.map_err(|error| error.report(args.node.format, Some(&name)))?;
        print_answer(args.node.format, &answer, render::message)
    })
}

fn join_answers(conversation: &[u8], page: &[u8]) -> Result<Vec<u8>, Failure> {
    #[derive(serde::Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        messages: &'a RawValue,
    }
    let json = |error: serde_json::Error| {
        Failure::new(
            Exit::Failed,
            format!("the node's answer is not a page: {error}"),
        )
        .hint("compare the versions of the command and the node")
    };
    let Page { messages } = serde_json::from_slice(page).map_err(json)?;
    let conversation = serde_json::from_slice(conversation).map_err(json)?;
    let shown = ShownMessage {
        conversation,
        messages,
    };
    serde_json::to_vec(&shown).map_err(json)
}

/// Formats the settings of a conversation, without empty ones.
pub(super) fn about(conversation: &Value) -> String {
    let is_said = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let keys = [
        "name",
        "head_seq",
        "start_seq",
        "version",
        "created_at",
        "archived",
        "metadata",
        "participants",
        "agent",
        "ttl_s",
        "keep_last",
        "keep_bytes",
        "context",
        "summary",
        "cleared_seq",
        "cursors",
        "forked_from",
    ];
    let said = keys.into_iter().filter(|key| is_said(&conversation[key]));
    let lines: Vec<_> = said
        .map(|key| [key.to_owned(), text(&conversation[key])])
        .collect();
    columns(&lines)
}

pub(super) fn run_context(args: &ContextArgs, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    let how = query(&[
        ("budget", args.budget.map(|it| it.to_string())),
        ("reserve", args.reserve.map(|it| it.to_string())),
        ("policy", args.policy.clone()),
        ("n", args.n.map(|it| it.to_string())),
        ("keep", args.keep.clone()),
        ("drop_first", args.drop_first.clone()),
        (
            "keep_tool_turns",
            args.keep_tool_turns.map(|it| it.to_string()),
        ),
        ("step", args.step.map(|it| it.to_string())),
    ]);
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let path = format!("{}/context{how}", path_of(&name));
        let answer = node.ask(&HttpRequest::get(path)).await;
        let answer = answer.map_err(|error| error.report(args.node.format, Some(&name)))?;
        print_answer(args.node.format, &answer, window)
    })
}

fn window(window: &Value) -> String {
    let messages = rows(window, "messages").iter().map(render::message);
    let estimated = match window["estimated"] == true {
        true => " (estimated)",
        false => "",
    };
    let mut out = format!("{} tokens{estimated}", window["tokens"]);
    if window["budget"].as_u64() > Some(0) {
        out.push_str(&format!(" of {}", window["budget"]));
    }
    out.push_str(&format!(
        ", from message {} to {}",
        window["from_seq"], window["head_seq"]
    ));
    if let Some(through) = window["summary_seq"].as_u64() {
        out.push_str(&format!(", a summary up to {through}"));
    }
    for (kind, count) in window["dropped"].as_object().into_iter().flatten() {
        out.push_str(&format!(", {count} {kind} left out"));
    }
    out.push_str("\n\n");
    out.extend(messages);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::http::parse;
    use super::*;

    #[test]
    fn a_window_begins_with_its_token_count() {
        let value = json!({
            "messages": [{ "seq": 2, "role": "user", "parts": [{ "type": "text", "text": "hi" }] }],
            "tokens": 7, "budget": 10, "from_seq": 2, "head_seq": 2, "summary_seq": 1,
            "dropped": { "tool_output": 3 }, "estimated": true,
        });
        assert_eq!(
            window(&value),
            "7 tokens (estimated) of 10, from message 2 to 2, a summary up to 1, 3 tool_output left \
             out\n\n2 user: hi\n"
        );
    }

    #[test]
    fn empty_settings_are_not_shown() {
        let value = json!({
            "name": "a/b/c", "head_seq": 0, "archived": false, "metadata": {}, "cursors": {},
        });
        assert_eq!(about(&value), "name      a/b/c\nhead_seq  0\n");
    }

    #[test]
    fn answers_are_joined_byte_for_byte() {
        let page = br#"{"messages":[{"n":1.0}],"head_seq":1}"#;
        let joined = join_answers(br#"{"metadata": {"x":1e2}}"#, page).unwrap();
        let expected = r#"{"conversation":{"metadata": {"x":1e2}},"messages":[{"n":1.0}]}"#;
        assert_eq!(String::from_utf8(joined).unwrap(), expected);
        assert!(parse(expected.as_bytes()).is_ok());
    }
}
