//! `telpher topic`: manages, writes and reads the topics of the Kafka listener.
//!
//! Administration uses the routes of the HTTP listener over the native protocol; records are
//! appended and read by the client library.

mod admin;
mod consume;
mod produce;
mod report;

use console::Failure;

const EXAMPLES: &str = "\
Examples:
  telpher topic create orders --partitions 6 --config retention.ms=86400000
  telpher topic produce orders 'two books' --key customer-7
                                             one record; its key selects the partition
  telpher topic produce orders --key-separator < orders.tsv
                                             one record per input line: key, tab, value
  telpher topic consume orders --follow      all records of all partitions, and new ones
  telpher topic consume orders --partition 2 --from 100 --max 10 --json
  telpher topic describe orders              show its configuration and its partitions
  telpher topic list

Kafka clients use the same topics at the Kafka listener: kcat -b 127.0.0.1:9092 -C -t orders";

/// Manage Kafka topics; produce and consume their records
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List the topics
    List(admin::ListArgs),
    /// Show the configuration and the partitions of a topic
    Describe(admin::NameArgs),
    /// Create a topic
    Create(admin::CreateArgs),
    /// Add partitions to a topic, or change its configuration
    Alter(admin::AlterArgs),
    /// Delete a topic and all its records
    Delete(admin::NameArgs),
    /// Append records; returns when they are on disk
    Produce(produce::Args),
    /// Print records; with --follow, also new ones
    Consume(consume::Args),
}

pub(crate) fn run(command: Command, environment: &console::Environment) -> Result<(), Failure> {
    match command {
        Command::List(args) => admin::run_list(&args, environment),
        Command::Describe(args) => admin::run_describe(&args, environment),
        Command::Create(args) => admin::run_create(&args, environment),
        Command::Alter(args) => admin::run_alter(&args, environment),
        Command::Delete(args) => admin::run_delete(&args, environment),
        Command::Produce(args) => produce::run(&args, environment),
        Command::Consume(args) => consume::run(&args, environment),
    }
}
