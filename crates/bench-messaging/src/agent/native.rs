//! Runs of our own sender and responder through our node, over its native protocol.

use std::path::Path;
use std::time::Duration;

use super::sink::final_count;
use super::{AgentMode, ReceiverSpec, SenderCounts, SenderSpec, destination};
use bench::measurement::{Measurement, Sink};
use bench::model::{Case, CountedBy};
use bench::process::{Role, Watch};
use bench::workload::child::Actor;
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::placement::Placement;
use bench::workload::role::{self, Ready, RoleSpec};
use bench::workload::surroundings::PATIENCE;

/// A node, and the means to start the roles of a run.
pub(super) struct NativeRun<'a> {
    pub(super) executable: &'a Path,
    pub(super) placement: Placement,
    pub(super) node: &'a mut Node,
}

impl NativeRun<'_> {
    /// Runs one repeat of a case, with processes of its own.
    pub(super) fn measure(
        &mut self,
        case: &Case,
        window: Duration,
    ) -> Result<Measurement, WorkloadError> {
        let mut receiver = match case.mode.counted_by {
            CountedBy::Sink => Some(self.receiver(case)?),
            CountedBy::Sender => None,
        };
        let mut sender = self.sender(case, window)?;
        let Ready { setup_ns, .. } = sender.json()?;
        let mut watched = vec![(Role::Sender, sender.pid()), (Role::Node, self.node.pid())];
        watched.extend(receiver.iter().map(|one| (Role::Responder, one.pid())));
        let watch = Watch::start(&watched)?;
        sender.write_line("go")?;
        let SenderCounts { tally, window_ns } = sender.json_while(window + PATIENCE, || {
            self.node.check_alive()?;
            receiver.as_mut().map_or(Ok(()), Actor::check_alive)
        })?;
        let measured = tally.over(window_ns);
        let sink = match &mut receiver {
            Some(receiver) => Some(self.count(receiver, case, measured.completed)?),
            None => None,
        };
        let usage = watch.stop();
        self.node.check_alive()?;
        Ok(Measurement {
            setup_ns: Some(setup_ns),
            sink,
            usage: Some(usage),
            ..measured
        })
    }

    fn count(
        &mut self,
        receiver: &mut Actor,
        case: &Case,
        completed: u64,
    ) -> Result<Sink, WorkloadError> {
        // Messages that a dead node did not deliver are no loss to count: fail instead.
        self.node.check_alive()?;
        let expected = completed * u64::from(case.subscribers());
        Ok(final_count(receiver, expected)?)
    }

    fn sender(&self, case: &Case, window: Duration) -> Result<Actor, WorkloadError> {
        let spec = SenderSpec {
            node: self.node.native.clone(),
            mode: AgentMode::of(case),
            clients: case.clients,
            size: case.size as usize,
            rate: case.rate,
            in_flight: case.in_flight.unwrap_or(1),
            window_ns: window.as_nanos() as u64,
        };
        self.start_role(Role::Sender, &spec)
    }

    fn receiver(&self, case: &Case) -> Result<Actor, WorkloadError> {
        let destinations = (0..case.clients).map(destination);
        let copies = case.subscribers() as usize;
        let spec = ReceiverSpec {
            node: self.node.native.clone(),
            names: destinations
                .flat_map(|name| std::iter::repeat_n(name, copies))
                .collect(),
            size: case.size as usize,
        };
        let mut receiver = self.start_role(Role::Responder, &spec)?;
        let Ready { .. } = receiver.json()?;
        Ok(receiver)
    }

    fn start_role(&self, role: Role, spec: &impl RoleSpec) -> Result<Actor, WorkloadError> {
        let pin = self.placement.pin(role);
        Ok(role::start(self.executable, spec, pin)?)
    }
}
