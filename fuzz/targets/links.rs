//! Fuzzes `fuzz_checks::links`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::links::check(input));
