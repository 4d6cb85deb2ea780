#!/usr/bin/env bash
# Fuzzes every target of fuzz/ for FUZZ_SECONDS each (default 60).
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
command -v cargo >/dev/null || { echo "cargo is missing: install Rust, https://rustup.rs" >&2; exit 1; }
cargo +nightly --version >/dev/null 2>&1 || { echo "nightly Rust is missing: rustup toolchain install nightly" >&2; exit 1; }
cargo fuzz --version >/dev/null 2>&1 || { echo "cargo-fuzz is missing: cargo install cargo-fuzz" >&2; exit 1; }
for target in $(cargo +nightly fuzz list); do
  echo "fuzzing $target for $seconds s"
  cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -max_len=65536
done
