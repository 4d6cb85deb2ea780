//! Any bytes as a msr trace: errors are fine, panics are not.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = planewise_trace::formats::parse_all(&planewise_trace::formats::msr::FORMAT, bytes);
});
