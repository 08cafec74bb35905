//! Fuzzes `fuzz_checks::heads`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::heads::check(input));
