# Planewise: each target installs or builds what it needs, and says in one line what is missing when it cannot.

CARGO ?= cargo
# The oldest Rust that builds the workspace (rust-version in Cargo.toml).
RUST_MIN = 1.88

.PHONY: help demo build pgo test format lint docs bench fuzz man linux linux-root kernel kernel-deb test-kernel clean toolchain

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: toolchain ## build what that needs, then compare eight schedulers over the embedded trace on the embedded device
	@$(CARGO) run --profile edit --no-default-features -- compare

build: toolchain ## the optimised program: target/release/planewise
	@$(CARGO) build --release

pgo: toolchain ## the program guided by a profile of its own runs, a quarter faster: target/pgo/planewise; needs rustup's llvm-tools
	@scripts/pgo.sh

test: toolchain format lint docs ## everything the project checks about itself
	@$(CARGO) test --workspace
	@if [ -f target/linux/kernel ] && [ -f target/linux/source/Module.symvers ]; then kernel/build.sh target/linux/source; else echo "make test: no kernel to build modules against (make linux): skipped"; fi
	@echo "test result: ok. format, lints, documentation and all tests passed"

format: toolchain
	@$(CARGO) fmt --version >/dev/null 2>&1 || { echo "rustfmt is missing: rustup component add rustfmt" >&2; exit 1; }
	@$(CARGO) fmt --all --check

lint: toolchain
	@$(CARGO) clippy --version >/dev/null 2>&1 || { echo "clippy is missing: rustup component add clippy" >&2; exit 1; }
	@$(CARGO) clippy --workspace --all-targets -- -D warnings

docs: toolchain
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

bench: build ## time whole runs, then the engine's parts, on this machine
	@scripts/bench.sh
	@$(CARGO) bench -p planewise-sim -p planewise-trace

fuzz: ## fuzz every parser, FUZZ_SECONDS each (default 60); needs nightly Rust and cargo-fuzz
	@scripts/fuzz.sh

man: build ## manual pages, into target/man
	@mkdir -p target/man && target/release/planewise man target/man && echo "target/man"

linux: ## the kernel of `planewise linux`: about 9 minutes of processor time, once, into target/linux
	@linux/build.sh

linux-root: ## the tree that its programs see as their root: Debian with databases and benchmarks, into target/linux-root
	@linux/root.sh

kernel: ## schedulers as modules for the running kernel, or the source that KERNEL= names, into target/kernel
	@kernel/build.sh $(KERNEL)

kernel-deb: ## those schedulers as a Debian package that builds them by DKMS, into target
	@kernel/package.sh

test-kernel: toolchain linux ## those modules in kernels of all kinds, under 45 minutes; STAGES= names some of kernel/test.sh
	@$(CARGO) build --release
	@kernel/test.sh $(STAGES)

clean: ## remove what was built
	@$(CARGO) clean

toolchain:
	@command -v $(CARGO) >/dev/null 2>&1 || { echo "cargo is missing: install Rust $(RUST_MIN) or newer, https://rustup.rs" >&2; exit 1; }
	@found=$$(rustc --version 2>/dev/null | awk '{ print $$2 }'); \
	  oldest=$$(printf '%s\n%s\n' "$(RUST_MIN)" "$$found" | sort -V | head -n 1); \
	  [ "$$oldest" = "$(RUST_MIN)" ] || { echo "rustc $$found is too old: Rust $(RUST_MIN) or newer is needed, rustup update" >&2; exit 1; }
	@command -v cc >/dev/null 2>&1 || { echo "a C compiler is missing (zstd and blake3 need cc): install gcc or clang" >&2; exit 1; }
