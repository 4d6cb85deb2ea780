//! Any bytes as a iolog trace: errors are fine, panics are not.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = planewise_trace::formats::parse_all(&planewise_trace::formats::iolog::FORMAT, bytes);
});
