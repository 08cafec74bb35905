//! `telpher bridge`: connects agents with applications of other systems.

mod slim;

use console::{Environment, Failure};

const EXAMPLES: &str = "\
Examples:
  telpher bridge slim acme/pay/billing --secret-file slim.secret
                                         SLIM applications call the agent acme/pay/billing
  telpher bridge slim acme/pay/ledger --to acme/pay/ledger --secret-file slim.secret
                                         agents call the SLIM application acme/pay/ledger";

/// Connect agents with applications of other systems
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    Slim(Box<slim::Args>),
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Slim(args) => slim::run(*args, environment),
    }
}
