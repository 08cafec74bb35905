//! Fuzzes `fuzz_checks::chunks`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::chunks::check(input));
