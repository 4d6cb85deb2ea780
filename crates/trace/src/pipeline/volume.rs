//! Which requests belong to the volume that the user wants.

use crate::error::TraceError;
use planewise_model::names;
use std::collections::BTreeSet;
use std::path::Path;

/// Numbers of volumes remembered for the message about a volume that is not there.
const KNOWN_MAX: usize = 64;

/// A choice of one volume, or of all.
#[derive(Debug)]
pub(super) struct Selection {
    wanted: Option<Wanted>,
}

#[derive(Debug)]
struct Wanted {
    name: String,
    /// `name` as a number, where it is one.
    number: Option<u32>,
    /// The volume's number, once it has been met.
    found: Option<u32>,
    /// How many of the reader's names have been compared.
    compared: usize,
    /// Numbers met, for formats that have no names.
    known: BTreeSet<u32>,
}

impl Selection {
    pub fn new(volume: Option<&str>) -> Selection {
        let wanted = volume.map(|name| Wanted {
            name: name.to_owned(),
            number: name.parse().ok(),
            found: None,
            compared: 0,
            known: BTreeSet::new(),
        });
        Selection { wanted }
    }

    /// Whether a request of a volume is wanted. `names` are those the reader has met so far, perhaps none.
    ///
    /// # Errors
    /// A disk number that is that of several hosts' disks.
    #[inline]
    pub fn keeps(&mut self, volume: u32, names: &[String], path: &Path) -> Result<bool, TraceError> {
        match &mut self.wanted {
            None => Ok(true),
            Some(wanted) => wanted.is(volume, names, path),
        }
    }

    /// At the end of the trace: the volume must have been met.
    ///
    /// # Errors
    /// It has not; the error lists those that have.
    pub fn check(&self, names: &[String]) -> Result<(), TraceError> {
        match &self.wanted {
            Some(wanted) if wanted.found.is_none() => {
                let numbers: Vec<String> = wanted.known.iter().map(u32::to_string).collect();
                let known = if names.is_empty() { &numbers } else { names };
                Err(names::unknown("volume", &wanted.name, known.iter().map(String::as_str)).into())
            }
            _ => Ok(()),
        }
    }
}

impl Wanted {
    fn is(&mut self, volume: u32, names: &[String], path: &Path) -> Result<bool, TraceError> {
        if names.is_empty() {
            if self.number == Some(volume) {
                self.found = Some(volume);
            } else if self.known.len() < KNOWN_MAX {
                self.known.insert(volume);
            }
        }
        while self.compared < names.len() {
            let (number, name) = (self.compared, &names[self.compared]);
            self.compared += 1;
            // A full name, or the number at its end: disk 0 of hm_0.
            let is_number =
                self.number.is_some() && name.rsplit_once('_').is_some_and(|(_, end)| end == self.name);
            if *name != self.name && !is_number {
                continue;
            }
            if let Some(other) = self.found {
                return Err(TraceError::Ambiguous {
                    file: path.to_owned(),
                    reason: format!("volume {} is {} and {name}", self.name, names[other as usize]),
                    remedy: format!("give the whole name, e.g. --volume {name}"),
                });
            }
            self.found = Some(number as u32);
        }
        Ok(self.found == Some(volume))
    }
}

/// The volumes that were met.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    met: BTreeSet<u32>,
    last: Option<u32>,
}

impl Volumes {
    /// A request of a volume was read.
    #[inline]
    pub(super) fn note(&mut self, volume: u32) {
        if self.last != Some(volume) {
            self.last = Some(volume);
            self.met.insert(volume);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.met.len()
    }
}
