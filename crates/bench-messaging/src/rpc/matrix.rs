//! Matrix of an RPC suite: every possible combination of its lists.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Via;
use bench::model::{Area, Case, Mode};
use bench::workload::placement::Placement;
use bench::workload::surroundings::OURS;
use bench::workload::transport::Transport;

/// Call pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RpcMode {
    /// Serial calls, awaited.
    Serial,
    /// Serial calls on a blocking socket.
    Blocking,
    /// Sliding window of calls, awaited in order.
    Concurrent,
    /// Sliding window of calls, with a callback for the replies.
    Callback,
}

/// Length of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Calls without pause for this time.
    Window(Duration),
    /// This number of calls.
    Calls(u64),
}

/// Parameters of an RPC suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Modes, in the order of the report.
    pub modes: Vec<RpcMode>,
    /// Calls in flight, in modes with a window.
    pub concurrency: Vec<u32>,
    /// Sizes of the body in bytes.
    pub sizes: Vec<u64>,
    /// Paths between caller and callee.
    pub vias: Vec<Via>,
    /// Transports between caller and callee.
    pub transports: Vec<Transport>,
    /// Placements of the roles.
    pub placements: Vec<Placement>,
    /// Length of a run.
    pub amount: Amount,
    /// Runs of each case.
    pub repeats: u32,
}

/// Arrangement of the processes of some cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) via: Via,
    pub(super) transport: Transport,
    pub(super) placement: Placement,
}

impl RpcMode {
    /// Returns the mode in results.
    #[must_use]
    pub fn mode(self) -> Mode {
        match self {
            Self::Serial => Mode::SERIAL,
            Self::Blocking => Mode::BLOCKING,
            Self::Concurrent => Mode::CONCURRENT,
            Self::Callback => Mode::CALLBACK,
        }
    }

    /// Returns the mode of a case.
    pub(super) fn of(case: &Case) -> Self {
        match case.mode.name.as_ref() {
            "blocking" => Self::Blocking,
            "concurrent" => Self::Concurrent,
            "callback" => Self::Callback,
            _ => Self::Serial,
        }
    }

    fn has_window(self) -> bool {
        matches!(self, Self::Concurrent | Self::Callback)
    }
}

impl Matrix {
    /// Returns the possible shapes: within one process there is no node and no second CPU.
    pub(super) fn shapes(&self) -> Vec<Shape> {
        let mut shapes = Vec::new();
        for &via in &self.vias {
            for &transport in &self.transports {
                for &placement in &self.placements {
                    let shape = Shape {
                        via,
                        transport,
                        placement,
                    };
                    let alone = transport == Transport::Inproc;
                    if !alone || (via == Via::Direct && placement != Placement::TwoCpus) {
                        shapes.push(shape);
                    }
                }
            }
        }
        shapes
    }

    /// Returns our cases of a shape. A blocking caller needs a separate callee, so it has no case
    /// within one process.
    pub(super) fn cases(&self, shape: Shape) -> Vec<Case> {
        let mut cases = Vec::new();
        let is_there =
            |mode: &&RpcMode| **mode != RpcMode::Blocking || shape.transport != Transport::Inproc;
        for mode in self.modes.iter().filter(is_there) {
            for size in &self.sizes {
                let case = Case::new(OURS, Area::Rpc, mode.mode())
                    .size(*size)
                    .parameter("transport", shape.transport.name())
                    .parameter("via", shape.via.name())
                    .parameter("placement", shape.placement.name());
                match mode.has_window() {
                    true => {
                        let depths = self.concurrency.iter();
                        cases.extend(depths.map(|depth| case.clone().in_flight(*depth)));
                    }
                    false => cases.push(case.in_flight(1)),
                }
            }
        }
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Matrix {
        Matrix {
            modes: vec![RpcMode::Serial, RpcMode::Blocking, RpcMode::Callback],
            concurrency: vec![10, 64],
            sizes: vec![128],
            vias: vec![Via::Direct, Via::Node],
            transports: vec![Transport::Tcp, Transport::Inproc],
            placements: vec![Placement::SameCpu, Placement::TwoCpus],
            amount: Amount::Calls(100),
            repeats: 1,
        }
    }

    #[test]
    fn an_in_process_layout_has_no_node_and_one_cpu() {
        let shapes = matrix().shapes();
        assert_eq!(shapes.len(), 5);
        let inproc: Vec<_> = shapes
            .iter()
            .filter(|shape| shape.transport == Transport::Inproc)
            .map(|shape| (shape.via, shape.placement))
            .collect();
        assert_eq!(inproc, [(Via::Direct, Placement::SameCpu)]);
    }

    #[test]
    fn modes_with_a_window_have_a_case_for_each_depth() {
        let (first, last) = (matrix().shapes()[0], matrix().shapes()[2]);
        let cases = |shape| {
            let cases = matrix().cases(shape);
            let words = cases
                .iter()
                .map(|case| (case.mode.name.to_string(), case.in_flight));
            words
                .map(|(name, depth)| format!("{name} {}", depth.unwrap()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            cases(first),
            ["serial 1", "blocking 1", "callback 10", "callback 64"]
        );
        assert_eq!(cases(last), ["serial 1", "callback 10", "callback 64"]);
    }
}
