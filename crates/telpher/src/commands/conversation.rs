//! `telpher conversation`: messages in order, kept, and what a model is shown of them.
//!
//! Every command asks the routes of the HTTP door, over the native one: what is printed as JSON is what
//! `/openapi.json` describes.

mod append;
pub(super) mod ask;
pub(super) mod events;
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
                                             say something; the first message makes the conversation
  telpher conversation append support-42 'On its way.' --role assistant --expect 1
                                             only if nobody else said anything since message 1
  telpher conversation show support-42       what it is, and its newest messages
  telpher conversation tail support-42 --follow
                                             what comes, and answers while they are being written
  telpher conversation context support-42 --budget 8000
                                             what to send to a model: whole turns, never more
  telpher conversation put support-42 --metadata '{\"user\":\"alice\"}' --ttl 86400
  telpher conversation list --metadata user=alice
  telpher conversation export support-42 > support-42.jsonl

A conversation is org/namespace/x; x alone is default/default/x. What is printed as JSON is what the \
HTTP door answers; /openapi.json describes it.";

/// Hold conversations: append messages, watch them come, cut a window for a model
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List conversations, the newest activity first
    List(list::ListArgs),
    /// Show what a conversation is, and its newest messages
    Show(show::ShowArgs),
    /// Append a message; it is on disk when this returns
    Append(append::Args),
    /// Print the newest messages; with --follow, what comes
    Tail(tail::Args),
    /// Print the messages to send to a model
    Context(show::ContextArgs),
    /// Print all of a conversation as JSON lines
    Export(transfer::ExportArgs),
    /// Append the messages of an export; those that are there already are left as they are
    Import(transfer::ImportArgs),
    /// Create a conversation, or change what it is
    Put(settings::PutArgs),
    /// Copy a conversation up to a message, under another id
    Fork(settings::ForkArgs),
    /// Erase a conversation: its bytes leave the disk, its id is not used again
    Delete(settings::DeleteArgs),
    /// Show somebody's conversations, and what he has not read
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

/// A conversation's name as it was given.
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

/// Where the routes of a conversation begin.
fn path_of(name: &Name) -> String {
    let (org, namespace, id) = (name.org(), name.namespace(), name.agent());
    format!("/v1/{org}/{namespace}/conversations/{id}")
}

/// As short as it can be typed.
fn short(name: &Name) -> &str {
    let name = name.as_str();
    name.strip_prefix("default/default/").unwrap_or(name)
}

/// Prints what the node answered: as it is for programs, else what `human` makes of it.
fn print_answer(
    format: Format,
    answer: &[u8],
    human: impl FnOnce(&serde_json::Value) -> String,
) -> Result<(), Failure> {
    if format.json {
        output::print_bytes(answer)?;
        return output::print_text("\n");
    }
    output::print_text(&human(&ask::parse(answer)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_as_short_as_it_can_be_typed() {
        for (text, expected, path) in [
            ("c-1", "c-1", "/v1/default/default/conversations/c-1"),
            ("a/b/c", "a/b/c", "/v1/a/b/conversations/c"),
        ] {
            let name = conversation_name(text).unwrap();
            assert_eq!((short(&name), &path_of(&name)[..]), (expected, path));
        }
    }

    #[test]
    fn an_instance_is_no_conversation() {
        let failure = conversation_name("a/b/c/d").unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.errors[0].hints, ["write org/namespace/x, or x"]);
    }
}
