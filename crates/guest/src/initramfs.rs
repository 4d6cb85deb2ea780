//! The kernel's initial file system: our first program, and what it is to do (an archive in the "newc" format of cpio).

/// An archive in the making. Owner, times and numbers of files are the same in every run.
#[derive(Debug, Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    files: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const FILE: u32 = 0o100_644;
const CHARACTER_DEVICE: u32 = 0o020_600;
/// Of `/dev/console`.
const CONSOLE: (u32, u32) = (5, 1);

impl Initramfs {
    /// With a console, which the kernel opens before any program runs.
    pub fn new() -> Initramfs {
        let mut archive = Initramfs::default();
        archive.directory("dev");
        archive.entry("dev/console", CHARACTER_DEVICE, CONSOLE, &[]);
        archive
    }

    /// Adds a directory.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, (0, 0), &[]);
    }

    /// Adds a file.
    pub fn file(&mut self, path: &str, bytes: &[u8]) {
        self.entry(path, FILE, (0, 0), bytes);
    }

    /// Adds a program.
    pub fn program(&mut self, path: &str, bytes: &[u8]) {
        self.entry(path, PROGRAM, (0, 0), bytes);
    }

    /// The whole archive, as long as any other with a little more or less in it: the lengths of paths are not to move anything in the kernel's memory.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes.resize(self.bytes.len().next_multiple_of(1 << 20), 0);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), bytes: &[u8]) {
        self.files += 1;
        let links = if mode == DIRECTORY { 2 } else { 1 };
        let (length, name) = (bytes.len() as u32, path.len() as u32 + 1);
        let fields = [self.files, mode, 0, 0, links, 0, length, 0, 0, device.0, device.1, name, 0];
        self.bytes.extend(b"070701");
        fields.iter().for_each(|field| self.bytes.extend(format!("{field:08x}").as_bytes()));
        self.bytes.extend(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(bytes);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_one_that_cpio_reads() {
        let mut archive = Initramfs::new();
        archive.directory("job");
        archive.file("job/command", b"fio\0--version\0");
        archive.program("init", &[7; 1001]);
        let bytes = archive.finish();
        assert!(bytes.len().is_multiple_of(4) && bytes.starts_with(b"070701"));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("archive");
        std::fs::write(&file, &bytes).unwrap();
        let Ok(listed) = std::process::Command::new("cpio").args(["-t", "--quiet", "-F"]).arg(&file).output()
        else {
            eprintln!("skipped: cpio is not there to read the archive");
            return;
        };
        assert_eq!(String::from_utf8_lossy(&listed.stdout), "dev\ndev/console\njob\njob/command\ninit\n");
    }
}
