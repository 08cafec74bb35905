//! Receiver process: serves every destination, echoes requests and counts messages.

use std::sync::Arc;

use client::{Attachment, Client, Fault, Name, Request, Server};
use parking_lot::Mutex;

use super::ReceiverSpec;
use bench::measurement::{Arrivals, Sink};
use bench::workload::role::{Failure, Ready, answer_lines, runtime, write_line};
use meter::clock::now_ns;

/// Method of the warm-up exchange, which is not counted.
pub(super) const WARM_UP: &str = "warm-up";

/// Plays the receiver: answers each line with the counts so far.
///
/// # Errors
/// When the node cannot be reached.
pub fn receive(spec: &ReceiverSpec) -> Result<(), Failure> {
    let started_ns = now_ns();
    let sink = Arc::new(Mutex::new(Sink::default()));
    let runtime = runtime()?;
    let agents = runtime.block_on(subscribe(spec, &sink))?;
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - started_ns,
    })?;
    let ended = answer_lines(move || {
        let mut count = sink.lock().clone();
        count.elapsed_ns = Some(now_ns() - started_ns);
        write_line(&count)
    });
    runtime.block_on(ended)??;
    drop(agents);
    Ok(())
}

async fn subscribe(
    spec: &ReceiverSpec,
    sink: &Arc<Mutex<Sink>>,
) -> Result<Vec<(Client, Attachment)>, Failure> {
    let mut agents = Vec::new();
    for name in &spec.names {
        let client = Client::connect(&spec.node).await?;
        let (sink, size) = (sink.clone(), spec.size);
        let attached = Server::new()
            .handle_borrowed("", move |request, reply| {
                count(&sink, size, request.body());
                reply.extend_from_slice(request.body());
                Ok(())
            })
            .handle_sync(WARM_UP, |request: Request| Ok::<_, Fault>(request.body))
            .attach(&client, &Name::parse(name)?)
            .await?;
        agents.push((client, attached));
    }
    Ok(agents)
}

fn count(sink: &Mutex<Sink>, size: usize, body: &[u8]) {
    let mut sink = sink.lock();
    sink.received += 1;
    Arrivals::note(&mut sink.arrivals, now_ns());
    if body.len() != size {
        *sink.errors.entry("wrong_size".to_owned()).or_default() += 1;
    }
}
