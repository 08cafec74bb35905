//! Fuzzes `fuzz_checks::batches`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::batches::check(input));
