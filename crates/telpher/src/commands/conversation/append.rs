//! `telpher conversation append`.

use serde::Serialize;
use serde_json::value::RawValue;

use super::ask::{Node, Question};
use super::{conversation_name, path_of, print_answer};
use crate::commands::body;
use crate::commands::target::{Target, block_on};
use crate::failure::{Exit, Failure};
use crate::output::Format;
use crate::settings::Environment;

const EXAMPLES: &str = "\
Examples:
  telpher conversation append support-42 'Where is my parcel?' --from alice
  telpher conversation append support-42 - --role assistant < answer.txt
                                             the standard input
  telpher conversation append support-42 hello --id m-7
                                             once, however often it is repeated
  telpher conversation append support-42 hello --expect 41
                                             only if the newest message is 41
  telpher conversation append support-42 --parts '[{\"type\":\"text\",\"text\":\"hi\"}]'
                                             parts of the AI SDK, of OpenAI or of Anthropic";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// What is said, or `-` for the standard input
    #[arg(required_unless_present = "parts", conflicts_with = "parts")]
    text: Option<String>,

    /// What is said as an array of parts in JSON, or `-` for the standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    parts: Option<String>,

    /// What the author is in the conversation
    #[arg(long, value_name = "ROLE", default_value = "user")]
    role: String,

    /// Who says it
    #[arg(long, value_name = "WHO")]
    from: Option<String>,

    /// What the author calls the message: a second one with this id is not appended
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Append only if this is the newest message's number; 0 for an empty conversation
    #[arg(long, value_name = "SEQ")]
    expect: Option<u64>,

    /// What it costs a model; estimated unless it is said
    #[arg(long, value_name = "N")]
    tokens: Option<u32>,

    /// An object that is kept with the message
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
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
    let content = args.text.as_deref().map(said).transpose()?;
    let parts = args.parts.as_deref().map(said).transpose()?;
    let parts = parts.map(|text| json_of("--parts", text)).transpose()?;
    let metadata = args.metadata.clone();
    let metadata = metadata
        .map(|text| json_of("--metadata", text))
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
        let node = Node::connect(&args.target, environment).await?;
        let asked = async {
            let path = format!("{}/messages", path_of(&name));
            node.ask(&Question::new("POST", path).body(&batch)?).await
        };
        let answer = asked.await;
        let answer = answer.map_err(|trouble| trouble.tell(args.format, Some(&name)))?;
        print_answer(args.format, &answer, |appended| {
            let verb = match appended["deduplicated"].as_u64() {
                Some(0) | None => "appended as",
                Some(_) => "it was there already, as",
            };
            format!("{verb} message {}\n", appended["last_seq"])
        })
    })
}

/// A text as it was given, or the standard input without its last line's end.
fn said(text: &str) -> Result<String, Failure> {
    let bytes = body::read(text)?;
    let is_input = text == "-";
    let mut said = String::from_utf8(bytes).map_err(|_| {
        Failure::new(Exit::Usage, "what is said is not text (UTF-8)")
            .hint("a file goes into a part: --parts '[{\"type\":\"file\",…}]'")
    })?;
    if is_input && said.ends_with('\n') {
        said.pop();
    }
    Ok(said)
}

/// JSON that goes to the node byte for byte.
pub(super) fn json_of(flag: &str, text: String) -> Result<Box<RawValue>, Failure> {
    RawValue::from_string(text).map_err(|error| {
        Failure::new(Exit::Usage, format!("{flag} is not JSON: {error}"))
            .hint("in a shell, single quotes around it keep the double ones")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_as_it_is_and_what_is_none_is_told() {
        let kept = json_of("--metadata", "{ \"a\": 1.0 }".to_owned()).unwrap();
        assert_eq!(kept.get(), "{ \"a\": 1.0 }");
        let failure = json_of("--metadata", "{a:1}".to_owned()).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(
            failure.errors[0]
                .message
                .starts_with("--metadata is not JSON: ")
        );
    }
}
