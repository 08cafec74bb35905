//! Fuzzes `fuzz_checks::frames`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::frames::check(input));
