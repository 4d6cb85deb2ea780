//! `planewise serve`: a simulated drive in wall time, that programs can mount.

use super::measured::Claimed;
use crate::arguments::{CommonArguments, ServeArguments};
use crate::axes::AXES;
use crate::failure::{Failure, Kind};
use crate::plan::Plan;
use crate::record::RecordAt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use planewise_guest::contents::Contents;
use planewise_model::{Bytes, Ns, SECTOR_BYTES};
use planewise_serve::backing::Backing;
use planewise_serve::clock::Floor;
use planewise_serve::core::{Core, CoreOptions, Ended, Snapshot};
use planewise_serve::fronts::Front;
use planewise_serve::nbd::Export;
use planewise_serve::nbd::server::{Place, Server};
use planewise_serve::page::Page;
use planewise_serve::store::Store;
use planewise_serve::{fuse, ublk, vhost};
use planewise_sim::results::{Setup, TraceSetup};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest queue of the host's side of the simulator: nothing waits in front of it.
const QUEUE_LENGTH: &str = "4096";
/// The name by default, of the export and of the socket.
const NAME: &str = "planewise";
const NO_FLUSHER: &str = "this process is no IO_FLUSHER (that needs CAP_SYS_RESOURCE): a host short of memory that writes back to this drive itself can hang";
/// How often the line on the terminal changes, and Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS_PER_LINE: u32 = 10;

/// Runs the command.
///
/// # Errors
/// A wrong device, a backing file that is not what it has to be, a place that cannot be had; what the engine cannot do; an invariant that is violated.
pub fn execute(arguments: ServeArguments, stop: &AtomicBool) -> Result<(), Failure> {
    check(&arguments)?;
    let place = place(&arguments)?;
    let options = own_options(&arguments, &place);
    let ServeArguments {
        device,
        size,
        backing,
        dilate,
        front,
        export,
        mount,
        metrics,
        cpu,
        axes,
        tunable,
        check,
        output,
        listen,
        ..
    } = arguments;
    let quiet = output.quiet;
    let common = CommonArguments {
        tunable,
        check,
        request_log: false,
        record: None,
        record_at: RecordAt::Device,
        output,
        jobs: None,
    };
    let mut plan = plan(axes.0, &device, &common)?;
    plan.options.remove("pace");
    plan.options.extend(options);
    let config = plan.configs.swap_remove(0);
    let bytes = served_bytes(size, config.profile.user_capacity())?;
    let setup = Setup {
        trace: TraceSetup {
            name: "served".to_owned(),
            source: "programs, in wall time".to_owned(),
            format: front.to_string(),
            hash: String::new(),
        },
        device_profile: plan.profile.to_toml(),
        condition: plan.options["condition"].clone(),
        options: plan.options,
        random_generator: planewise_model::rng::GENERATOR_NAME.to_owned(),
    };
    let claimed = Claimed::new("serve", setup, &common.output)?;

    if let Err(why) = front.available() {
        return Err(Failure::usage(format!(
            "--front: found {front}, which cannot be had ({why}); allowed: nbd"
        )));
    }
    // A kernel that writes to this drive to make room must not wait for us to get some. Threads inherit it.
    let is_flusher = rustix::process::configure_io_flusher_behavior(true).is_ok();
    let floor =
        Floor::measure().map_err(|error| Failure::new(Kind::Run, format!("measuring this host: {error}")))?;
    let backing = backing.map(|path| Backing::open(&path, bytes, &config.profile.name)).transpose()?;
    let contents = match &backing {
        Some(backing) => backing.contents()?,
        None => Contents::new(bytes / SECTOR_BYTES).map_err(planewise_serve::ServeError::from)?,
    };
    let store = Arc::new(Store::new(contents, backing.is_some()));
    let core_options = CoreOptions { dilation: dilate, processor: cpu, floor };
    let core = Core::start(&config, check, Arc::clone(&store), core_options)?;
    let front = start(front, &place, mount, export, listen.is_some(), bytes, &store, &core, quiet)?;
    let page = metrics.map(|port| Page::start(port, core.handle(), dilate, front.counter())).transpose()?;
    if !quiet {
        backing.iter().flat_map(|backing| &backing.notes).for_each(|note| eprintln!("note: {note}"));
        if backing.is_none() {
            eprintln!("note: without --backing what is written is in memory, and gone at the end");
        }
        if !is_flusher {
            eprintln!("note: {NO_FLUSHER}");
        }
        tell_fronts();
        eprintln!(
            "serving {} of {}, dilation {dilate}; the way through this host and back takes {} (half of the times, both ends asleep before)",
            Bytes(bytes),
            config.profile.name,
            Ns(floor.round_trip.as_nanos() as u64),
        );
        front.commands().iter().for_each(|command| eprintln!("  {command}"));
        if let Some(page) = &page {
            eprintln!("  curl http://{}/metrics", page.address());
        }
    }
    watch(&core, &front, stop, quiet);
    drop(page);
    drop(front);
    let ended = core.stop();
    let closed = backing.map_or(Ok(()), Backing::close);
    finish(ended, claimed, config.profile.name.clone())?;
    Ok(closed?)
}

/// Which fronts there are on this host.
fn tell_fronts() {
    for front in Front::ALL {
        match front.available() {
            Ok(what) => eprintln!("front {front}: available, {what}"),
            Err(why) => eprintln!("front {front}: not here, {why}"),
        }
    }
}

fn finish(ended: Ended, claimed: Claimed<'_>, device: String) -> Result<(), Failure> {
    let Ended { result, violation, verdicts, failure, snapshot } = ended;
    let mut result = result?;
    result.notes.extend(verdicts.iter().map(|verdict| format!("lateness: {verdict}")));
    let failed = snapshot.failed;
    let notes = (failed > 0).then(|| format!("{failed} requests were answered with an error"));
    let failure = match (failure, violation) {
        (Some(error), _) => Some(Failure::from(error).about(&device)),
        (None, Some(violation)) => {
            Some(Failure::new(Kind::Invariant, format!("{device}: invariant violated: {violation}")))
        }
        (None, None) => None,
    };
    let notes: Vec<String> = notes.into_iter().collect();
    claimed.finish(vec![result], 1, failure, &notes, planewise_report::single)
}

/// Waits for the end, and says on the terminal how it goes.
fn watch(core: &Core, front: &Running, stop: &AtomicBool, quiet: bool) {
    let line = ProgressBar::with_draw_target(
        None,
        if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() },
    );
    line.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()));
    let (clients, mut looks, mut before) = (front.counter(), 0, Snapshot::default());
    while !stop.load(Ordering::Relaxed) && !core.has_ended() {
        if looks % LOOKS_PER_LINE == 0
            && !line.is_hidden()
            && let Some(now) = core.handle().look()
        {
            line.set_message(describe(&now, &before, clients()));
            before = now;
        }
        looks += 1;
        std::thread::sleep(LOOK);
    }
    line.finish_and_clear();
}

/// The line on the terminal.
fn describe(now: &Snapshot, before: &Snapshot, clients: usize) -> String {
    let seconds = (now.wall.saturating_sub(before.wall)).as_secs_f64().max(1e-3);
    let rate = |of: usize| (now.answered[of] - before.answered[of]) as f64 / seconds;
    let megabytes = |of: usize| (now.bytes[of] - before.bytes[of]) as f64 / seconds / 1e6;
    let time = |ns: f64| Ns(ns as u64);
    format!(
        "{:.0} s (drive {:.1} s)  {clients} clients, {} under way  read {:.0}/s {:.1} MB/s  write {:.0}/s {:.1} MB/s  latency {}  late p50 {} p99 {}",
        now.wall.as_secs_f64(),
        now.simulated.as_secs_f64(),
        now.under_way,
        rate(0),
        megabytes(0),
        rate(1),
        megabytes(1),
        time(now.transfers.latency.mean),
        time(now.transfers.late.p50 as f64),
        time(now.transfers.late.p99 as f64),
    )
}

/// What goes with which front.
fn check(arguments: &ServeArguments) -> Result<(), Failure> {
    let only = |option: &str, is_given: bool, fronts: &[Front]| {
        if !is_given || fronts.contains(&arguments.front) {
            return Ok(());
        }
        let allowed: Vec<String> = fronts.iter().map(|front| format!("--front {front}")).collect();
        Err(Failure::usage(format!(
            "--{option}: found with --front {}; allowed: with {}",
            arguments.front,
            allowed.join(" or ")
        )))
    };
    only("socket", arguments.socket.is_some(), &[Front::Nbd, Front::VhostUser])?;
    only("port", arguments.port.is_some(), &[Front::Nbd])?;
    only("listen", arguments.listen.is_some(), &[Front::Nbd])?;
    only("export", arguments.export.is_some(), &[Front::Nbd])?;
    only("mount", arguments.mount.is_some(), &[Front::Fuse])?;
    if arguments.front == Front::Fuse && arguments.mount.is_none() {
        return Err(Failure::usage("--mount: not given; allowed: with --front fuse, an empty directory"));
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    match arguments.cpu {
        Some(processor) if processor >= processors => {
            Err(Failure::usage(format!("--cpu: found {processor}; allowed: 0 to {}", processors - 1)))
        }
        _ => Ok(()),
    }
}

fn place(arguments: &ServeArguments) -> Result<Place, Failure> {
    Ok(match (arguments.listen, arguments.port) {
        (Some(address), _) => Place::Tcp(address),
        (None, Some(port)) => Place::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        (None, None) => {
            let path = arguments.socket.clone().unwrap_or_else(|| PathBuf::from(format!("{NAME}.sock")));
            // Others are told of it, who may be somewhere else.
            let path = std::path::absolute(&path)
                .map_err(|error| Failure::usage(format!("--socket: {}: {error}", path.display())))?;
            Place::Unix(path)
        }
    })
}

/// The one run: what the command line says of the device and the host in front of it.
fn plan(mut given: Vec<Vec<String>>, device: &str, common: &CommonArguments) -> Result<Plan, Failure> {
    for (axis, given) in AXES.iter().zip(&mut given) {
        match (axis.name, given.first()) {
            ("pace", Some(pace)) => {
                return Err(Failure::usage(format!(
                    "--pace: found '{pace}'; allowed: with a trace (compare, run, replay); here requests come when programs send them"
                )));
            }
            ("queue", None) => given.push(QUEUE_LENGTH.to_owned()),
            (_, Some(text)) if text.contains(',') => {
                return Err(Failure::usage(format!(
                    "--{}: found '{text}'; allowed: one value (lists are for `planewise compare`)",
                    axis.option(false)
                )));
            }
            _ => {}
        }
    }
    Plan::new(&given, false, device, common)
}

fn served_bytes(size: Option<Bytes>, capacity: Bytes) -> Result<u64, Failure> {
    match size {
        Some(size) if size > capacity => Err(Failure::usage(format!(
            "--size: found {} bytes; allowed: up to {}, which is all that the drive has",
            size.0, capacity.0
        ))),
        Some(size) => Ok(size.0),
        None => Ok(capacity.0 / SECTOR_BYTES * SECTOR_BYTES),
    }
}

/// Options that are not those of a run.
fn own_options(arguments: &ServeArguments, place: &Place) -> BTreeMap<String, String> {
    let text =
        |path: &Option<PathBuf>| path.as_ref().map_or(String::new(), |path| path.display().to_string());
    let place = match place {
        Place::Unix(path) => path.display().to_string(),
        Place::Tcp(address) => address.to_string(),
    };
    [
        ("device", arguments.device.clone()),
        ("size", arguments.size.map_or(String::new(), |size| size.0.to_string())),
        ("backing", text(&arguments.backing)),
        ("dilate", arguments.dilate.to_string()),
        ("front", arguments.front.to_string()),
        ("socket", place),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// A front that runs.
enum Running {
    Nbd { server: Server, export: String },
    VhostUser(vhost::Server),
    Fuse(fuse::Server),
    Ublk(ublk::Server),
}

impl Running {
    /// How many clients are connected, for another thread to ask.
    fn counter(&self) -> Box<dyn Fn() -> usize + Send> {
        match self {
            Running::Nbd { server, .. } => Box::new(server.counter()),
            Running::VhostUser(server) => Box::new(server.counter()),
            // The kernel.
            Running::Fuse(_) | Running::Ublk(_) => Box::new(|| 1),
        }
    }

    /// What to type to use it.
    fn commands(&self) -> Vec<String> {
        match self {
            Running::Nbd { server, export } => nbd_commands(server.place(), export),
            Running::VhostUser(server) => {
                let path = server.path().display();
                vec![
                    format!(
                        "qemu-system-x86_64 -m 1g -object memory-backend-memfd,id=mem,size=1g,share=on -machine q35,memory-backend=mem \
                         -chardev socket,id=drive,path={path} -device vhost-user-blk-pci,chardev=drive …"
                    ),
                    format!(
                        "cloud-hypervisor --memory size=1G,shared=on --disk vhost_user=true,socket={path} …"
                    ),
                ]
            }
            Running::Ublk(server) => {
                let device = server.path();
                vec![format!("sudo mkfs.ext4 {0} && sudo mount {0} /mnt", device.display())]
            }
            Running::Fuse(server) => {
                let file = server.file();
                vec![
                    format!("sudo losetup --find --show --direct-io=on {}", file.display()),
                    format!("fio --name=job --filename={} --direct=1 --rw=randread --bs=4k", file.display()),
                ]
            }
        }
    }
}

fn nbd_commands(place: &Place, export: &str) -> Vec<String> {
    let (uri, client) = match place {
        Place::Unix(path) => {
            (format!("nbd+unix:///{export}?socket={}", path.display()), format!("-unix {}", path.display()))
        }
        Place::Tcp(address) => {
            (format!("nbd://{address}/{export}"), format!("{} {}", address.ip(), address.port()))
        }
    };
    vec![
        format!("nbdinfo '{uri}'"),
        format!(
            "sudo nbd-client {client} -name {export} /dev/nbd0 && sudo mkfs.ext4 /dev/nbd0 && sudo mount /dev/nbd0 /mnt"
        ),
        format!("fio --ioengine=nbd --uri='{uri}' --name=job --rw=randread --bs=4k --iodepth=8"),
        format!("qemu-system-x86_64 -drive 'file={uri},format=raw,if=virtio,cache=none' …"),
    ]
}

#[allow(clippy::too_many_arguments, reason = "what the command line says, taken apart")]
fn start(
    front: Front,
    place: &Place,
    mount: Option<PathBuf>,
    export: Option<String>,
    is_guarded: bool,
    bytes: u64,
    store: &Arc<Store>,
    core: &Core,
    quiet: bool,
) -> Result<Running, Failure> {
    let report = move |line: &str| {
        if !quiet {
            eprintln!("note: {line}");
        }
    };
    match front {
        Front::Nbd => {
            let name = export.unwrap_or_else(|| NAME.to_owned());
            let export = Export { name: name.clone(), bytes, is_guarded, preferred_bytes: 4096 };
            let server =
                Server::start(place, export, Arc::clone(store), Arc::new(core.handle()), Box::new(report))?;
            Ok(Running::Nbd { server, export: name })
        }
        Front::VhostUser => {
            let Place::Unix(path) = place else { unreachable!("checked: no port") };
            let orders = Arc::new(core.handle());
            Ok(Running::VhostUser(vhost::Server::start(path, Arc::clone(store), orders, Box::new(report))?))
        }
        Front::Fuse => {
            let directory = mount.unwrap_or_default();
            Ok(Running::Fuse(fuse::Server::start(&directory, Arc::clone(store), Arc::new(core.handle()))?))
        }
        Front::Ublk => Ok(Running::Ublk(ublk::Server::start(Arc::clone(store), Arc::new(core.handle()))?)),
    }
}
