//! Encoding of a window policy in a record.
//!
//! ```text
//! strategy u8 (0 budget, 1 last n, 2 skip parts, 3 manual) | count u32 | budget u32 | reserve u32
//! | drop first u16 | keep tool turns u32 | step u16 | keep u8 × text8
//! ```

use super::Malformed;
use super::bytes::{FieldReader, Put};
use crate::context::{Kinds, Policy, Strategy};

/// Appends the policy.
pub(super) fn encode(policy: &Policy, out: &mut Vec<u8>) {
    let (strategy, count) = match policy.strategy {
        Strategy::Budget => (0, 0),
        Strategy::LastN { count } => (1, count),
        Strategy::SkipParts { count } => (2, count),
        Strategy::Manual => (3, 0),
    };
    out.push(strategy);
    for number in [count, policy.budget, policy.reserve] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&policy.drop_first.bits().to_le_bytes());
    out.extend_from_slice(&policy.keep_tool_turns.to_le_bytes());
    out.extend_from_slice(&policy.step_permille.to_le_bytes());
    let count = u8::try_from(policy.keep.len()).expect("few roles were let in");
    out.push(count);
    for role in &policy.keep {
        out.text8(role);
    }
}

/// Decodes a policy.
pub(super) fn decode(rest: &mut FieldReader<'_>) -> Result<Policy, Malformed> {
    let strategy = rest.u8()?;
    let count = rest.u32()?;
    Ok(Policy {
        strategy: match (strategy, count) {
            (0, 0) => Strategy::Budget,
            (1, count) => Strategy::LastN { count },
            (2, count) => Strategy::SkipParts { count },
            (3, 0) => Strategy::Manual,
            _ => return Err(rest.malformed()),
        },
        budget: rest.u32()?,
        reserve: rest.u32()?,
        drop_first: Kinds::from_bits(rest.u16()?).ok_or(rest.malformed())?,
        keep_tool_turns: rest.u32()?,
        step_permille: rest.u16()?,
        keep: (0..rest.u8()?)
            .map(|_| rest.text8().map(str::to_owned))
            .collect::<Result<_, _>>()?,
    })
}
