//! `telpher bench store`: durable messages in conversations.

mod args;
mod idle;
mod kill;
mod soak;

use bench_storage::store;

use super::outcome::Style;
pub(crate) use args::Args;
use console::Failure;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(kills) = args.kill.kills(&args.runs.dir) {
        return kill::run(args, kills);
    }
    if let Some(conversations) = args.idle {
        return idle::run(args, conversations);
    }
    if let Some(length) = args.soak {
        return soak::run(args, length);
    }
    let matrix = args.matrix();
    let styles = [Style::Fleetlm, Style::Table];
    args.outcome.of("store", &styles, |surroundings, runner| {
        store::run(surroundings, &matrix, runner)
    })
}
