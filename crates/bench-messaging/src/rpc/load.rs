//! Caller role.

mod blocking;
mod callback;
mod calls;
mod concurrent;

use client::Caller;

use super::{Amount, CallCounts, LoadSpec, RpcMode, server};
use bench::workload::role::{Failure, Ready, read_line, runtime, write_line};
use calls::{Calls, check};
use meter::clock::now_ns;
use server::ECHO;

/// Number of calls before the window, which bind the route and warm the buffers. A run of fewer
/// calls is warmed up with its own number.
const WARM_UP: u64 = 2_000;

/// Address of the callee when it is in this process.
const INPROC: &str = "inproc://bench-rpc";

/// Plays the caller.
///
/// # Errors
/// When the callee cannot be reached or the warm-up fails.
pub fn load(spec: &LoadSpec) -> Result<(), Failure> {
    match spec.mode {
        RpcMode::Blocking => blocking::load(spec)?,
        _ => runtime()?.block_on(load_on_runtime(spec))?,
    }
    // The suite reads this process's memory before it ends.
    read_line()?;
    Ok(())
}

async fn load_on_runtime(spec: &LoadSpec) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let callee = match &spec.address {
        Some(_) => None,
        None => Some(server::echo().listen(INPROC).await?),
    };
    let caller = Caller::connect(spec.address.as_deref().unwrap_or(INPROC)).await?;
    run(spec, &caller, warm_up(spec)).await?.into_result()?;
    report_ready(opened_ns)?;
    if read_line()?.is_some() {
        write_line(&run(spec, &caller, spec.amount).await?.into_called())?;
    }
    drop(callee);
    Ok(())
}

fn report_ready(opened_ns: u64) -> Result<(), Failure> {
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })
}

fn warm_up(spec: &LoadSpec) -> Amount {
    let in_flight = u64::from(spec.in_flight);
    Amount::Calls(match spec.amount {
        Amount::Calls(calls) => calls.min(WARM_UP).max(in_flight),
        Amount::Window(_) => WARM_UP.max(in_flight),
    })
}

async fn run(spec: &LoadSpec, caller: &Caller, amount: Amount) -> Result<Calls, Failure> {
    match spec.mode {
        RpcMode::Concurrent => Ok(concurrent::run(spec, caller, amount).await),
        RpcMode::Callback => callback::run(spec, caller, amount).await,
        // Run in a task, as in any program: the runtime polls its root future only after it has
        // looked for events, which costs a system call for each wake-up.
        RpcMode::Serial | RpcMode::Blocking => {
            Ok(tokio::spawn(serial(spec.size, caller.clone(), amount)).await?)
        }
    }
}

async fn serial(size: usize, caller: Caller, amount: Amount) -> Calls {
    let body = vec![7; size];
    let mut calls = Calls::begin(amount);
    let mut sent_ns = calls.start_ns;
    while calls.next(sent_ns) {
        let outcome = caller.call(ECHO, &body).await;
        let done_ns = now_ns();
        calls.ended(
            sent_ns,
            done_ns,
            outcome.and_then(|reply| check(&reply, size)),
        );
        sent_ns = done_ns;
    }
    calls
}
