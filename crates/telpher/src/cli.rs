//! The command line.

mod usage;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use console::{Environment, Exit, Failure};

pub(crate) use usage::similar;

use crate::commands::{
    agents, backup, bench, bench_role, bridge, cluster, completions, config, context, conversation,
    demo, doctor, explain, group, idle, inspect, kafka, listen, mailbox, man, ping, quota, request,
    send, serve, stream, stream_admin, token, top, topic, version, write,
};

const ABOUT: &str = "\
A server for AI agents: it carries their messages and calls, stores their work and their \
conversations durably, and limits what they spend.";

const EXAMPLES: &str = "\
Start:
  telpher demo                           show a node and several agents for a few seconds
  telpher serve --dev                    run a node for experiments; its data is removed at the end
  telpher serve                          run a node with its data in ./telpher-data

Messages and calls, while a node runs:
  telpher listen acme/demo/echo --echo   act as an agent that answers
  telpher request acme/demo/echo hello   call it
  telpher agents                         list the connected agents

Durable messages and records:
  telpher write acme/demo/echo 'job 7'   write a message for an agent that may connect later
  telpher append acme/demo/log 'done'    append a record to a stream
  telpher mailbox list                   list the messages that wait for agents
  telpher topic consume orders -f        read the records of a Kafka topic

Conversations:
  telpher conversation append c-1 'hi'   append a message to a conversation
  telpher conversation tail c-1 -f       follow it, with answers as they are streamed
  telpher conversation context c-1 --budget 8000
                                         print the messages to send to a model

Quotas:
  telpher quota take acme/demo/echo 1    take from every limit of the subject, or exit with 7
  telpher quota watch                    show denials and limits that are almost used up

Configuration:
  telpher config init > telpher.toml     write a file with every option and its default
  telpher config show --origin           print the configuration and the origin of each value
  telpher token add builder              create a bearer token for an agent
  telpher context add prod --url tls://telpher.example.com:7400
                                         store the address of a node under a name

Observe:
  telpher top                            show what a node does now, in the terminal

Reference:
  telpher explain                        list the error codes
  telpher help serve                     list the options of a node";

/// The commands by purpose, in the order of the help.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Run a node",
        &[
            "serve", "cluster", "config", "token", "kafka", "backup", "doctor", "inspect",
        ],
    ),
    (
        "Send messages and calls",
        &["send", "write", "request", "listen", "bridge"],
    ),
    (
        "Use conversations, topics, mailboxes and streams",
        &[
            "conversation",
            "topic",
            "group",
            "mailbox",
            "append",
            "read",
            "streams",
            "stream",
        ],
    ),
    ("Use quotas", &["quota"]),
    (
        "Observe and measure",
        &["top", "ping", "agents", "connections", "bench"],
    ),
    ("Select a node", &["context"]),
    (
        "Get help",
        &["demo", "explain", "completions", "man", "version", "help"],
    ),
];

/// `telpher`.
#[derive(Debug, Parser)]
#[command(
    name = "telpher",
    version,
    about = ABOUT,
    after_help = format!("{EXAMPLES}\n\nExit status: {}", Exit::MEANINGS),
    propagate_version = false,
    arg_required_else_help = true,
    max_term_width = 100,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    #[command(subcommand)]
    Cluster(cluster::Command),
    #[command(subcommand)]
    Config(config::Command),
    #[command(subcommand)]
    Context(context::Command),
    #[command(subcommand)]
    Conversation(conversation::Command),
    #[command(subcommand)]
    Token(token::Command),
    #[command(subcommand)]
    Kafka(kafka::Command),
    Send(send::Args),
    Write(write::Args),
    Request(request::Args),
    Listen(listen::Args),
    #[command(subcommand)]
    Bridge(bridge::Command),
    #[command(subcommand)]
    Mailbox(mailbox::Command),
    Top(top::Args),
    #[command(subcommand)]
    Topic(topic::Command),
    #[command(subcommand)]
    Group(group::Command),
    #[command(subcommand)]
    Quota(quota::Command),
    Append(stream::AppendArgs),
    Read(stream::ReadArgs),
    Streams(stream::StreamsArgs),
    #[command(subcommand)]
    Stream(stream_admin::Command),
    Ping(ping::Args),
    Agents(agents::AgentsArgs),
    Connections(agents::ConnectionsArgs),
    #[command(subcommand)]
    Bench(Box<bench::Command>),
    Backup(backup::Args),
    Demo(demo::Args),
    Doctor(doctor::Args),
    Explain(explain::Args),
    Inspect(inspect::Args),
    Completions(completions::Args),
    Man(man::Args),
    Version(version::Args),
    #[command(hide = true)]
    Idle(idle::Args),
    #[command(hide = true)]
    BenchRole(bench_role::Args),
}

/// Returns the command line, with the commands in groups in its help.
pub(crate) fn command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    let groups = groups(&command);
    let header = command.get_styles().get_header();
    let command = Cli::command().help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    ));
    let command =
        command.mut_subcommand("cluster", |it| it.mut_subcommand("init", without_options));
    command.mut_subcommand("config", |command| {
        command
            .mut_subcommand("show", without_options)
            .mut_subcommand("check", without_options)
    })
}

/// Hides the options of a node in a command's help: `telpher serve --help` lists them.
fn without_options(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| {
            let is_option = ::config::find(arg.get_id().as_str()).is_some();
            arg.hide(is_option)
        })
        .after_help(
            "Every configuration flag of `telpher serve` is accepted too; see `telpher serve --help`.",
        )
}

/// The list of commands for the help.
fn groups(command: &clap::Command) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let width = command.get_subcommands().map(|it| it.get_name().len());
    let width = width.max().unwrap_or(0);
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{header}{title}:{header:#}\n"));
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {literal}{name:width$}{literal:#}  {about}\n"));
        }
        text.push('\n');
    }
    text
}

impl Cli {
    /// Parses the arguments after the program's name. Prints the help or the version and ends the
    /// process if the arguments request it.
    pub(crate) fn parse_from(arguments: &[OsString]) -> Result<Self, Failure> {
        let all = std::iter::once(OsString::from("telpher")).chain(arguments.iter().cloned());
        let matches = command().try_get_matches_from(all);
        let parsed = matches.and_then(|matches| Self::from_arg_matches(&matches));
        parsed.map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
            _ => usage::failure(&error, arguments, command()),
        })
    }

    /// Runs the command.
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::Serve(args) => serve::run(args, environment),
            Command::Cluster(command) => cluster::run(command, environment),
            Command::Config(command) => config::run(command, environment),
            Command::Context(command) => context::run(command, environment),
            Command::Conversation(command) => conversation::run(command, environment),
            Command::Token(command) => token::run(command, environment),
            Command::Kafka(command) => kafka::run(command, environment),
            Command::Send(args) => send::run(args, environment),
            Command::Write(args) => write::run(args, environment),
            Command::Request(args) => request::run(args, environment),
            Command::Listen(args) => listen::run(args, environment),
            Command::Bridge(command) => bridge::run(command, environment),
            Command::Mailbox(command) => mailbox::run(command, environment),
            Command::Top(args) => top::run(args, environment),
            Command::Topic(command) => topic::run(command, environment),
            Command::Group(command) => group::run(command, environment),
            Command::Quota(command) => quota::run(command, environment),
            Command::Append(args) => stream::run_append(args, environment),
            Command::Read(args) => stream::run_read(args, environment),
            Command::Streams(args) => stream::run_streams(args, environment),
            Command::Stream(command) => stream_admin::run(command, environment),
            Command::Ping(args) => ping::run(args, environment),
            Command::Agents(args) => agents::run_agents(args, environment),
            Command::Connections(args) => agents::run_connections(args, environment),
            Command::Backup(args) => backup::run(args, environment),
            Command::Bench(command) => bench::run(*command),
            Command::Demo(args) => demo::run(args, environment),
            Command::Doctor(args) => doctor::run(args, environment),
            Command::Explain(args) => explain::run(args),
            Command::Inspect(args) => inspect::run(args),
            Command::Completions(args) => completions::run(args, Cli::command()),
            Command::Man(args) => man::run(args, Cli::command()),
            Command::Version(args) => version::run(args),
            Command::BenchRole(args) => bench_role::run(&args),
            Command::Idle(args) => idle::run(args, environment),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(path: &[&str]) -> String {
        let mut command = command().term_width(100);
        command.build();
        let command = path.iter().fold(&mut command, |command, name| {
            command.find_subcommand_mut(name).unwrap()
        });
        command.render_long_help().to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut command = command();
        command.build();
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        let mut shown: Vec<_> = shown.map(clap::Command::get_name).collect();
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).collect();
        shown.sort();
        grouped.sort();
        assert_eq!(grouped, shown.iter().collect::<Vec<_>>());
    }

    #[test]
    fn help_of_commands_matches_snapshots() {
        let commands: [&[&str]; 46] = [
            &[],
            &["serve"],
            &["cluster"],
            &["cluster", "dev"],
            &["cluster", "status"],
            &["config"],
            &["config", "show"],
            &["context"],
            &["context", "add"],
            &["conversation"],
            &["conversation", "append"],
            &["conversation", "tail"],
            &["conversation", "put"],
            &["token"],
            &["token", "add"],
            &["send"],
            &["write"],
            &["request"],
            &["listen"],
            &["bridge"],
            &["bridge", "slim"],
            &["mailbox"],
            &["top"],
            &["topic"],
            &["topic", "produce"],
            &["topic", "consume"],
            &["group"],
            &["group", "reset-offsets"],
            &["quota"],
            &["quota", "take"],
            &["append"],
            &["read"],
            &["ping"],
            &["agents"],
            &["backup"],
            &["bench"],
            &["bench", "agent"],
            &["bench", "rpc"],
            &["bench", "journal"],
            &["bench", "kafka"],
            &["bench", "store"],
            &["bench", "compare"],
            &["demo"],
            &["doctor"],
            &["explain"],
            &["inspect"],
        ];
        for path in commands {
            let name = ["help"]
                .iter()
                .chain(path)
                .copied()
                .collect::<Vec<_>>()
                .join("-");
            insta::assert_snapshot!(name, help(path));
        }
    }

    #[test]
    fn every_flag_of_serve_is_an_option_of_the_configuration() {
        let help = help(&["serve"]);
        for spec in ::config::specs() {
            assert!(help.contains(&format!("--{}", spec.flag())), "{}", spec.key);
            assert!(help.contains(&spec.variable()), "{}", spec.key);
        }
    }
}
