//! `telpher quota`: takes from quotas and administers limits.
//!
//! Takes use the native protocol, like those of any client. The other commands use the routes of
//! the HTTP listener over the native protocol, so their JSON output is what `/openapi.json`
//! describes.

mod admin;
mod examples;
mod monitor;
mod take;

use client::CallError;
use model::ErrorCode;

use super::conversation::http::{HttpError, Problem};
use super::target::report_call_failure;
use crate::failure::{Exit, Failure};
use crate::output::Format;
use crate::settings::Environment;

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
        Command::Watch(args) => monitor::run_watch(&args, environment),
        Command::Policies(args) => admin::run_policies(&args, environment),
    }
}

/// Converts an error of an HTTP route to a failure; with `--json`, also prints it to the standard
/// output.
fn report(format: Format, error: HttpError) -> Failure {
    match error {
        HttpError::Refused(problem) => match problem.print(format) {
            Ok(()) => refused(&problem),
            Err(unprinted) => unprinted,
        },
        other => other.report(format, None),
    }
}

fn refused(problem: &Problem) -> Failure {
    let message = format!("{}: {}", problem.code, problem.detail);
    let failure = Failure::new(Exit::from(problem.code), message);
    failure.hint(hint(problem.code))
}

/// Converts an error of a native call to a failure; with `--json`, also prints it to the standard
/// output.
fn call_failure(format: Format, error: &CallError) -> Failure {
    match super::target::agent_name(crate::serve::HTTP_AGENT) {
        Ok(name) if format.json => report_call_failure(format, &name, error),
        _ => {
            let message = format!("{}: {}", error.code, error.message);
            Failure::new(Exit::from(error.code), message).hint(hint(error.code))
        }
    }
}

fn hint(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::NotFound => "`telpher quota policies` lists the limits",
        ErrorCode::Conflict => "the limits have changed meanwhile: read them again",
        ErrorCode::InvalidArgument => "see `telpher quota --help`",
        ErrorCode::Denied => {
            "use an administrator's token (`telpher token add NAME --role admin`); \
             `telpher quota resume` ends a halt"
        }
        code => CallError::new(code, "").hint(),
    }
}
