//! `telpher conversation`: appends, reads and administers conversations.
//!
//! Every command uses the routes of the HTTP listener over the native protocol, so its JSON output
//! is what `/openapi.json` describes.

mod append;
pub(super) mod events;
pub(super) mod http;
mod list;
mod render;
mod settings;
mod show;
mod tail;
mod transfer;

use model::Name;

use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::settings::Environment;

const EXAMPLES: &str = "\
Examples:
  telpher conversation append support-42 'Where is my parcel?' --from alice
                                             append a message; the first creates the conversation
  telpher conversation append support-42 'On its way.' --role assistant --expect 1
                                             append only if message 1 is still the newest
  telpher conversation show support-42       print its settings and its newest messages
  telpher conversation tail support-42 --follow
                                             print new messages and streamed answers
  telpher conversation context support-42 --budget 8000
                                             print the messages to send to a model, in whole turns
  telpher conversation put support-42 --metadata '{\"user\":\"alice\"}' --ttl 86400
  telpher conversation list --metadata user=alice
  telpher conversation export support-42 > support-42.jsonl

A conversation is org/namespace/x; x alone is default/default/x. JSON output is the answer of the \
HTTP route; /openapi.json describes it.";

/// Append and watch messages of conversations, and build the context for a model
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List conversations, most recent activity first
    List(list::ListArgs),
    /// Show the settings of a conversation and its newest messages
    Show(show::ShowArgs),
    /// Append a message; returns when it is on disk
    Append(append::Args),
    /// Print the newest messages; with --follow, also new ones
    Tail(tail::Args),
    /// Print the messages to send to a model
    Context(show::ContextArgs),
    /// Print a whole conversation as JSON lines
    Export(transfer::ExportArgs),
    /// Append the messages of an export; messages that exist already are skipped
    Import(transfer::ImportArgs),
    /// Create a conversation, or change its settings
    Put(settings::PutArgs),
    /// Copy a conversation up to a message, under another id
    Fork(settings::ForkArgs),
    /// Erase a conversation: its bytes are removed from the disk, its id is never used again
    Delete(settings::DeleteArgs),
    /// List the conversations of a participant, with the number of unread messages
    Inbox(list::InboxArgs),
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::List(args) => list::run(&args, environment),
        Command::Show(args) => show::run(&args, environment),
        Command::Append(args) => append::run(&args, environment),
        Command::Tail(args) => tail::run(&args, environment),
        Command::Context(args) => show::run_context(&args, environment),
        Command::Export(args) => transfer::run_export(&args, environment),
        Command::Import(args) => transfer::run_import(&args, environment),
        Command::Put(args) => settings::run(&args, environment),
        Command::Fork(args) => settings::run_fork(&args, environment),
        Command::Delete(args) => settings::run_delete(&args, environment),
        Command::Inbox(args) => list::run_inbox(&args, environment),
    }
}

/// Parses a conversation's name.
fn conversation_name(text: &str) -> Result<Name, Failure> {
    let is_conversation = |name: &Name| name.instance().is_none();
    match Name::parse(text) {
        Ok(name) if is_conversation(&name) => Ok(name),
        Ok(name) => {
            let message = format!("`{name}` is not the name of a conversation");
            Err(Failure::new(Exit::Usage, message).hint("write org/namespace/x, or x"))
        }
        Err(error) => Err(Failure::new(Exit::Usage, error).hint("write org/namespace/x, or x")),
    }
}

/// Returns the path prefix of a conversation's HTTP routes.
fn path_of(name: &Name) -> String {
    let (org, namespace, id) = (name.org(), name.namespace(), name.agent());
    format!("/v1/{org}/{namespace}/conversations/{id}")
}

/// Returns the shortest form of a name that can be typed.
fn short(name: &Name) -> &str {
    let name = name.as_str();
    name.strip_prefix("default/default/").unwrap_or(name)
}

/// Prints an answer of the node: unchanged as JSON, else as `human` formats it.
fn print_answer(
    format: Format,
    answer: &[u8],
    human: impl FnOnce(&serde_json::Value) -> String,
) -> Result<(), Failure> {
    if format.json {
        output::print_bytes(answer)?;
        return output::print_text("\n");
    }
    output::print_text(&human(&http::parse(answer)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_default_namespace_are_shortened() {
        for (text, expected, path) in [
            ("c-1", "c-1", "/v1/default/default/conversations/c-1"),
            ("a/b/c", "a/b/c", "/v1/a/b/conversations/c"),
        ] {
            let name = conversation_name(text).unwrap();
            assert_eq!((short(&name), &path_of(&name)[..]), (expected, path));
        }
    }

    #[test]
    fn an_instance_name_is_refused() {
        let failure = conversation_name("a/b/c/d").unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.errors[0].hints, ["write org/namespace/x, or x"]);
    }
}
