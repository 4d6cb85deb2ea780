//! Where requests come from: the trace inside the program, a synthetic volume, or a file.

use crate::arguments::ReadArguments;
use crate::failure::{Failure, Kind};
use planewise_model::profile::changes;
use planewise_model::{Bytes, Request, names};
use planewise_sim::drivers::replay::RequestSource;
use planewise_sim::results::TraceSetup;
use planewise_trace::formats::{FORMATS, ReadOptions, TimeUnit};
use planewise_trace::input::Input;
use planewise_trace::pipeline::{Trace, TraceOptions};
use planewise_trace::synth::{self, Generator, VolumeDescription};
use planewise_trace::transform::{Cut, Fold, ScaleTime, Transform};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the trace inside the program.
pub const EMBEDDED: &str = "pgbench";
static EMBEDDED_BYTES: &[u8] = include_bytes!("../../../assets/pgbench_tpcb.csv.zst");

/// Requests of a synthetic volume when none are asked for.
pub const SYNTHETIC_REQUESTS: u64 = 1_000_000;

/// A trace chosen on the command line; can be opened any number of times.
pub struct Source {
    /// Short name for titles and directories.
    pub name: String,
    place: Place,
    /// Seeds of the runs: a synthetic volume is another one for each.
    seeds: Vec<u64>,
    limit: Option<u64>,
    /// Keeps a part; done first.
    pub cut: Option<Cut>,
    /// Multiplies arrival times; done second.
    pub scale_time: Option<f64>,
    /// Folds addresses onto a device of so many sectors; done last.
    pub wrap_sectors: Option<u64>,
}

enum Place {
    Embedded(TraceOptions),
    Synthetic(Box<VolumeDescription>),
    File(PathBuf, TraceOptions),
    /// What came out of a pipe, packed as it was.
    Kept(PathBuf, Arc<[u8]>, TraceOptions),
}

/// Bytes of a pipe that are kept in memory at most.
const PIPE_BYTES_MAX: u64 = 1 << 30;

impl Source {
    /// Finds a trace by name or path: the embedded one, a synthetic volume, a volume in `--trace-dir`, a file.
    ///
    /// # Errors
    /// None of that name: the error offers the nearest.
    pub fn find(
        text: &str,
        read: &ReadArguments,
        requests: Option<u64>,
        seeds: &[u64],
    ) -> Result<Source, Failure> {
        let options = trace_options(read, requests);
        let (name, place) = if text == "-" {
            ("standard-input".to_owned(), Place::File(PathBuf::from("/dev/stdin"), options))
        } else if let Some(path) = downloaded(text, read.trace_dir.as_deref())? {
            (text.to_owned(), Place::File(path, options))
        } else if text == EMBEDDED {
            (text.to_owned(), Place::Embedded(options))
        } else if let Some(description) = description(text)? {
            reject_reading_options(text, read)?;
            (description.name.clone(), Place::Synthetic(Box::new(description)))
        } else if Path::new(text).exists() {
            (short_name(Path::new(text)), Place::File(PathBuf::from(text), options))
        } else {
            return Err(unknown(text, read.trace_dir.as_deref()));
        };
        Ok(Source {
            name,
            place,
            seeds: seeds.to_vec(),
            limit: requests,
            cut: None,
            scale_time: None,
            wrap_sectors: None,
        })
    }

    /// Makes a source that can be opened once into one that can be opened again: what a pipe holds is kept in memory.
    ///
    /// # Errors
    /// The pipe cannot be read, or holds more than 1 GiB.
    pub fn keep(&mut self) -> Result<(), Failure> {
        let Place::File(path, options) = &self.place else { return Ok(()) };
        let failed = |error: std::io::Error| Failure::new(Kind::Run, format!("{}: {error}", path.display()));
        let found = std::fs::metadata(path).map_err(failed)?;
        if found.is_file() || found.is_dir() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        let pipe = File::open(path).map_err(failed)?;
        pipe.take(PIPE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > PIPE_BYTES_MAX {
            return Err(Failure::usage(format!(
                "{}: a pipe or device of more than {}; allowed: up to that, or a file of any size",
                path.display(),
                Bytes(PIPE_BYTES_MAX)
            )));
        }
        self.place = Place::Kept(path.clone(), bytes.into(), options.clone());
        Ok(())
    }

    /// Opens a stream of requests: those of the first seed.
    ///
    /// # Errors
    /// The file cannot be opened or its format cannot be told.
    pub fn open(&self) -> Result<Stream, Failure> {
        self.open_for(self.seeds[0])
    }

    /// Whether the requests are the same for all seeds.
    pub fn is_one(&self) -> bool {
        self.seeds.len() == 1 || !matches!(self.place, Place::Synthetic(_))
    }

    /// Opens the stream of requests of a seed; a trace that is read, not made, is the same for all.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn open_for(&self, seed: u64) -> Result<Stream, Failure> {
        let origin = match &self.place {
            Place::Embedded(options) => {
                let input = Input::from_reader(EMBEDDED, Box::new(EMBEDDED_BYTES))?;
                Origin::Trace(Box::new(Trace::from_input(input, options)?))
            }
            Place::File(path, options) => Origin::Trace(Box::new(Trace::open(path, options)?)),
            Place::Kept(path, bytes, options) => {
                let input = Input::from_reader(path, Box::new(Cursor::new(Arc::clone(bytes))))?;
                Origin::Trace(Box::new(Trace::from_input(input, options)?))
            }
            Place::Synthetic(description) => {
                Origin::Synthetic(Box::new(Generator::new(description, self.synthetic_requests(), seed)?))
            }
        };
        if let Origin::Trace(trace) = &origin {
            reject_event(&self.place, trace.format().name)?;
        }
        let mut transforms: Vec<Box<dyn Transform>> = Vec::new();
        if let Some(cut) = &self.cut {
            transforms.push(Box::new(cut.clone()));
        }
        if let Some(factor) = self.scale_time {
            transforms.push(Box::new(ScaleTime::new(factor).map_err(Failure::usage)?));
        }
        if let Some(sectors) = self.wrap_sectors {
            transforms.push(Box::new(Fold::new(sectors).map_err(Failure::usage)?));
        }
        Ok(Stream { origin, transforms, folds: self.wrap_sectors.is_some() })
    }

    fn synthetic_requests(&self) -> u64 {
        self.limit.unwrap_or(SYNTHETIC_REQUESTS)
    }

    /// Number of requests, where it is known before reading.
    pub fn known_requests(&self) -> Option<u64> {
        matches!(self.place, Place::Synthetic(..)).then(|| self.synthetic_requests())
    }

    /// What results say about the trace, its content hash included.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn setup(&self, format: &str) -> Result<TraceSetup, Failure> {
        let (source, hash) = match &self.place {
            Place::Embedded(_) => ("embedded".to_owned(), blake3::hash(EMBEDDED_BYTES)),
            Place::Synthetic(description) => {
                let text = toml::to_string(&**description).map_err(Failure::usage)?;
                let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
                let identity =
                    format!("{text}\nrequests = {}\nseed = {}\n", self.synthetic_requests(), seeds.join(","));
                ("synthetic".to_owned(), blake3::hash(identity.as_bytes()))
            }
            Place::File(path, _) => (path.display().to_string(), hash_file(path)?),
            Place::Kept(path, bytes, _) => (path.display().to_string(), blake3::hash(bytes)),
        };
        Ok(TraceSetup {
            name: self.name.clone(),
            source,
            format: format.to_owned(),
            hash: hash.to_hex().to_string(),
        })
    }

    /// Prefix for errors about this trace's requests.
    pub fn place_name(&self) -> String {
        match &self.place {
            Place::File(path, _) | Place::Kept(path, ..) => path.display().to_string(),
            _ => self.name.clone(),
        }
    }
}

/// An opened trace.
pub struct Stream {
    origin: Origin,
    /// Addresses are folded onto a device.
    folds: bool,
    transforms: Vec<Box<dyn Transform>>,
}

enum Origin {
    Trace(Box<Trace>),
    Synthetic(Box<Generator>),
}

impl Stream {
    /// Name of the format.
    pub fn format(&self) -> &'static str {
        match &self.origin {
            Origin::Trace(trace) => trace.format().name,
            Origin::Synthetic(_) => "synthetic",
        }
    }

    /// Names of volumes by number, where the trace names them.
    pub fn volume_names(&self) -> &[String] {
        match &self.origin {
            Origin::Trace(trace) => trace.volume_names(),
            Origin::Synthetic(_) => &[],
        }
    }

    /// What the user should know about what was read.
    pub fn warnings(&self) -> Vec<String> {
        let Origin::Trace(trace) = &self.origin else { return Vec::new() };
        let mut warnings = trace.warnings();
        if self.folds && trace.volumes() > 1 {
            warnings.push(format!(
                "{} volumes are folded onto one device, as if a single drive had served them all; one alone: --volume NAME, and planewise trace volumes FILE lists them",
                trace.volumes()
            ));
        }
        warnings
    }

    /// Appends up to `limit` requests; returns how many, 0 at the end.
    ///
    /// # Errors
    /// What the trace's reader says.
    pub fn read(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, Failure> {
        let first = batch.len();
        // A batch of which a cut leaves nothing is not the end.
        while batch.len() == first && !self.transforms.iter().any(|transform| transform.is_done()) {
            let count = match &mut self.origin {
                Origin::Trace(trace) => trace.next_batch(batch, limit)?,
                Origin::Synthetic(generator) => Generator::next_batch(generator, batch, limit),
            };
            if count == 0 {
                break;
            }
            for transform in &mut self.transforms {
                transform.apply(batch, first);
            }
        }
        Ok(batch.len() - first)
    }
}

impl RequestSource for Stream {
    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, String> {
        self.read(batch, limit).map_err(|failure| failure.to_string())
    }
}

/// Requests looked at for one that says when it completed.
const COMPLETION_LOOK_AHEAD: usize = 1 << 16;

impl Source {
    /// Whether the trace says when its requests completed, as the dependent pace needs.
    ///
    /// # Errors
    /// None of its first requests does, or the trace cannot be read.
    pub fn check_completions(&self) -> Result<(), Failure> {
        let mut stream = self.open()?;
        let (mut seen, mut batch) = (0, Vec::new());
        while seen < COMPLETION_LOOK_AHEAD && stream.read(&mut batch, 1 << 12)? > 0 {
            if batch.iter().any(|request| request.response.is_some()) {
                return Ok(());
            }
            seen += batch.len();
            batch.clear();
        }
        let names = FORMATS.iter().filter(|format| format.completions).map(|format| format.name);
        Err(Failure::usage(format!(
            "--pace: found dependent with {} (format {}), which does not say when requests completed{}; allowed: a trace that does \
             (formats {} can), or another pace: recorded, closed:N, asap",
            self.place_name(),
            stream.format(),
            if seen < COMPLETION_LOOK_AHEAD {
                String::new()
            } else {
                format!(" (looked at the first {seen})")
            },
            names.collect::<Vec<_>>().join(", ")
        )))
    }
}

/// A source with scaled times.
pub struct Scaled<S> {
    source: S,
    scale: ScaleTime,
}

impl<S> Scaled<S> {
    /// Multiplies arrival times by a factor.
    ///
    /// # Errors
    /// A factor that is not a positive finite number.
    pub fn new(source: S, factor: f64) -> Result<Scaled<S>, Failure> {
        Ok(Scaled { source, scale: ScaleTime::new(factor).map_err(Failure::usage)? })
    }
}

impl<S: RequestSource> RequestSource for Scaled<S> {
    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, String> {
        let first = batch.len();
        let count = self.source.next_batch(batch, limit)?;
        self.scale.apply(batch, first);
        Ok(count)
    }
}

/// The abbreviation of a time unit.
pub fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Nanoseconds => "ns",
        TimeUnit::Microseconds => "us",
        TimeUnit::Milliseconds => "ms",
        TimeUnit::Seconds => "s",
    }
}

fn trace_options(read: &ReadArguments, limit: Option<u64>) -> TraceOptions {
    let mut options = TraceOptions {
        format: read.format.clone(),
        read: ReadOptions { time_unit: read.time_unit, event: read.event.clone() },
        volume: read.volume.clone(),
        spread: read.spread_arrivals,
        limit,
        ..TraceOptions::default()
    };
    if let Some(window) = read.sort_window {
        options.sort_window = window;
    }
    options
}

/// A synthetic volume by name or by the TOML file that describes it, either with changes behind it.
fn description(text: &str) -> Result<Option<VolumeDescription>, Failure> {
    if Path::new(text).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        return Ok(Some(synth::volume_or_file(text)?));
    }
    // Files have colons in their names, too: only behind a volume does one begin changes.
    let is_changed = changes::split(text, synth::is_volume).is_some_and(|(base, _)| synth::is_volume(base));
    if is_changed && !Path::new(text).exists() {
        return Ok(Some(synth::volume_or_file(text)?));
    }
    Ok(synth::volume(text).ok())
}

/// A volume of `--trace-dir` by name.
fn downloaded(name: &str, directory: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    let Some(directory) = directory else { return Ok(None) };
    if !directory.is_dir() {
        return Err(Failure::usage(format!(
            "trace-dir: found {}; allowed: a directory",
            directory.display()
        )));
    }
    let candidates =
        ["csv", "csv.gz", "csv.zst"].map(|extension| directory.join(format!("{name}.{extension}")));
    Ok(candidates.into_iter().find(|path| path.is_file()))
}

/// Options of reading say nothing about a volume that is made, not read.
fn reject_reading_options(name: &str, read: &ReadArguments) -> Result<(), Failure> {
    let given = [
        ("format", read.format.is_some()),
        ("time-unit", read.time_unit.is_some()),
        ("event", read.event.is_some()),
        ("volume", read.volume.is_some()),
        ("sort-window", read.sort_window.is_some()),
        ("spread-arrivals", read.spread_arrivals.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::usage(format!(
            "--{option}: has no meaning for '{name}', a synthetic volume; it is for trace files"
        ))),
        None => Ok(()),
    }
}

/// Formats that log several events per request, of which `--event` chooses one.
const FORMATS_OF_EVENTS: [&str; 3] = ["blkparse", "blktrace", "ftrace"];

/// An option that would be passed over in silence is an error.
fn reject_event(place: &Place, format: &str) -> Result<(), Failure> {
    let (Place::Embedded(options) | Place::File(_, options) | Place::Kept(_, _, options)) = place else {
        return Ok(());
    };
    if options.read.event.is_some() && !FORMATS_OF_EVENTS.contains(&format) {
        return Err(Failure::usage(format!(
            "--event: has no meaning for format {format}, which has one line per request; it is for {}",
            FORMATS_OF_EVENTS.join(", ")
        )));
    }
    Ok(())
}

/// No trace of that name: offers the nearest of what there is.
fn unknown(text: &str, directory: Option<&Path>) -> Failure {
    let mut known: Vec<String> = vec![EMBEDDED.to_owned()];
    known.extend(synth::VOLUMES.iter().map(|volume| volume.0.to_owned()));
    if let Some(entries) = directory.and_then(|directory| std::fs::read_dir(directory).ok()) {
        let mut found: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| [".csv", ".csv.gz", ".csv.zst"].iter().any(|extension| name.ends_with(extension)))
            .map(|name| short_name(Path::new(&name)))
            .collect();
        found.sort();
        known.extend(found);
    }
    // Volumes are known by their own names: hm_0 is looked for, and what there is are its look-alikes.
    let alike: Vec<&str> = synth::VOLUMES
        .iter()
        .map(|volume| volume.0)
        .filter(|name| name.ends_with(&format!("-{text}")))
        .collect();
    let nearest = alike.first().copied().or(names::nearest(text, known.iter().map(String::as_str)));
    let nearest = nearest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
    Failure::usage(format!(
        "trace '{text}': no such file, and no volume of that name{nearest}; allowed: a trace file, or one of {}",
        known.join(", ")
    ))
}

/// `hm_0` for `/traces/hm_0.csv.gz`.
fn short_name(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let file = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_else(|| "trace".to_owned());
    let packed = file.trim_end_matches(".gz").trim_end_matches(".zst");
    match packed.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => packed.to_owned(),
    }
}

/// Hash of a file's bytes as they are on the disk; of a folder, those of its files by name.
fn hash_file(path: &Path) -> Result<blake3::Hash, Failure> {
    let failed = |error: std::io::Error| Failure::new(Kind::Run, format!("{}: {error}", path.display()));
    let mut hasher = blake3::Hasher::new();
    if !path.is_dir() {
        hash_into(&mut hasher, path).map_err(failed)?;
        return Ok(hasher.finalize());
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.sort();
    for file in files.iter().filter(|file| file.is_file()) {
        hasher.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        hash_into(&mut hasher, file).map_err(failed)?;
    }
    Ok(hasher.finalize())
}

fn hash_into(hasher: &mut blake3::Hasher, path: &Path) -> std::io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => hasher.update(&buffer[..count]),
        };
    }
}
