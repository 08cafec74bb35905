//! Fuzzes `fuzz_checks::parts`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::parts::check(input));
