//! Serial calls without a runtime: a blocking socket, with a spin before the wait if that helps.

use client::blocking::Client;

use super::{Amount, Calls, ECHO, Failure, LoadSpec, check, report_ready, warm_up};
use bench::workload::role::{read_line, write_line};
use meter::clock::now_ns;

pub(super) fn load(spec: &LoadSpec) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let address = spec
        .address
        .as_deref()
        .ok_or("a blocking caller needs a callee of its own")?;
    let mut client = Client::connect(address)?;
    run(spec, &mut client, warm_up(spec)).into_result()?;
    report_ready(opened_ns)?;
    if read_line()?.is_some() {
        write_line(&run(spec, &mut client, spec.amount).into_called())?;
    }
    Ok(())
}

fn run(spec: &LoadSpec, client: &mut Client, amount: Amount) -> Calls {
    let body = vec![7; spec.size];
    let mut calls = Calls::begin(amount);
    let mut sent_ns = calls.start_ns;
    while calls.next(sent_ns) {
        let mut checked = Ok(());
        let outcome = client.call_with(ECHO, &body, |reply| checked = check(reply, spec.size));
        let done_ns = now_ns();
        calls.ended(sent_ns, done_ns, outcome.and(checked));
        sent_ns = done_ns;
    }
    calls
}
