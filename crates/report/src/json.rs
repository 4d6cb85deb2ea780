//! `results.json`: the results for programs.

use planewise_sim::results::Results;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};

/// The results as pretty JSON ending in a newline. Keys keep the order of the format (maps are sorted), so that equal results
/// are equal bytes and two files can be compared line by line; each point of a distribution is one line.
///
/// A value that is not a number is `null`: it cannot be mistaken for a measurement, and NaN is not JSON.
pub fn json(results: &Results) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, PointsOnOneLine::default());
    results.serialize(&mut serializer).expect("results are plain data with string keys, written to memory");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// Pretty JSON, but an array directly inside an array (a point of a distribution) stays on one line.
#[derive(Default)]
struct PointsOnOneLine {
    pretty: PrettyFormatter<'static>,
    /// For each open container, whether it is an array.
    open: Vec<bool>,
}

impl PointsOnOneLine {
    fn in_point(&self) -> bool {
        matches!(self.open.as_slice(), [.., true, true])
    }
}

impl Formatter for PointsOnOneLine {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(true);
        if self.in_point() { writer.write_all(b"[") } else { self.pretty.begin_array(writer) }
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let in_point = self.in_point();
        self.open.pop();
        if in_point { writer.write_all(b"]") } else { self.pretty.end_array(writer) }
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        match (self.in_point(), first) {
            (true, true) => Ok(()),
            (true, false) => writer.write_all(b", "),
            (false, _) => self.pretty.begin_array_value(writer, first),
        }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.in_point() { Ok(()) } else { self.pretty.end_array_value(writer) }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(false);
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.pop();
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_reads_back_equal_and_writes_the_same_bytes() {
        for results in samples::all() {
            let text = json(&results);
            let back: Results = serde_json::from_str(&text).unwrap();
            assert!(back == results, "{}", results.setup.trace.name);
            assert!(json(&back) == text, "{}", results.setup.trace.name);
            assert!(text.ends_with("}\n"));
        }
    }

    #[test]
    fn keys_keep_the_order_of_the_format_and_points_take_one_line() {
        let text = json(&samples::six_schedulers());
        let place = |key: &str| text.find(&format!("\"{key}\"")).unwrap_or_else(|| panic!("{key}"));
        assert!(place("format") < place("generator") && place("generator") < place("status"));
        assert!(place("setup") < place("runs") && place("labels") < place("metrics"));
        let points = text.lines().filter(|line| line.trim_start().starts_with('[')).collect::<Vec<_>>();
        assert!(points.len() > 100 && points.iter().all(|line| line.contains(']')), "{:?}", points.first());
    }

    #[test]
    fn a_value_that_is_no_number_is_null() {
        let mut results = samples::six_schedulers();
        results.runs[0].metrics.mean_queue_depth = f64::NAN;
        results.runs[1].metrics.read.iops = f64::INFINITY;
        // Without a power cut, what it found is null as well.
        let text = json(&results).replace("\"power_loss\": null", "");
        assert_eq!(text.matches("null").count(), 2);
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    proptest! {
        #[test]
        fn any_name_survives_the_round_trip(name in ".*", mean in 0.0f64..1e18) {
            let mut results = samples::six_schedulers();
            results.setup.trace.name = name;
            results.runs[0].metrics.read.latency_ns.mean = mean;
            prop_assert!(serde_json::from_str::<Results>(&json(&results)).unwrap() == results);
        }
    }
}
