//! Measures the demand for a cell, which determines the size of its leases.

/// Length of a window, in nanoseconds.
const WINDOW_NS: u64 = 100_000_000;

/// The amounts requested in the current window and in the previous one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    window: u64,
    now: IntervalDemand,
    before: IntervalDemand,
}

#[derive(Clone, Copy, Debug, Default)]
struct IntervalDemand {
    takes: u32,
    count: u64,
}

impl Demand {
    /// Adds a take's request.
    pub(super) fn note(&mut self, count: u64, now_ns: u64) {
        let (now, before) = self.at(now_ns);
        (self.window, self.before) = (now_ns / WINDOW_NS, before);
        self.now = IntervalDemand {
            takes: now.takes.saturating_add(1),
            count: now.count.saturating_add(count),
        };
    }

    /// Returns the amount requested per window.
    pub(super) fn count(&self, now_ns: u64) -> u64 {
        let (now, before) = self.at(now_ns);
        now.count.max(before.count)
    }

    /// Returns whether more than one take asked recently.
    pub(super) fn is_of_several(&self, now_ns: u64) -> bool {
        let (now, before) = self.at(now_ns);
        now.takes.max(before.takes) > 1
    }

    fn at(&self, now_ns: u64) -> (IntervalDemand, IntervalDemand) {
        let window = now_ns / WINDOW_NS;
        match window.saturating_sub(self.window) {
            0 => (self.now, self.before),
            1 => (IntervalDemand::default(), self.now),
            _ => (IntervalDemand::default(), IntervalDemand::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_demand_is_the_larger_of_the_last_two_windows() {
        let mut demand = Demand::default();
        demand.note(3, 10 * WINDOW_NS);
        assert_eq!(
            (
                demand.count(10 * WINDOW_NS),
                demand.is_of_several(10 * WINDOW_NS)
            ),
            (3, false)
        );
        demand.note(4, 10 * WINDOW_NS + 1);
        demand.note(1, 11 * WINDOW_NS);
        let at = 11 * WINDOW_NS;
        assert_eq!((demand.count(at), demand.is_of_several(at)), (7, true));
        assert_eq!(demand.count(at + WINDOW_NS), 1);
        assert_eq!(demand.count(at + 2 * WINDOW_NS), 0);
    }
}
