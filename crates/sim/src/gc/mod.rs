//! Garbage collection: when a plane is collected, which block, and who goes first, the collection or the host.
//!
//! The mechanics of moving pages are the device's (`device/collect.rs`); a scheme here only decides.

mod greedy;
mod traditional;

pub(crate) use greedy::fewest_valid;

use crate::error::SimError;
use planewise_model::names;

/// What a scheme may look at when it decides about a plane.
#[derive(Clone, Copy, Debug)]
pub struct PlaneState {
    /// Pages that can be programmed before anything must be erased.
    pub free_pages: u32,
    /// Pages of the plane.
    pub pages: u32,
}

/// Who uses the executor next while a collection is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The next step of the collection.
    Collection,
    /// A waiting host transaction.
    Host,
}

/// A garbage collection scheme.
pub trait Collector: Send {
    /// Whether a collection should start on a plane. The device starts one on its own when a write finds no space at all.
    fn should_start(&self, plane: PlaneState) -> bool;

    /// Asked between two steps (a page moved, the block erased) when host transactions wait for the same executor.
    fn turn(&self, plane: PlaneState) -> Turn;
}

/// What a profile says about collection.
#[derive(Clone, Copy, Debug)]
pub struct CollectorOptions {
    /// Share of free pages below which a plane is collected.
    pub threshold: f64,
}

/// One line of the table of schemes.
pub struct Scheme {
    /// Name in profiles and on the command line.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    build: fn(&CollectorOptions) -> Box<dyn Collector>,
}

/// All schemes.
pub static SCHEMES: &[Scheme] = &[traditional::SCHEME];

/// Builds a scheme by name.
///
/// # Errors
/// The name is unknown.
pub fn build(name: &str, options: &CollectorOptions) -> Result<Box<dyn Collector>, SimError> {
    SCHEMES.iter().find(|scheme| scheme.name == name).map(|scheme| (scheme.build)(options)).ok_or_else(|| {
        names::unknown("garbage collection scheme", name, SCHEMES.iter().map(|s| s.name)).into()
    })
}
