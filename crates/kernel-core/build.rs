//! Compiles the policies of `kernel/core` as they are, for this machine instead of a kernel.

fn main() {
    let core = "../../kernel/core";
    println!("cargo:rerun-if-changed={core}");
    println!("cargo:rerun-if-changed=src/harness.c");
    cc::Build::new()
        .files(["geometry.c", "pass.c", "piq.c", "weave.c"].map(|file| format!("{core}/{file}")))
        .file("src/harness.c")
        .include(core)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("planewise_kernel_core");
}
