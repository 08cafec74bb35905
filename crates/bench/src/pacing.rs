//! Open-loop schedules: when each message is meant to leave.
//!
//! A rate belongs to the whole case. Its messages are dealt to the clients in turn, so each client
//! sends at `rate / clients`, and the clients together send exactly at the rate, evenly spaced,
//! without accumulated rounding. The module is pure arithmetic: it reads no clock and never waits.
//! A sender that waits by sleeping wakes late by the kernel's timer slack (50 µs unless changed),
//! which adds to the response latency: sleep for most of the wait and spin for the rest.

/// Intended send times of one client, counted from the start of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    rate_per_s: u64,
    clients: u64,
    client: u64,
}

const SECOND_NS: u128 = 1_000_000_000;

impl Schedule {
    /// Makes the schedule of client `client` (from 0) of `clients` that share `rate_per_s` messages
    /// per second. `None` at rate 0 and for a `client` out of range.
    #[must_use]
    pub fn new(rate_per_s: u64, clients: u32, client: u32) -> Option<Self> {
        (rate_per_s > 0 && client < clients).then(|| Self {
            rate_per_s,
            clients: u64::from(clients),
            client: u64::from(client),
        })
    }

    /// Returns when this client's message `index` (from 0) is meant to leave, in nanoseconds after
    /// the start, rounded down.
    #[inline]
    #[must_use]
    pub fn intended_ns(&self, index: u64) -> u64 {
        let turn = u128::from(index) * u128::from(self.clients) + u128::from(self.client);
        u64::try_from(turn * SECOND_NS / u128::from(self.rate_per_s)).unwrap_or(u64::MAX)
    }

    /// Returns the number of messages meant to have left after `elapsed_ns`: those with
    /// `intended_ns(index) <= elapsed_ns`.
    #[inline]
    #[must_use]
    pub fn due(&self, elapsed_ns: u64) -> u64 {
        // intended_ns(i) <= e  <=>  turn(i) · 10⁹ < (e + 1) · rate, as both sides are integers.
        self.turns_before((u128::from(elapsed_ns) + 1) * u128::from(self.rate_per_s))
    }

    /// Returns the number of messages meant to leave before a window of `window_ns` ends.
    #[must_use]
    pub fn count_within(&self, window_ns: u64) -> u64 {
        self.turns_before(u128::from(window_ns) * u128::from(self.rate_per_s))
    }

    /// Returns the number of own turns with `turn · 10⁹ < bound`.
    #[inline]
    fn turns_before(&self, bound: u128) -> u64 {
        let turns = bound.div_ceil(SECOND_NS);
        let own = turns
            .saturating_sub(u128::from(self.client))
            .div_ceil(u128::from(self.clients));
        u64::try_from(own).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hundred_per_second_is_one_every_ten_milliseconds() {
        let schedule = Schedule::new(100, 1, 0).unwrap();
        assert_eq!(schedule.intended_ns(0), 0);
        assert_eq!(schedule.intended_ns(99), 990_000_000);
        assert_eq!(schedule.due(0), 1);
        assert_eq!(schedule.due(9_999_999), 1);
        assert_eq!(schedule.due(10_000_000), 2);
        assert_eq!(schedule.count_within(1_000_000_000), 100);
    }

    #[test]
    fn clients_share_the_rate_and_take_turns() {
        let times: Vec<_> = (0..3)
            .map(|client| Schedule::new(300, 3, client).unwrap().intended_ns(0))
            .collect();
        assert_eq!(times, [0, 3_333_333, 6_666_666]);
        assert_eq!(
            Schedule::new(300, 3, 1)
                .unwrap()
                .count_within(1_000_000_000),
            100
        );
    }

    #[test]
    fn rate_zero_and_a_client_too_many_have_no_schedule() {
        assert_eq!(Schedule::new(0, 1, 0), None);
        assert_eq!(Schedule::new(100, 2, 2), None);
    }

    proptest! {
        #[test]
        fn all_clients_together_are_the_schedule_of_one(
            rate in 1u64..200_000, clients in 1u32..40, window_ms in 0u64..2_000,
        ) {
            let window_ns = window_ms * 1_000_000;
            let alone = Schedule::new(rate, 1, 0).unwrap();
            let all: u64 = (0..clients)
                .map(|client| Schedule::new(rate, clients, client).unwrap().count_within(window_ns))
                .sum();
            prop_assert_eq!(all, alone.count_within(window_ns));
            for turn in 0..100u64 {
                let client = (turn % u64::from(clients)) as u32;
                let own = Schedule::new(rate, clients, client).unwrap();
                prop_assert_eq!(own.intended_ns(turn / u64::from(clients)), alone.intended_ns(turn));
            }
        }

        #[test]
        fn due_counts_exactly_the_messages_scheduled_so_far(
            rate in 1u64..5_000_000, clients in 1u32..50, seed in any::<u32>(),
            elapsed_ns in 0u64..10_000_000_000,
        ) {
            let schedule = Schedule::new(rate, clients, seed % clients).unwrap();
            let due = schedule.due(elapsed_ns);
            if let Some(last) = due.checked_sub(1) {
                prop_assert!(schedule.intended_ns(last) <= elapsed_ns);
            }
            prop_assert!(schedule.intended_ns(due) > elapsed_ns);
        }

        #[test]
        fn the_schedule_never_drifts_from_its_rate(rate in 1u64..5_000_000, seconds in 1u64..1_000) {
            let schedule = Schedule::new(rate, 1, 0).unwrap();
            prop_assert_eq!(schedule.intended_ns(rate * seconds), seconds * 1_000_000_000);
        }
    }
}
