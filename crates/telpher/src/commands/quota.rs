//! `telpher quota`: takes from quotas and administers limits.
//!
//! Takes use the native protocol, like those of any client. The other commands use the routes of
//! the HTTP listener over the native protocol, so their JSON output is what `/openapi.json`
//! describes.

mod admin;
mod examples;
mod monitor;
mod report;
mod take;
mod usage;

use console::{Environment, Failure};

const EXAMPLES: &str = "\
Examples:
  telpher quota take acme/search/bot 1               take 1 of the unit `requests`
  telpher quota take acme/search/bot tokens=1200 usd_micros=900 --hold 60s
                                                     reserve until settled; prints the hold
  telpher quota settle 00000000000001c7 tokens=734   settle the hold with the true cost
  telpher quota take 'acme/search/bot?run=7' 1 --wait 10s && curl ...
                                                     wait until the limits admit it
  telpher quota peek acme/search/bot                 show the state of its limits
  telpher quota set agent-rps acme/search/bot --capacity 500 --for 2h --reason 'launch'
  telpher quota factor agent-rps 0.5 --for 10m --reason 'the provider is slow'
  telpher quota halt acme/search --reason 'it loops'
  telpher quota policies > limits.json; telpher quota policies --set limits.json --reason 'new plan'
  telpher quota top --by denied
  telpher quota usage --from 2026-11-01 --to 2026-11-30 --by subject
  telpher quota watch

A subject is org/namespace/agent, optionally with ?run=... for limits per run. A denied take takes \
nothing and exits with status 7.";

/// Take from quotas, settle holds, and show and change limits
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Take from every limit that covers a subject, or from none of them
    #[command(after_help = examples::TAKE)]
    Take(take::TakeArgs),
    /// End a hold with its true cost, or cancel it
    #[command(after_help = examples::SETTLE)]
    Settle(take::SettleArgs),
    /// Show the state of a subject's limits without taking
    #[command(after_help = examples::PEEK)]
    Peek(take::PeekArgs),
    /// Override a limit for a prefix, for a time or permanently
    #[command(after_help = examples::SET)]
    Set(admin::SetArgs),
    /// Remove an override
    #[command(after_help = examples::UNSET)]
    Unset(admin::UnsetArgs),
    /// Reset buckets to full
    #[command(after_help = examples::RESET)]
    Reset(admin::ResetArgs),
    /// Multiply a limit by a factor, for a time or permanently
    #[command(after_help = examples::FACTOR)]
    Factor(admin::FactorArgs),
    /// Deny all takes and changes below a prefix
    #[command(after_help = examples::HALT)]
    Halt(admin::HaltArgs),
    /// End a halt
    #[command(after_help = examples::RESUME)]
    Resume(admin::HaltArgs),
    /// List the subjects with the most use, debt or denials
    #[command(after_help = examples::TOP)]
    Top(monitor::TopArgs),
    /// Show what subjects have spent, by day and limit
    #[command(after_help = examples::USAGE)]
    Usage(usage::UsageArgs),
    /// Print denials, crossed thresholds and changes as they happen
    #[command(after_help = examples::WATCH)]
    Watch(monitor::WatchArgs),
    /// Print the limits, or replace all of them
    #[command(after_help = examples::POLICIES)]
    Policies(admin::PoliciesArgs),
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Take(args) => take::run(&args, environment),
        Command::Settle(args) => take::run_settle(&args, environment),
        Command::Peek(args) => take::run_peek(&args, environment),
        Command::Set(args) => admin::run_set(&args, environment),
        Command::Unset(args) => admin::run_unset(&args, environment),
        Command::Reset(args) => admin::run_reset(&args, environment),
        Command::Factor(args) => admin::run_factor(&args, environment),
        Command::Halt(args) => admin::run_halt("halt", &args, environment),
        Command::Resume(args) => admin::run_halt("resume", &args, environment),
        Command::Top(args) => monitor::run_top(&args, environment),
        Command::Usage(args) => usage::run(&args, environment),
        Command::Watch(args) => monitor::run_watch(&args, environment),
        Command::Policies(args) => admin::run_policies(&args, environment),
    }
}
