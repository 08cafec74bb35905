//! `telpher conversation`: appends, reads and administers conversations.
//!
//! Every command uses the routes of the HTTP listener over the native protocol, so its JSON output
//! is what `/openapi.json` describes.

mod append;
pub(super) mod events;
pub(super) mod http;
mod list;
mod name;
mod render;
mod settings;
mod show;
mod tail;
mod transfer;

use console::{Environment, Failure};

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
    /// Print one message, by its id
    Message(show::MessageArgs),
    /// Erase all messages of a conversation; its settings and its numbering stay
    Clear(settings::ClearArgs),
    /// Take back the newest messages: they are hidden, and their numbers are not used again
    Retract(settings::RetractArgs),
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
        Command::Message(args) => show::run_message(&args, environment),
        Command::Clear(args) => settings::run_clear(&args, environment),
        Command::Retract(args) => settings::run_retract(&args, environment),
        Command::Delete(args) => settings::run_delete(&args, environment),
        Command::Inbox(args) => list::run_inbox(&args, environment),
    }
}
