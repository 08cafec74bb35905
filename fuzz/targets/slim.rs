//! Fuzzes `fuzz_checks::slim`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::slim::check(input));
