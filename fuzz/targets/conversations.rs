//! Fuzzes `fuzz_checks::conversations`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::conversations::check(input));
