//! What a probe said of drives whose insides are known, against the truth: by property, and by how sure it said it is.

use super::wide::Drive;
use planewise_io::probe::controller::Turn;
use planewise_io::probe::mapping::Mapping;
use planewise_io::probe::queue::Commands;
use planewise_io::probe::{Area, Finding, Findings, Instrument, Options, ProbeError, options_for, run};
use planewise_io::target::{Operation, Target};
use planewise_model::profile::PageLatency;
use planewise_model::rng::generator;
use planewise_model::{Direction, Ns};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Times and rates are right within this share of the truth.
const TENTH: f64 = 0.1;
/// Sizes that are read off a curve are right within this share.
const QUARTER: f64 = 0.25;
/// Probability below which more wrong findings than confidence allows are no chance.
const CHANCE: f64 = 1e-3;
/// Where bands of confidence begin.
const BANDS: [f64; 6] = [0.0, 0.8, 0.9, 0.95, 0.98, 0.99];

/// What was said of one property over all drives.
#[derive(Default)]
struct Tally {
    right: Vec<f64>,
    undetermined: u32,
    wrong: Vec<(f64, String)>,
}

impl Tally {
    fn confidences(&self) -> Vec<f64> {
        self.right.iter().copied().chain(self.wrong.iter().map(|wrong| wrong.0)).collect()
    }
}

/// What is less sure is undetermined.
const LEAST_SURE: f64 = 0.8;

/// Tallies by finding, in alphabetical order.
#[derive(Default)]
pub struct Score(BTreeMap<&'static str, Tally>);

impl Score {
    /// Notes what was said of `what`; `is_right` compares a value with the truth, which `truth` names.
    fn note<T: Debug>(
        &mut self,
        known: &Drive,
        what: &'static str,
        finding: &Finding<T>,
        truth: impl Debug,
        is_right: impl FnOnce(&T) -> bool,
    ) {
        let tally = self.0.entry(what).or_default();
        match &finding.value {
            // What is there is Some(...) or a value.
            None if finding.absent && format!("{truth:?}") == "None" => tally.right.push(finding.confidence),
            None if finding.absent => tally.wrong.push((
                finding.confidence,
                format!("seed {}: {what} absent for {truth:?}: {}", known.seed, finding.statistic),
            )),
            None => {
                tally.undetermined += 1;
                if std::env::var("PLANEWISE_WHY").is_ok_and(|asked| asked == what) {
                    println!(
                        "seed {}: {truth:?}: {}; {}\n    {}",
                        known.seed,
                        finding.statistic,
                        finding.reason,
                        known.described()
                    );
                }
            }
            Some(value) if is_right(value) => tally.right.push(finding.confidence),
            Some(value) => tally.wrong.push((
                finding.confidence,
                format!(
                    "seed {}: {what} {value:?} ({:.4}) for {truth:?}: {}; {}\n    {}",
                    known.seed,
                    finding.confidence,
                    finding.statistic,
                    finding.reason,
                    known.described()
                ),
            )),
        }
    }

    fn add(&mut self, other: Score) {
        for (what, tally) in other.0 {
            let own = self.0.entry(what).or_default();
            own.right.extend(tally.right);
            own.undetermined += tally.undetermined;
            own.wrong.extend(tally.wrong);
        }
    }

    /// Prints both tables and the wrong findings.
    pub fn print(&self) {
        println!("| finding | right | undetermined | wrong | mean confidence |");
        println!("|---|---:|---:|---:|---:|");
        for (what, tally) in &self.0 {
            let confidences = tally.confidences();
            let mean = confidences.iter().sum::<f64>() / confidences.len().max(1) as f64;
            let (right, wrong) = (tally.right.len(), tally.wrong.len());
            println!("| {what} | {right} | {} | {wrong} | {mean:.3} |", tally.undetermined);
        }
        println!("\n| stated confidence | findings | mean stated | right |");
        println!("|---|---:|---:|---:|");
        for (from, (confidences, wrong)) in BANDS.iter().zip(self.bands()) {
            if confidences.is_empty() {
                continue;
            }
            let count = confidences.len() as f64;
            let mean = confidences.iter().sum::<f64>() / count;
            let right = 1.0 - wrong as f64 / count;
            println!("| {from:.2} and more | {count} | {:.2} % | {:.2} % |", mean * 100.0, right * 100.0);
        }
        println!();
        for (_, wrong) in self.0.values().flat_map(|tally| &tally.wrong) {
            println!("{wrong}");
        }
    }

    /// Confidences and the number of wrong findings of each band.
    fn bands(&self) -> Vec<(Vec<f64>, usize)> {
        let mut bands = vec![(Vec::new(), 0); BANDS.len()];
        let band = |confidence: f64| BANDS.iter().rposition(|&from| confidence >= from).unwrap_or(0);
        for tally in self.0.values() {
            tally.confidences().into_iter().for_each(|one| bands[band(one)].0.push(one));
            tally.wrong.iter().for_each(|(one, _)| bands[band(*one)].1 += 1);
        }
        bands
    }

    /// Fails where findings, of one property or in one band of confidence, are wrong more often than they say, but for chance.
    pub fn judge(&self) {
        self.print();
        let surer: Vec<&str> = self
            .0
            .iter()
            .filter(|(_, tally)| at_least(tally.wrong.len(), &tally.confidences()) < CHANCE)
            .map(|(what, _)| *what)
            .collect();
        assert!(surer.is_empty(), "surer than there is reason to be: {surer:?}");
        for (what, tally) in &self.0 {
            let vague: Vec<f64> = tally.confidences().into_iter().filter(|&one| one < LEAST_SURE).collect();
            assert!(vague.is_empty(), "{what}: stated at {vague:?}, which is to say undetermined");
        }
        for (from, (confidences, wrong)) in BANDS.iter().zip(self.bands()) {
            let count = confidences.len();
            assert!(at_least(wrong, &confidences) >= CHANCE, "from {from} on: {wrong} wrong of {count}");
        }
    }
}

/// Probability that at least `wrong` of findings with these confidences are, when each is with what its confidence leaves.
pub fn at_least(wrong: usize, confidences: &[f64]) -> f64 {
    let mut exactly = vec![1.0];
    for confidence in confidences {
        let mut next = vec![0.0; exactly.len() + 1];
        for (count, probability) in exactly.iter().enumerate() {
            next[count] += probability * confidence;
            next[count + 1] += probability * (1.0 - confidence);
        }
        exactly = next;
    }
    exactly[wrong.min(exactly.len())..].iter().sum()
}

fn near(value: f64, truth: f64, share: f64) -> bool {
    (value - truth).abs() <= share * truth
}

fn kinds(latency: &PageLatency) -> Vec<f64> {
    match latency {
        PageLatency::Uniform(time) => vec![*time as f64],
        PageLatency::PerType(times) => {
            let mut times: Vec<f64> = times.iter().map(|&time| time as f64).collect();
            times.sort_by(f64::total_cmp);
            times
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn all_near(values: &[f64], truth: &[f64]) -> bool {
    values.len() == truth.len() && values.iter().zip(truth).all(|(&value, &truth)| near(value, truth, TENTH))
}

/// Probes a drive.
pub fn probed(known: &Drive, quick: bool) -> (Findings, Box<dyn Target>) {
    let mut target = known.target().expect("a drive that can be");
    let options = Options { seed: known.seed, ..options_for(&*target, quick) };
    let mut findings = Findings::default();
    let stop = AtomicBool::new(false);
    run::<ProbeError>(&mut *target, &options, &mut findings, &stop, |_| {}, |_| Ok(())).unwrap();
    (findings, target)
}

/// Compares all that was found with what is known.
pub fn compare(known: &Drive, findings: &Findings, target: &mut dyn Target) -> Score {
    let mut score = Score::default();
    inside(known, findings, &mut score);
    latencies(known, findings, &mut score);
    buffers(known, findings, &mut score);
    help(known, findings, target, &mut score);
    score
}

fn inside(known: &Drive, findings: &Findings, score: &mut Score) {
    let commands = known.commands();
    score.note(known, "commands at a time", &findings.queue.as_ref().unwrap().commands, commands, |found| {
        match *found {
            Commands::Exactly(number) => commands == Some(number),
            Commands::AtLeast(number) => commands.is_none_or(|commands| commands >= number),
        }
    });
    let members = known.members();
    score.note(known, "drives of an array", findings.array.as_ref().unwrap(), members, |found| {
        let is_stripe = known.layout.is_none_or(|layout| found.stripe == layout.chunk());
        found.members == members && is_stripe
    });
    let (pages, chunks) = (known.pages(), known.chunks());
    score.note(known, "page size", findings.page.as_ref().unwrap(), &pages, |size| pages.contains(&size.0));
    let chunk = findings.chunk.as_ref().unwrap();
    score.note(known, "chunk size", chunk, &chunks, |size| chunks.contains(&size.0));
    let domains = findings.domains.as_ref().unwrap();
    let (degree, sub_domains) = (known.degree(), known.sub_domains());
    score.note(known, "interleaving degree", &domains.degree, degree, |&found| found == degree);
    score.note(known, "sub-domains", &domains.sub_domains, sub_domains, |&found| found == sub_domains);
    let units = degree * sub_domains;
    score.note(known, "units", &domains.units, units, |&found| found == units);
    let mapping = known.mapping();
    // Behind a buffer that keeps all units busy, no unit is idle, and the order of the writes decides.
    let is_same = mapping == Mapping::Dynamic && known.profile.write_buffer.is_some();
    score.note(known, "mapping policy", findings.mapping.as_ref().unwrap(), mapping, |&found| {
        found == mapping || is_same && found == Mapping::WriteOrder
    });
}

fn latencies(known: &Drive, findings: &Findings, score: &mut Score) {
    let profile = &known.profile;
    let (timing, page) = (&profile.timing, f64::from(profile.geometry.page_bytes));
    let latencies = findings.latencies.as_ref().unwrap();
    let (reads, programs) = (kinds(&timing.read_ns), kinds(&timing.program_ns));
    // What the probe writes goes to the cache, what it only reads is where filling put it, and noise hides which is which: then it is a mean of both.
    let cached = profile.slc_cache.map(|cache| [cache.read_ns as f64, cache.program_ns as f64]);
    let is_cached = |values: &[f64], at: usize, usual: &[f64]| {
        let (Some(times), &[one]) = (cached, values) else { return false };
        let (least, most) = (times[at].min(mean(usual)), times[at].max(mean(usual)));
        (least * (1.0 - TENTH)..=most * (1.0 + TENTH)).contains(&one)
    };
    // Noise may hide that there are several kinds of pages: then it is the mean of all.
    let is_mean = |values: &[f64], truth: &[f64]| matches!(values, &[one] if near(one, mean(truth), TENTH));
    score.note(known, "array read", &latencies.read, &reads, |values| {
        all_near(values, &reads)
            || is_cached(values, 0, &reads)
            || timing.variation > 0.0 && is_mean(values, &reads)
    });
    score.note(known, "array program", &latencies.program, &programs, |values| {
        let may_be_mean = profile.write_buffer.is_some() || timing.variation > 0.0;
        all_near(values, &programs)
            || is_cached(values, 1, &programs)
            || may_be_mean && is_mean(values, &programs)
    });
    let per_byte = timing.transfer_ps_per_byte as f64;
    score
        .note(known, "bus of a domain", &latencies.transfer, per_byte, |&found| near(found, per_byte, TENTH));
    let moves_whole = timing.whole_page_reads;
    score.note(known, "whole pages", &latencies.whole_chunks, moves_whole, |&found| found == moves_whole);
    // What is moved as a whole is what is mapped.
    let whole = profile.translation.unit_bytes.map_or(page, f64::from);
    let moved = if moves_whole { whole } else { 512.0 } * per_byte / 1e3;
    let array = timing.command_ns as f64 + mean(&reads);
    // With cache registers, the longer of the two.
    let held = if profile.advanced_commands.cache_read { array.max(moved) } else { array + moved };
    let held_in_cache = cached.map(|[read, _]| {
        let array = timing.command_ns as f64 + read;
        if profile.advanced_commands.cache_read { array.max(moved) } else { array + moved }
    });
    score.note(known, "unit held by a read", &latencies.unit_hold, held, |&found| {
        let other = held_in_cache.unwrap_or(held);
        (held.min(other) * (1.0 - TENTH)..=held.max(other) * (1.0 + TENTH)).contains(&found)
    });
    let has_registers = profile.advanced_commands.cache_read;
    score.note(known, "next page meanwhile", &latencies.cache_read, has_registers, |&found| {
        found == has_registers
    });
    // Between one operation of the processor, or what a command takes on the link, and all of that together with its data.
    let by_processor = profile.processor.map_or([0.0; 2], |processor| {
        [processor.operation_ns, processor.command_ns + processor.operation_ns].map(|time| time as f64)
    });
    let by_link =
        profile.link.map_or([0.0; 2], |link| [link.command_ns as f64, 512e3 / f64::from(link.mb_per_s)]);
    let distance = [by_link[0].max(by_processor[0]), by_processor[1] + by_link[0] + by_link[1]];
    score.note(known, "distance of commands", &latencies.command, distance, |&found| {
        found >= distance[0] * (1.0 - TENTH) && found <= distance[1] * (1.0 + TENTH)
    });
    let is_deep = known.commands().is_some_and(|depth| depth >= 3);
    score.note(known, "commands side by side", &latencies.queues_inside, is_deep, |&found| found == is_deep);
    let turn = match profile.processor {
        Some(processor) if processor.drains_to_turn => Turn::Drains,
        processor => Turn::Costs(processor.map_or(0.0, |processor| processor.turn_ns as f64)),
    };
    score.note(known, "turn to writes", &latencies.turn, turn, |&found| match (found, turn) {
        (Turn::Costs(found), Turn::Costs(truth)) => near(found, truth, TENTH),
        (found, truth) => found == truth,
    });
    let rate = profile.link.map(|link| f64::from(link.mb_per_s));
    score.note(known, "link to the host", &latencies.link, rate, |&found| {
        rate.is_some_and(|rate| near(found, rate, TENTH))
    });
}

fn buffers(known: &Drive, findings: &Findings, score: &mut Score) {
    let profile = &known.profile;
    let page = f64::from(profile.geometry.page_bytes);
    let buffer = findings.write_buffer.as_ref().unwrap();
    let truth = profile.write_buffer;
    score.note(known, "write buffer", &buffer.present, truth.is_some(), |&found| found == truth.is_some());
    let size = truth.map(|truth| f64::from(truth.pages) * page);
    score.note(known, "write buffer: size", &buffer.size, size, |found| {
        size.is_some_and(|size| near(found.0 as f64, size, QUARTER))
    });
    // Runs go as a whole, and leave up to a run less than the watermark.
    let kept = truth.map(|truth| {
        let run = f64::from(truth.run_pages) / f64::from(truth.pages);
        [(truth.watermark - run).max(0.0), truth.watermark]
    });
    score.note(known, "write buffer: kept", &buffer.kept, kept, |&found| {
        kept.is_some_and(|[least, most]| found >= least * (1.0 - QUARTER) && found <= most * (1.0 + QUARTER))
    });

    let volatile = truth.is_some_and(|truth| !truth.power_loss_protection);
    let flush = findings.flush.as_ref().unwrap();
    score.note(known, "volatile write buffer", &flush.volatile, volatile, |&found| found == volatile);

    let ahead = findings.read_ahead.as_ref().unwrap();
    let truth = profile.read_ahead;
    score.note(known, "read-ahead", &ahead.present, truth.is_some(), |&found| found == truth.is_some());
    let trigger = truth.map(|truth| truth.trigger);
    score.note(known, "read-ahead: begins after", &ahead.trigger, trigger, |&found| trigger == Some(found));
    // A window that has less than a run of room is not filled up.
    let window = truth.map(|truth| {
        let run = truth.run_pages.min(truth.window_pages - 1);
        [truth.window_pages - run, truth.window_pages].map(|pages| f64::from(pages) * page)
    });
    score.note(known, "read-ahead: reaches", &ahead.window, window, |found| {
        let found = found.0 as f64;
        window
            .is_some_and(|[least, most]| found >= least * (1.0 - QUARTER) && found <= most * (1.0 + QUARTER))
    });
    // As many as have room in the buffer, with whole windows or the halves that are ahead of them.
    let streams = truth.map(|truth| {
        let windows = (truth.buffer_pages / truth.window_pages).max(1);
        [truth.streams.min(windows), truth.streams.min(2 * windows)]
    });
    score.note(known, "read-ahead: streams", &ahead.streams, streams, |&found| {
        streams.is_some_and(|[least, most]| (least..=most).contains(&found))
    });
}

fn help(known: &Drive, findings: &Findings, target: &mut dyn Target, score: &mut Score) {
    let parallelism = findings.parallelism.as_ref().unwrap();
    for (what, finding, direction) in [
        ("reads that help", &parallelism.reads, Direction::Read),
        ("writes that help", &parallelism.writes, Direction::Write),
    ] {
        let Some(depth) = finding.value else {
            score.note(known, what, finding, 0, |_| true);
            continue;
        };
        // No closed form: the truth is what it sustains when measured for longer.
        let rates: Vec<(u32, f64)> = (0..)
            .map(|power| 1 << power)
            .take_while(|&depth| depth <= known.depth)
            .map(|depth| (depth, sustained(known, target, direction, depth)))
            .collect();
        let best = rates.iter().map(|&(_, rate)| rate).fold(0.0, f64::max);
        let share =
            |of: u32| rates.iter().find(|&&(depth, _)| depth == of).map_or(0.0, |&(_, rate)| rate / best);
        score.note(known, what, finding, &rates, |_| share(depth) > 0.92 && share(depth / 2) < 0.98);
    }
}

/// Operations a second of random chunks at a depth, once buffers are full.
fn sustained(known: &Drive, target: &mut dyn Target, direction: Direction, depth: u32) -> f64 {
    let stop = AtomicBool::new(false);
    let area = Area { start: 0, sectors: options_for(target, true).area.0 / 512 };
    let mut instrument = Instrument::new(target, &stop, generator(known.seed, "truth"));
    let sectors = known.page() / 512;
    let measured = instrument
        .keep(depth, Ns::MAX, |rng, number| {
            let start = area.random_piece(sectors, rng);
            (number < 6144).then_some(Operation::transfer(direction, start, sectors as u32))
        })
        .unwrap();
    1e9 / measured.steady_interval(depth)
}

/// Probes the drives of these seeds, on so many processors.
pub fn score(seeds: std::ops::Range<u64>, workers: usize, draw: impl Fn(u64) -> Drive + Sync) -> Score {
    let (next, score) = (Mutex::new(seeds), Mutex::new(Score::default()));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(seed) = next.lock().unwrap().next() else { return };
                    let known = draw(seed);
                    let (findings, mut target) = probed(&known, true);
                    let said = compare(&known, &findings, &mut *target);
                    score.lock().unwrap().add(said);
                }
            });
        }
    });
    score.into_inner().unwrap()
}
