//! Lists the studies of `studies/` for the program: a new file there is a new study, without a line of code.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        let is_toml = path.extension().is_some_and(|extension| extension == "toml");
        // The table of what was published lies beside the studies and is none.
        names.extend(stem.filter(|stem| is_toml && stem != "claims"));
    }
    names.sort_unstable();
    let mut text = String::from("[\n");
    for name in names {
        let path = folder.join(format!("{name}.toml")).canonicalize()?;
        println!("cargo::rerun-if-changed={}", path.display());
        writeln!(text, "    ({name:?}, include_str!({path:?})),").map_err(io::Error::other)?;
    }
    text += "]\n";
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is set by cargo"))?;
    fs::write(Path::new(&out).join("studies.rs"), text)
}
