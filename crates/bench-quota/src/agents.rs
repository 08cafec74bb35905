//! Names of the agents in takes.

use serde::{Deserialize, Serialize};

/// Digits of an agent's number. All names have the same length, so that the size of a request is
/// known in advance.
pub(super) const DIGITS: usize = 8;

/// Agent names of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Names {
    /// Prefix of the names: no two runs share a bucket.
    pub(super) prefix: String,
    /// Number of agents.
    pub(super) count: u32,
    /// Order in which they take.
    pub(super) order: Order,
}

/// Order of the agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Random order.
    Random,
    /// Round robin, from the first.
    InTurn,
}

/// Generator of agent numbers.
#[derive(Debug)]
pub(super) struct Agents {
    count: u32,
    order: Order,
    state: u64,
}

impl Agents {
    /// Makes a generator. Its sequence is always the same, so that two targets get takes for the
    /// same agents.
    pub(super) fn of(names: &Names) -> Self {
        Self {
            count: names.count.max(1),
            order: names.order,
            state: 0,
        }
    }

    /// Returns the next agent's number.
    pub(super) fn next(&mut self) -> u32 {
        let number = match self.order {
            Order::Random => splitmix(self.state) >> 32,
            Order::InTurn => self.state,
        };
        self.state += 1;
        match self.order {
            // Multiplication maps into the range; it is even enough and needs no division.
            Order::Random => ((number * u64::from(self.count)) >> 32) as u32,
            Order::InTurn => (number % u64::from(self.count)) as u32,
        }
    }
}

/// SplitMix, from Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
fn splitmix(turn: u64) -> u64 {
    let mut z = turn.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Writes an agent's number over the first digits of `digits`.
pub(super) fn write_digits(digits: &mut [u8], mut number: u32) {
    for digit in digits[..DIGITS].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(count: u32, order: Order) -> Agents {
        Agents::of(&Names {
            prefix: "a".to_owned(),
            count,
            order,
        })
    }

    #[test]
    fn random_agents_are_evenly_distributed() {
        let mut counts = [0u32; 10];
        let mut agents = agents(10, Order::Random);
        for _ in 0..10_000 {
            counts[agents.next() as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn round_robin_includes_every_agent() {
        let mut agents = agents(3, Order::InTurn);
        let seen: Vec<_> = (0..7).map(|_| agents.next()).collect();
        assert_eq!(seen, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_number_has_all_its_digits() {
        let mut name = *b"xxxxxxxx!";
        write_digits(&mut name, 90_210);
        assert_eq!(&name, b"00090210!");
    }
}
