//! What is said of all jobs gives way to what one says of itself, also where the two are different options; what contradicts itself
//! in one place does not.

use super::check::Settings;
use super::section::Level;

/// Options of which one is used.
const ALTERNATIVES: [&[&str]; 3] =
    [&["bs", "bsrange", "bssplit"], &["rwmixread", "rwmixwrite"], &["direct", "buffered"]];

impl Settings {
    fn level(&self, key: &str) -> Option<Level> {
        self.levels.iter().find(|(name, _)| *name == key).map(|(_, level)| *level)
    }

    /// Takes back options that something said closer to the job contradicts, or that mean nothing beside it.
    pub(super) fn give_way(&mut self) {
        for alternatives in ALTERNATIVES {
            let closest = alternatives.iter().filter_map(|key| self.level(key)).max();
            for key in alternatives {
                if self.level(key).is_some_and(|level| Some(level) < closest) {
                    self.take_back(key);
                }
            }
        }
        // Who names no pattern has the one that jobs have by themselves.
        let pattern = self.level("rw").unwrap_or(Level::Own);
        let (is_random, is_mixed) = self.kind();
        let mut idle = Vec::new();
        if !is_mixed {
            idle.extend(["rwmixread", "rwmixwrite"]);
        }
        idle.extend(if is_random { &["stride"][..] } else { &["percentage_random", "random_distribution"] });
        for key in idle {
            if self.level(key).is_some_and(|level| level < pattern) {
                self.take_back(key);
            }
        }
        if self.thinktime.is_none() && self.level("thinktime_blocks") == Some(Level::Global) {
            self.take_back("thinktime_blocks");
        }
        if self.one_at_a_time == Some(true) && self.iodepth.is_some_and(|depth| depth > 1) {
            match self.level("iodepth").cmp(&self.level("ioengine")) {
                std::cmp::Ordering::Less => self.take_back("iodepth"),
                std::cmp::Ordering::Greater => self.take_back("ioengine"),
                std::cmp::Ordering::Equal => {}
            }
        }
    }

    fn take_back(&mut self, key: &str) {
        match key {
            "bs" => self.bs = None,
            "bsrange" => self.bsrange = None,
            "bssplit" => self.bssplit = None,
            "rwmixread" => self.rwmixread = None,
            "rwmixwrite" => self.rwmixwrite = None,
            "direct" => self.direct = None,
            "buffered" => self.buffered = None,
            "stride" => self.stride = None,
            "percentage_random" => self.percentage_random = None,
            "random_distribution" => self.distribution = None,
            "thinktime_blocks" => self.thinktime_blocks = None,
            "iodepth" => self.iodepth = None,
            "ioengine" => self.one_at_a_time = None,
            _ => unreachable!("{key} gives way to nothing"),
        }
    }
}
