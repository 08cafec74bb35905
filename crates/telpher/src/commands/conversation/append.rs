//! `telpher conversation append`.

use console::{Environment, Exit, Failure, body};
use serde::Serialize;
use serde_json::value::RawValue;

use super::http::{HttpRequest, Node, print_answer};
use super::name::{conversation_name, path_of};
use crate::commands::target::{NodeArgs, block_on};

const EXAMPLES: &str = "\
Examples:
  telpher conversation append support-42 'Where is my parcel?' --from alice
  telpher conversation append support-42 - --role assistant < answer.txt
                                             read the text from the standard input
  telpher conversation append support-42 hello --id m-7
                                             append once, even if the command is repeated
  telpher conversation append support-42 hello --expect 41
                                             append only if the newest message is 41
  telpher conversation append support-42 --parts '[{\"type\":\"text\",\"text\":\"hi\"}]'
                                             parts in the form of the AI SDK, OpenAI or Anthropic";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// Text of the message, or `-` for the standard input
    #[arg(required_unless_present = "parts", conflicts_with = "parts")]
    text: Option<String>,

    /// Parts of the message as a JSON array, or `-` for the standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    parts: Option<String>,

    /// Role of the author
    #[arg(long, value_name = "ROLE", default_value = "user")]
    role: String,

    /// Name of the author
    #[arg(long, value_name = "WHO")]
    from: Option<String>,

    /// Id of the message; a second message with the same id is not appended
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Append only if the newest message has this number; 0 for an empty conversation
    #[arg(long, value_name = "SEQ")]
    expect: Option<u64>,

    /// Size of the message in tokens of a model; estimated if not given
    #[arg(long, value_name = "N")]
    tokens: Option<u32>,

    /// JSON object that is stored with the message
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Serialize)]
struct Batch<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<u64>,
    messages: [Message<'a>; 1],
}

#[derive(Serialize)]
struct Message<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
}

pub(super) fn run(args: &Args, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    let content = args.text.as_deref().map(read_text).transpose()?;
    let parts = args.parts.as_deref().map(read_text).transpose()?;
    let parts = parts.map(|text| parse_json("--parts", text)).transpose()?;
    let metadata = args.metadata.clone();
    let metadata = metadata
        .map(|text| parse_json("--metadata", text))
        .transpose()?;
    let batch = Batch {
        expect: args.expect,
        messages: [Message {
            id: args.id.as_deref(),
            role: &args.role,
            from: args.from.as_deref(),
            content: content.as_deref(),
            parts: parts.as_deref(),
            tokens: args.tokens,
            metadata: metadata.as_deref(),
        }],
    };
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let exchange = async {
            let path = format!("{}/messages", path_of(&name));
            node.ask(&HttpRequest::new("POST", path).body(&batch)?)
                .await
        };
        let answer = exchange.await;
        let answer = answer.map_err(|error| error.report(args.node.format, Some(&name)))?;
        print_answer(args.node.format, &answer, |appended| {
            let verb = match appended["deduplicated"].as_u64() {
                Some(0) | None => "appended as",
                Some(_) => "already stored as",
            };
            format!("{verb} message {}\n", appended["last_seq"])
        })
    })
}

/// Reads the text: the argument, or the standard input without its last line break.
fn read_text(text: &str) -> Result<String, Failure> {
    let bytes = body::read(text)?;
    let is_input = text == "-";
    let mut content = String::from_utf8(bytes).map_err(|_| {
        Failure::new(Exit::Usage, "the message is not UTF-8 text")
            .hint("use a file part for other data: --parts '[{\"type\":\"file\",…}]'")
    })?;
    if is_input && content.ends_with('\n') {
        content.pop();
    }
    Ok(content)
}

/// Parses JSON that is sent to the node unchanged.
pub(super) fn parse_json(flag: &str, text: String) -> Result<Box<RawValue>, Failure> {
    RawValue::from_string(text).map_err(|error| {
        Failure::new(Exit::Usage, format!("{flag} is not JSON: {error}"))
            .hint("in a shell, write single quotes around the JSON")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_unchanged_and_invalid_json_is_refused() {
        let kept = parse_json("--metadata", "{ \"a\": 1.0 }".to_owned()).unwrap();
        assert_eq!(kept.get(), "{ \"a\": 1.0 }");
        let failure = parse_json("--metadata", "{a:1}".to_owned()).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(
            failure.errors[0]
                .message
                .starts_with("--metadata is not JSON: ")
        );
    }
}
