//! Any text as the description of a synthetic volume, and a short stream of what is accepted.
#![no_main]

use planewise_trace::synth::{Generator, VolumeDescription};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(volume) = VolumeDescription::parse(text, "fuzz")
        && let Ok(mut generator) = Generator::new(&volume, 100, 1)
    {
        let mut batch = Vec::new();
        assert_eq!(generator.next_batch(&mut batch, 1000), 100);
    }
});
