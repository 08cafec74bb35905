//! Callee role: one method that echoes the body.

use client::{Client, Name, Server};

use super::{CALLEE, ServerSpec};
use bench::workload::role::{Failure, Ready, answer_lines, runtime, write_line};
use meter::clock::now_ns;

/// Name of the method.
pub(super) const ECHO: &str = "echo";

pub(super) fn echo() -> Server {
    Server::new().handle_borrowed(ECHO, |request, reply| {
        reply.extend_from_slice(request.body());
        Ok(())
    })
}

/// Plays the callee until its standard input closes.
///
/// # Errors
/// When it cannot listen, or the node cannot be reached.
pub fn serve(spec: &ServerSpec) -> Result<(), Failure> {
    let started_ns = now_ns();
    let ready = |address: &str| Ready {
        address: Some(address.to_owned()),
        setup_ns: now_ns() - started_ns,
    };
    runtime()?.block_on(async {
        let ended = answer_lines(|| Ok(()));
        if spec.through_node {
            let client = Client::connect(&spec.address).await?;
            let attached = echo().attach(&client, &Name::parse(CALLEE)?).await?;
            write_line(&ready(&spec.address))?;
            ended.await??;
            drop(attached);
        } else {
            let listening = echo().listen(&spec.address).await?;
            write_line(&ready(listening.address()))?;
            ended.await??;
            drop(listening);
        }
        Ok(())
    })
}
