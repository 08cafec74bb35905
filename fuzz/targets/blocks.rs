//! Fuzzes `fuzz_checks::blocks`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::blocks::check(input));
