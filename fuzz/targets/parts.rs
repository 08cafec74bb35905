//! Any bytes are parts or an error: nothing panics, and every part has a fact of its size.

#![no_main]

use message_json::facts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut found = Vec::new();
    if facts::extract(input, &mut found).is_ok() {
        let sizes: usize = found.iter().map(|fact| fact.size as usize).sum();
        assert!(found.len() <= facts::PARTS_MAX && sizes <= input.len());
    }
});
