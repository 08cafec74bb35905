//! `telpher kafka`: what only the Kafka door has.

mod user;

use crate::failure::Failure;
use crate::settings::Environment;

const EXAMPLES: &str = "\
Examples:
  telpher kafka user add ann                     asks for a password
  pass show ann | telpher kafka user add ann     or takes it from a pipe, never from the command line
  telpher kafka user list
  telpher kafka user delete ann

Once there is a user, every Kafka client says who it is: SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN.";

/// Look after the Kafka door
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Users who come in by a password
    #[command(subcommand)]
    User(user::Command),
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::User(command) => user::run(command, environment),
    }
}
