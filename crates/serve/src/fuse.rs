//! A file system of one file, `drive`, for a loop device: where nothing else goes.
//!
//! The file is opened past the page cache, so that each request of the loop device's own queue comes here.

use crate::error::ServeError;
use crate::order::{Order, Orders};
use crate::store::Store;
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use planewise_model::SECTOR_BYTES;
use rustix::fs::{FallocateFlags, OFlags};
use rustix::mount::{UnmountFlags, unmount};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Its name.
pub const NAME: &str = "drive";
const DRIVE: INodeNo = INodeNo(2);
/// Nothing about it changes.
const FOR_EVER: Duration = Duration::from_secs(3600);

struct OneFile {
    store: Arc<Store>,
    orders: Arc<dyn Orders>,
    owner: (u32, u32),
}

impl OneFile {
    fn bytes(&self) -> u64 {
        self.store.contents().sectors() * SECTOR_BYTES
    }

    fn attributes(&self, node: INodeNo) -> FileAttr {
        let is_drive = node == DRIVE;
        FileAttr {
            ino: node,
            size: if is_drive { self.bytes() } else { 0 },
            blocks: if is_drive { self.bytes() / SECTOR_BYTES } else { 0 },
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_drive { FileType::RegularFile } else { FileType::Directory },
            perm: if is_drive { 0o600 } else { 0o700 },
            nlink: if is_drive { 1 } else { 2 },
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// Hands an order to the drive; what comes of it goes to `reply`.
    fn submit(&self, arrival: Instant, order: Order, reply: impl FnOnce(bool) + Send + 'static) {
        self.orders.submit(arrival, order, Box::new(reply));
    }
}

fn number(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_i32)
}

fn is_forced(flags: OpenFlags) -> bool {
    flags.0 as u32 & OFlags::DSYNC.bits() != 0
}

impl Filesystem for OneFile {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match parent == INodeNo::ROOT && name == NAME {
            true => reply.entry(&FOR_EVER, &self.attributes(DRIVE), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(node));
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // A drive has its size; its times are nobody's business.
        match mode.is_some() || size.is_some_and(|size| size != self.bytes()) {
            true => reply.error(Errno::EPERM),
            false => reply.attr(&FOR_EVER, &self.attributes(node)),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        at: u64,
        bytes: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let arrival = Instant::now();
        // A file ends where it ends.
        let bytes = u64::from(bytes).min(self.bytes().saturating_sub(at));
        if bytes == 0 {
            return reply.data(&[]);
        }
        let mut data = vec![0; bytes as usize];
        match self.store.contents().read_bytes(at, &mut data) {
            Err(error) => reply.error(number(&error)),
            Ok(()) => self.submit(arrival, Order::Read { at, bytes }, move |is_done| match is_done {
                true => reply.data(&data),
                false => reply.error(Errno::EIO),
            }),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        at: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let arrival = Instant::now();
        let bytes = (data.len() as u64).min(self.bytes().saturating_sub(at));
        if bytes == 0 {
            return if data.is_empty() { reply.written(0) } else { reply.error(Errno::ENOSPC) };
        }
        match self.store.contents().write_bytes(at, &data[..bytes as usize]) {
            Err(error) => reply.error(number(&error)),
            Ok(()) => {
                let order = Order::Write { at, bytes, is_forced: is_forced(flags) };
                self.submit(arrival, order, move |is_done| match is_done {
                    true => reply.written(bytes as u32),
                    false => reply.error(Errno::EIO),
                });
            }
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Of a descriptor that is closed: nothing is held back for it.
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.submit(Instant::now(), Order::Flush, move |is_done| answer(reply, is_done));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        at: u64,
        bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let arrival = Instant::now();
        let wanted = FallocateFlags::from_bits_retain(mode as u32) & !FallocateFlags::KEEP_SIZE;
        if wanted != FallocateFlags::PUNCH_HOLE && wanted != FallocateFlags::ZERO_RANGE {
            return reply.error(Errno::EOPNOTSUPP);
        }
        match self.store.contents().forget_bytes(at, bytes) {
            Err(error) => reply.error(number(&error)),
            Ok(()) => {
                let order = Order::Discard { at, bytes, is_forced: false };
                self.submit(arrival, order, move |is_done| answer(reply, is_done));
            }
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, from: u64, mut reply: ReplyDirectory) {
        let all = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (DRIVE, FileType::RegularFile, NAME),
        ];
        for (index, (node, kind, name)) in all.into_iter().enumerate().skip(from as usize) {
            if reply.add(node, index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

fn answer(reply: ReplyEmpty, is_done: bool) {
    match is_done {
        true => reply.ok(),
        false => reply.error(Errno::EIO),
    }
}

/// A mounted file system; unmounted when dropped.
pub struct Server {
    session: Option<BackgroundSession>,
    directory: PathBuf,
}

impl Server {
    /// Mounts it at an empty directory.
    ///
    /// # Errors
    /// It is none; the system's.
    pub fn start(directory: &Path, store: Arc<Store>, orders: Arc<dyn Orders>) -> Result<Server, ServeError> {
        let refused = |found: String| ServeError::Option {
            option: "mount",
            found,
            allowed: "an empty directory".into(),
        };
        let shown = directory.display();
        let mut entries =
            std::fs::read_dir(directory).map_err(|error| refused(format!("{shown}: {error}")))?;
        if entries.next().is_some() {
            return Err(refused(format!("{shown}, which has files")));
        }
        let directory = directory.canonicalize().map_err(|error| refused(format!("{shown}: {error}")))?;
        let owner = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("planewise".into()), MountOption::NoAtime];
        let session = fuser::spawn_mount(OneFile { store, orders, owner }, &directory, &config)
            .map_err(|error| ServeError::system(format!("{shown}: cannot mount"), error))?;
        Ok(Server { session: Some(session), directory })
    }

    /// The file.
    pub fn file(&self) -> PathBuf {
        self.directory.join(NAME)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(session) = self.session.take()
            && session.umount_and_join().is_err()
        {
            // Somebody still has the file open: it is taken out of the tree, and theirs is dead.
            let _ = unmount(&self.directory, UnmountFlags::DETACH);
        }
    }
}
