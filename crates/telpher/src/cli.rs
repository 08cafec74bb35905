//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::{completions, config, explain, man, serve, token, version};
use crate::failure::{Exit, Failure};
use crate::settings::Environment;

const ABOUT: &str = "\
The backbone for AI agents: one binary in which agents talk, stream, remember and stay within \
budget.";

const EXAMPLES: &str = "\
Start:
  telpher serve --dev                    a node to try things on; leaves nothing behind
  telpher serve                          a node with its data in ./telpher-data

Configure:
  telpher config init > telpher.toml     a file with every option and its default
  telpher config show --origin           what a node would use, and where each value is from
  telpher token add builder              a bearer token for an agent

Understand:
  telpher explain                        every error code
  telpher help serve                     every option of a node";

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
    Config(config::Command),
    #[command(subcommand)]
    Token(token::Command),
    Explain(explain::Args),
    Completions(completions::Args),
    Man(man::Args),
    Version(version::Args),
}

impl Cli {
    /// Runs what was asked for.
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::Serve(args) => serve::run(args, environment),
            Command::Config(command) => config::run(command, environment),
            Command::Token(command) => token::run(command, environment),
            Command::Explain(args) => explain::run(args),
            Command::Completions(args) => completions::run(args),
            Command::Man(args) => man::run(args),
            Command::Version(args) => version::run(args),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn help(path: &[&str]) -> String {
        let mut command = Cli::command().term_width(100);
        command.build();
        let command = path.iter().fold(&mut command, |command, name| {
            command.find_subcommand_mut(name).unwrap()
        });
        command.render_long_help().to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_teaches() {
        let commands: [&[&str]; 7] = [
            &[],
            &["serve"],
            &["config"],
            &["config", "show"],
            &["token"],
            &["token", "add"],
            &["explain"],
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
        for spec in node::config::specs() {
            assert!(help.contains(&format!("--{}", spec.flag())), "{}", spec.key);
            assert!(help.contains(&spec.variable()), "{}", spec.key);
        }
    }
}
