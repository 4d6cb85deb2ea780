//! Which program a kernel runs, seen from outside: for one that never ends a turn.

use object::{Object, ObjectSymbol};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a name of a program, with its end.
const NAME_BYTES: usize = 16;
/// The first process's name, by which the place of names in its description is found.
const FIRST: &[u8] = b"swapper";
/// Longest description of a process that is searched, bytes.
const DESCRIPTION_BYTES: usize = 16 * 1024;

/// What a kernel's process does: the program that runs in it, as far as that can be told.
pub fn running(process: u32, program: &Path) -> String {
    match name(process, program) {
        Some(name) if name.starts_with("swapper") => "no program runs in it".to_owned(),
        Some(name) => format!("the program '{name}' runs in it without a system call that takes time"),
        None => "which program runs in it cannot be told".to_owned(),
    }
}

/// The kernel keeps the description of what runs at `cpu_tasks`, and that of its first process at `init_task`.
fn name(process: u32, program: &Path) -> Option<String> {
    let bytes = std::fs::read(program).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let address =
        |name: &str| file.symbols().find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address());
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let mut first = vec![0; DESCRIPTION_BYTES];
    let length = memory.read_at(&mut first, address("init_task")?).ok()?;
    let place = first[..length].windows(FIRST.len()).position(|window| window == FIRST)?;
    let mut pointer = [0; 8];
    memory.read_exact_at(&mut pointer, address("cpu_tasks")?).ok()?;
    let mut name = [0; NAME_BYTES];
    memory.read_exact_at(&mut name, u64::from_le_bytes(pointer).checked_add(place as u64)?).ok()?;
    let end = name.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&name[..end]).into_owned())
}
