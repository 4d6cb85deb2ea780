//! Running the program as a user does, in a folder of its own.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder to run the program in.
pub struct Place {
    folder: TempDir,
}

/// What a run of the program said.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planewise"));
        command.current_dir(self.path()).args(arguments.split_whitespace());
        command
    }

    /// Runs `planewise` with arguments that hold no blanks of their own.
    pub fn run(&self, arguments: &str) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs it and expects success.
    pub fn ok(&self, arguments: &str) -> Said {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(0), "{arguments}: {}", said.err);
        said
    }

    /// Expects a failure: this exit code, nothing on standard output, one line on standard error that holds all the words.
    pub fn fails(&self, code: i32, arguments: &str, words: &[&str]) {
        self.run(arguments).failed(code, arguments, words);
    }

    /// Names of everything in the folder and below, sorted.
    pub fn everything(&self) -> Vec<String> {
        let mut found = Vec::new();
        list(self.path(), self.path(), &mut found);
        found.sort();
        found
    }
}

impl Said {
    pub fn failed(&self, code: i32, arguments: &str, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{arguments}: {}", self.err);
        assert_eq!(self.out, "", "{arguments}");
        assert_eq!(self.err.trim_end().lines().count(), 1, "{arguments}: {}", self.err);
        assert!(self.err.starts_with("error: "), "{arguments}: {}", self.err);
        for word in words {
            assert!(self.err.contains(word), "{arguments}: no '{word}' in: {}", self.err);
        }
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// The folder of real traces: `PLANEWISE_TRACES`, or `../shared/traces` beside the tree. Says so when there is none.
pub fn traces() -> Option<PathBuf> {
    let named = std::env::var_os("PLANEWISE_TRACES").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = named.unwrap_or_else(beside);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: real traces (PLANEWISE_TRACES names no folder, and {} is none)", folder.display());
    None
}

fn list(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
        if path.is_dir() && !path.is_symlink() {
            list(root, &path, found);
        }
    }
}

/// `count` requests of 8 KiB in MSR columns, 100 us apart, alternating reads and writes.
pub fn msr(count: u64) -> String {
    (0..count)
        .map(|i| {
            let kind = if i % 2 == 0 { "Read" } else { "Write" };
            format!(
                "{},host,0,{kind},{},8192,0\n",
                133_000_000_000_000_000 + i * 1000,
                (i * 7919 % 10_000) * 8192
            )
        })
        .collect()
}

/// A small device: 64 MiB, so that tests cost nothing.
pub fn small_device() -> String {
    planewise_model::Profile::embedded("piq-128g")
        .unwrap()
        .to_toml()
        .replace("name = \"piq-128g\"", "name = \"small\"")
        .replace("blocks_per_plane = 2048", "blocks_per_plane = 40")
}
