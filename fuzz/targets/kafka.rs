//! Fuzzes `fuzz_checks::kafka`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::kafka::check(input));
