//! `telpher quota`: takes from limits, and what administers them.
//!
//! Takes go over the native door like those of any client; everything else asks the routes of the HTTP
//! door, over the native one. What is printed as JSON is what `/openapi.json` describes.

mod admin;
mod examples;
mod look;
mod take;

use client::CallError;
use model::ErrorCode;

use super::conversation::ask::{Problem, Trouble};
use super::target::tell_call_failure;
use crate::failure::{Exit, Failure};
use crate::output::Format;
use crate::settings::Environment;

const EXAMPLES: &str = "\
Examples:
  telpher quota take acme/search/bot 1               one of `requests`
  telpher quota take acme/search/bot tokens=1200 usd_micros=900 --hold 60s
                                                     reserved until it is settled; prints the hold
  telpher quota settle 00000000000001c7 tokens=734   what it truly cost
  telpher quota take 'acme/search/bot?run=7' 1 --wait 10s && curl ...
                                                     as soon as the limits let it pass
  telpher quota peek acme/search/bot                 how its limits stand
  telpher quota set agent-rps acme/search/bot --capacity 500 --for 2h --reason 'launch'
  telpher quota factor agent-rps 0.5 --for 10m --reason 'the provider is slow'
  telpher quota halt acme/search --reason 'it loops'
  telpher quota policies > limits.json; telpher quota policies --set limits.json --reason 'new plan'
  telpher quota top --by denied
  telpher quota watch

A subject is org/namespace/agent, with ?run=... behind it for what a run has of its own. A take that is \
denied ends with status 7 and takes nothing.";

/// Stay within limits: take from them, settle, look, and change them
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Take from every limit that covers a subject, or from none
    #[command(after_help = examples::TAKE)]
    Take(take::TakeArgs),
    /// End a hold with what it truly cost, or cancel it
    #[command(after_help = examples::SETTLE)]
    Settle(take::SettleArgs),
    /// Show how the limits of a subject stand; nothing is taken
    #[command(after_help = examples::PEEK)]
    Peek(take::PeekArgs),
    /// Have another limit stand for one prefix, for a time or for good
    #[command(after_help = examples::SET)]
    Set(admin::SetArgs),
    /// Have the limit stand again that `set` replaced
    #[command(after_help = examples::UNSET)]
    Unset(admin::UnsetArgs),
    /// Make buckets as if nothing had been taken from them
    #[command(after_help = examples::RESET)]
    Reset(admin::ResetArgs),
    /// Multiply what a limit gives, for a time or for good
    #[command(after_help = examples::FACTOR)]
    Factor(admin::FactorArgs),
    /// Admit nothing more for a prefix
    #[command(after_help = examples::HALT)]
    Halt(admin::HaltArgs),
    /// Admit again what was halted
    #[command(after_help = examples::RESUME)]
    Resume(admin::HaltArgs),
    /// List who takes most, owes most, or is denied most
    #[command(after_help = examples::TOP)]
    Top(look::TopArgs),
    /// Print denials, thresholds that are crossed and changes as they come
    #[command(after_help = examples::WATCH)]
    Watch(look::WatchArgs),
    /// Print the limits, or replace them all
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
        Command::Top(args) => look::run_top(&args, environment),
        Command::Watch(args) => look::run_watch(&args, environment),
        Command::Policies(args) => admin::run_policies(&args, environment),
    }
}

/// Why there is no answer, as a person reads it; for programs also as JSON.
fn tell(format: Format, trouble: Trouble) -> Failure {
    match trouble {
        Trouble::Refused(problem) => match problem.print(format) {
            Ok(()) => refused(&problem),
            Err(unprinted) => unprinted,
        },
        other => other.tell(format, None),
    }
}

fn refused(problem: &Problem) -> Failure {
    let message = format!("{}: {}", problem.code, problem.detail);
    let failure = Failure::new(Exit::from(problem.code), message);
    failure.hint(hint(problem.code))
}

/// The same for what was asked over the native door.
fn call_failure(format: Format, error: &CallError) -> Failure {
    match super::target::agent_name(crate::serve::HTTP_AGENT) {
        Ok(name) if format.json => tell_call_failure(format, &name, error),
        _ => {
            let message = format!("{}: {}", error.code, error.message);
            Failure::new(Exit::from(error.code), message).hint(hint(error.code))
        }
    }
}

fn hint(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::NotFound => "`telpher quota policies` lists the limits",
        ErrorCode::Conflict => "somebody else has changed the limits: look at them again",
        ErrorCode::InvalidArgument => "`telpher quota --help` shows how it is written",
        ErrorCode::Denied => {
            "an administrator's token does it: `telpher token add NAME --role admin`; \
             what is halted is admitted again by `telpher quota resume`"
        }
        code => CallError::new(code, "").hint(),
    }
}
