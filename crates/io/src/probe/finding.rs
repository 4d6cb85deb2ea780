//! What the probe says: values with the statistic and the confidence behind them, and the curves they were read from.

use serde::{Deserialize, Serialize};

/// A verdict on one property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding<T> {
    /// What was found; none: undetermined, or absent.
    pub value: Option<T>,
    /// Whether there is no such thing, so that it has no value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
    /// How sure it is, 0 to [`MOST_SURE`]: the probability that none of the rival explanations that were tested is the better one, and no
    /// higher than the share of such findings that are right on drawn drives.
    pub confidence: f64,
    /// The statistic, in words and numbers.
    pub statistic: String,
    /// What it was concluded from, or why nothing was.
    pub reason: String,
}

/// No finding is surer: however clear the measurements are, they know nothing of explanations that nobody tested.
pub const MOST_SURE: f64 = 0.99;

impl<T> Finding<T> {
    /// A value, at most as sure as anything is.
    pub fn of(value: T, confidence: f64, statistic: String, reason: impl Into<String>) -> Finding<T> {
        let (confidence, reason) = (confidence.min(MOST_SURE), reason.into());
        Finding { value: Some(value), absent: false, confidence, statistic, reason }
    }

    /// There is no such thing, and how sure that is.
    pub fn absent(confidence: f64, statistic: String, reason: impl Into<String>) -> Finding<T> {
        let (confidence, reason) = (confidence.min(MOST_SURE), reason.into());
        Finding { value: None, absent: true, confidence, statistic, reason }
    }

    /// The same, no surer than what it rests on.
    #[must_use]
    pub fn at_most(mut self, confidence: f64) -> Finding<T> {
        self.confidence = self.confidence.min(confidence);
        self
    }

    /// The same, undetermined for another reason.
    pub fn not_known<U>(&self, reason: impl Into<String>) -> Finding<U> {
        Finding::undetermined(self.statistic.clone(), reason)
    }

    /// No value, and why.
    pub fn undetermined(statistic: String, reason: impl Into<String>) -> Finding<T> {
        Finding { value: None, absent: false, confidence: 0.0, statistic, reason: reason.into() }
    }
}

/// A figure of the report: lines over a common axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What it shows.
    pub title: String,
    /// The horizontal axis with its unit.
    pub x: String,
    /// The vertical axis with its unit.
    pub y: String,
    /// Lines by name; points in rising order of x.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}
