//! Whom the takes are for.

use serde::{Deserialize, Serialize};

/// Digits of an agent's number: all names are of one length, so that a request's is known beforehand.
pub(super) const DIGITS: usize = 8;

/// The names of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Names {
    /// What they begin with: no two runs share a bucket.
    pub(super) prefix: String,
    /// How many there are.
    pub(super) count: u32,
    /// Who comes next.
    pub(super) order: Order,
}

/// Who comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Anybody.
    Random,
    /// One after the other, from the first.
    InTurn,
}

/// Says who comes next.
#[derive(Debug)]
pub(super) struct Agents {
    count: u32,
    order: Order,
    state: u64,
}

impl Agents {
    /// The same every time: two targets are asked for the same agents.
    pub(super) fn of(names: &Names) -> Self {
        Self {
            count: names.count.max(1),
            order: names.order,
            state: 0,
        }
    }

    /// The number of the next one.
    pub(super) fn next(&mut self) -> u32 {
        let number = match self.order {
            Order::Random => splitmix(self.state) >> 32,
            Order::InTurn => self.state,
        };
        self.state += 1;
        match self.order {
            // Multiplied into the range, which is even enough and divides nothing.
            Order::Random => ((number * u64::from(self.count)) >> 32) as u32,
            Order::InTurn => (number % u64::from(self.count)) as u32,
        }
    }
}

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
fn splitmix(turn: u64) -> u64 {
    let mut z = turn.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Writes an agent's number over the digits at the beginning of `place`.
pub(super) fn write_digits(place: &mut [u8], mut number: u32) {
    for digit in place[..DIGITS].iter_mut().rev() {
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
    fn everybody_comes_about_as_often() {
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
    fn in_turn_nobody_is_left_out() {
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
