//! Any text as a device profile: what is accepted must read back from its own TOML.
#![no_main]

use planewise_model::Profile;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(profile) = Profile::parse(text, "fuzz") {
        assert_eq!(Profile::parse(&profile.to_toml(), "fuzz"), Ok(profile));
    }
});
