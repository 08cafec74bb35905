//! Every check on random bytes.

use fastrand::Rng;
use fuzz_checks::{
    batches, blocks, chunks, conversations, frames, heads, kafka, links, parts, slim,
};

const INPUTS: u64 = 2_000;
const SIZE_MAX: usize = 512;

/// Runs a check on inputs of random sizes. Half of them have only bytes of a small alphabet, which
/// lengths, counts and separators are made of.
fn on_random_bytes(check: fn(&[u8])) {
    for seed in 0..INPUTS {
        let mut rng = Rng::with_seed(seed);
        let size = rng.usize(..SIZE_MAX);
        let small = b"\0\x01\x02\x04\x10\xff\r\n: {}[]\",1a";
        let input: Vec<u8> = match seed % 2 {
            0 => (0..size).map(|_| rng.u8(..)).collect(),
            _ => (0..size).map(|_| small[rng.usize(..small.len())]).collect(),
        };
        check(&input);
    }
}

#[test]
fn every_check_holds_on_random_bytes() {
    let checks: [fn(&[u8]); 10] = [
        batches::check,
        blocks::check,
        chunks::check,
        conversations::check,
        frames::check,
        heads::check,
        kafka::check,
        links::check,
        parts::check,
        slim::check,
    ];
    for check in checks {
        on_random_bytes(check);
    }
}
