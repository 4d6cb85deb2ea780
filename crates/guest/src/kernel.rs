//! The process of a kernel: how it is started, what it is given, and what it leaves.
//!
//! All that could differ between two runs is the same: addresses are not randomised, what the kernel asks the host for at random comes from a
//! generator (`linux/fixed-random.c`), and its command line, which seeds its own generator, has the names of sockets and no directory.

use crate::error::GuestError;
use crate::initramfs::Initramfs;
use crate::session::TIME_OF_DAY;
use planewise_model::{Bytes, Ns};
use rustix::fs::statvfs;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a kernel may take to connect for its time: it does that before anything else.
const CONNECTS_WITHIN: Duration = Duration::from_secs(20);

/// What `make linux` builds.
#[derive(Clone, Debug)]
pub struct Build {
    /// The kernel, as a program.
    pub kernel: PathBuf,
    /// The first program in it.
    pub init: PathBuf,
    /// What stands for the host's random numbers.
    pub fixed_random: PathBuf,
}

impl Build {
    /// What is in a directory.
    ///
    /// # Errors
    /// A file is missing.
    pub fn in_directory(directory: &Path) -> Result<Build, GuestError> {
        let file = |name: &str| {
            let path = directory.join(name);
            let found = path.canonicalize();
            found.map_err(|error| {
                GuestError::system(format!("{}: `make linux` builds it", path.display()), error)
            })
        };
        Ok(Build { kernel: file("kernel")?, init: file("init")?, fixed_random: file("fixed-random.so")? })
    }
}

/// What is to run, and where.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The tree of the host's that programs see as `/`; what they change in it stays in the guest's memory.
    pub root: PathBuf,
    /// A directory of the host's that programs see as `/run/out`, and may write.
    pub out: Option<PathBuf>,
    /// A directory of the host's that programs see as `/run/share`, and may read.
    pub share: Option<PathBuf>,
    /// Where the command runs.
    pub directory: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// A shell script before it, which is not measured.
    pub prepare: String,
    /// A shell script behind it, likewise.
    pub finish: String,
    /// A module that is loaded before anything else, with its parameters.
    pub module: Option<(PathBuf, String)>,
}

/// How the kernel is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its memory.
    pub memory: Bytes,
    /// Requests that it gives a drive at a time.
    pub tags: u32,
    /// Varies its random numbers.
    pub seed: u64,
    /// What a system call takes before its work begins.
    pub system_call: Ns,
}

/// What guests tell the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// The command begins.
    Begins,
    /// It has ended, with a shell's status.
    Ended(u8),
    /// What comes before it has failed, with a shell's status.
    NotPrepared(u8),
}

impl Announcement {
    /// From the number that came, with the guest's time since boot; none where it is a program's own.
    pub fn from_message(message: u64) -> Option<(Announcement, Ns)> {
        let status = (message >> 8) as u8;
        let announcement = match message & 0xff {
            1 => Announcement::Begins,
            2 => Announcement::Ended(status),
            3 => Announcement::NotPrepared(status),
            _ => return None,
        };
        Some((announcement, Ns(message >> 16)))
    }
}

/// A kernel that runs, in a directory of its own.
#[derive(Debug)]
pub struct Kernel {
    child: Child,
    directory: PathBuf,
    program: PathBuf,
}

/// Files in that directory.
const TIME: &str = "time";
const INITRAMFS: &str = "initramfs";
/// The kernel's messages, and the program's output and errors.
pub const LOG: &str = "log";
/// The program's output.
pub const OUTPUT: &str = "output";
/// The program's errors.
pub const ERRORS: &str = "errors";

impl Kernel {
    /// Starts one in an empty directory, with so many disks; returns it with the sockets for its time and its disks.
    ///
    /// # Errors
    /// The system's; it ends before it has connected.
    pub fn start(
        build: &Build,
        settings: &Settings,
        job: &Job,
        directory: &Path,
        disks: usize,
    ) -> Result<(Kernel, UnixStream, Vec<UnixListener>), GuestError> {
        let bind = |name: &str| {
            let path = directory.join(name);
            UnixListener::bind(&path)
                .map_err(|error| GuestError::system(format!("making the socket {}", path.display()), error))
        };
        let time = bind(TIME)?;
        let listeners = (0..disks).map(|disk| bind(&disk_name(disk))).collect::<Result<Vec<_>, _>>()?;
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.join(name);
            fs::write(&path, bytes)
                .map_err(|error| GuestError::system(format!("writing {}", path.display()), error))
        };
        write(INITRAMFS, &initramfs(build, job)?)?;
        [LOG, OUTPUT, ERRORS].iter().try_for_each(|name| write(name, &[]))?;
        let log = fs::File::options()
            .append(true)
            .open(directory.join(LOG))
            .map_err(|error| GuestError::system("opening the kernel's log", error))?;
        let more = log.try_clone().map_err(|error| GuestError::system("opening the kernel's log", error))?;
        // Consoles need descriptors that are open already, and the kernel an address space that is the same every time. It ends with this process.
        let script = format!(
            "exec 3>{OUTPUT} 4>{ERRORS}; exec setpriv --pdeathsig KILL -- setarch -R env LD_PRELOAD=\"$0\" PLANEWISE_SEED=$SEED \"$@\""
        );
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).arg(&build.fixed_random).arg(&build.kernel);
        command.args(command_line(settings, disks)).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", ".");
        command.env("SEED", settings.seed.to_string());
        // The guest's memory is a file. A file system in memory is fastest, where it has room for it: the kernel dies of one that has not.
        let room = statvfs("/dev/shm").map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize));
        command.env("TMPDIR", if room > settings.memory.0 { "/dev/shm" } else { "/tmp" });
        command.current_dir(directory).process_group(0);
        command.stdin(Stdio::null()).stdout(log).stderr(more);
        let child = command.spawn().map_err(|error| GuestError::system("starting the kernel", error))?;
        let mut kernel = Kernel { child, directory: directory.to_owned(), program: build.kernel.clone() };
        let stream = kernel.accept(&time)?;
        Ok((kernel, stream, listeners))
    }

    fn accept(&mut self, time: &UnixListener) -> Result<UnixStream, GuestError> {
        let failed = |error: io::Error| GuestError::system("waiting for the kernel", error);
        time.set_nonblocking(true).map_err(failed)?;
        let began = Instant::now();
        loop {
            match time.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(failed)?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(failed(error)),
            }
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                return Err(self.ended(format!("the kernel ended before it began ({status})")));
            }
            if began.elapsed() > CONNECTS_WITHIN {
                return Err(self.ended(format!(
                    "the kernel did not ask for its time within {} s",
                    CONNECTS_WITHIN.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// An error with the last lines of the kernel's log.
    pub fn ended(&self, what: impl Into<String>) -> GuestError {
        let log = fs::read(self.directory.join(LOG)).unwrap_or_default();
        GuestError::Ended { what: what.into(), log: last_lines(&String::from_utf8_lossy(&log)) }
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The file of its program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Whether it has ended, and how.
    ///
    /// # Errors
    /// The system's.
    pub fn status(&mut self) -> Result<Option<ExitStatus>, GuestError> {
        self.child.try_wait().map_err(|error| GuestError::system("looking after the kernel", error))
    }

    /// Waits for its end a moment, and ends it then.
    pub fn stop(&mut self, patience: Duration) {
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(2));
        }
        // Programs in it are processes of the host in its group.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

/// The socket of a disk.
fn disk_name(disk: usize) -> String {
    format!("disk{disk}")
}

fn command_line(settings: &Settings, disks: usize) -> Vec<String> {
    let mut words = vec![
        format!("mem={}", settings.memory.0),
        format!("initrd={INITRAMFS}"),
        format!("time-travel=ext:{TIME}"),
        format!("time-travel-start={TIME_OF_DAY}"),
    ];
    words.extend((0..disks).map(|disk| format!("virtio_uml.device={}:2:{disk}", disk_name(disk))));
    words.extend([
        format!("virtio_blk.queue_depth={}", settings.tags),
        format!("um_system_call_ns={}", settings.system_call.0),
        // Varies the kernel's own generator, which its command line seeds.
        format!("planewise.seed={}", settings.seed),
    ]);
    let fixed = "con0=null,fd:1 con1=null,fd:3 con2=null,fd:4 con=null ssl=null console=tty0 norandmaps oops=panic hung_task_panic=1 quiet loglevel=5";
    words.extend(fixed.split(' ').map(str::to_owned));
    words
}

fn initramfs(build: &Build, job: &Job) -> Result<Vec<u8>, GuestError> {
    let init = fs::read(&build.init)
        .map_err(|error| GuestError::system(format!("reading {}", build.init.display()), error))?;
    let mut archive = Initramfs::new();
    archive.program("init", &init);
    archive.directory("job");
    let words = |words: &mut dyn Iterator<Item = String>| {
        words.fold(String::new(), |all, word| all + &word.replace('\0', "") + "\0")
    };
    let command = words(&mut job.command.iter().cloned());
    let environment = words(&mut job.environment.iter().map(|(name, value)| format!("{name}={value}")));
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let [out, share] =
        [&job.out, &job.share].map(|directory| directory.as_deref().map(path).unwrap_or_default());
    for (name, text) in [
        ("root", path(&job.root).as_str()),
        ("out", &out),
        ("share", &share),
        ("directory", &job.directory),
        ("command", &command),
        ("environment", &environment),
        ("prepare", &job.prepare),
        ("finish", &job.finish),
    ] {
        archive.file(&format!("job/{name}"), text.as_bytes());
    }
    if let Some((module, parameters)) = &job.module {
        let image = fs::read(module)
            .map_err(|error| GuestError::system(format!("reading {}", module.display()), error))?;
        archive.file("job/module", &image);
        archive.file("job/module-parameters", parameters.as_bytes());
    }
    Ok(archive.finish())
}

/// Lines of a log that an error shows.
const LAST_LINES: usize = 12;

const USUAL: [&str; 4] =
    ["BogoMIPS", "epollctl add err", "does not have kernel memory protection", "reboot: Power down"];

fn last_lines(log: &str) -> String {
    // The way to a panic says less than what it was.
    let is_trace = |line: &str| {
        line.starts_with(" [<") || line.split_whitespace().all(|word| u64::from_str_radix(word, 16).is_ok())
    };
    // What every boot says.
    let is_usual = |line: &str| USUAL.iter().any(|usual| line.contains(usual));
    let lines: Vec<&str> =
        log.lines().map(str::trim_end).filter(|line| !is_trace(line) && !is_usual(line)).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
