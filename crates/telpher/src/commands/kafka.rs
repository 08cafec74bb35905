//! `telpher kafka`: administration of the Kafka listener.

mod user;

use console::{Environment, Failure};

const EXAMPLES: &str = "\
Examples:
  telpher kafka user add ann                     asks for a password
  pass show ann | telpher kafka user add ann     reads the password from a pipe
  telpher kafka user list
  telpher kafka user delete ann

Once a user exists, every Kafka client must authenticate, by SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN.";

/// Manage the users of the Kafka listener
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Add, list and delete users with passwords
    #[command(subcommand)]
    User(user::Command),
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::User(command) => user::run(command, environment),
    }
}
