//! What a command says before the first write: what it writes, where, how much, and how long that takes.

use crate::TargetInfo;
use planewise_model::Bytes;
use std::fmt;
use std::time::Duration;

/// Writes that are about to begin.
#[derive(Clone, Debug)]
pub struct WritePlan<'a> {
    /// Where they go.
    pub target: &'a TargetInfo,
    /// What is written, in words: "sequential fill, then random writes of 4 KiB".
    pub what: &'a str,
    /// First byte of the area.
    pub start: Bytes,
    /// Length of the area: nothing outside is written.
    pub area: Bytes,
    /// Bytes written in all, or at most; more than the area when parts are written again. None where only time bounds it.
    pub volume: Option<Bytes>,
    /// How long it takes, all in all, as far as that is known beforehand.
    pub time: Option<Duration>,
}

impl fmt::Display for WritePlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WritePlan { target, what, start, area, .. } = self;
        let end = Bytes(start.0 + area.0);
        write!(f, "writes to {} ({}, {}): {what}, ", target.name, target.kind.name(), target.capacity)?;
        match self.volume {
            Some(volume) => write!(f, "{volume} in all, ")?,
            None => f.write_str("for as long as it takes, ")?,
        }
        if start.0 == 0 && *area == target.capacity {
            f.write_str("over all of it")?;
        } else {
            write!(f, "from byte {} ({start}) to byte {} ({end})", start.0, end.0)?;
        }
        if let Some(time) = self.time {
            write!(f, "; {}", in_words(time))?;
        }
        f.write_str("; what is there now is lost")
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        0 => "less than a second".to_owned(),
        seconds @ 1..120 => format!("about {seconds} s"),
        seconds @ 120..7200 => format!("about {} min", seconds.div_ceil(60)),
        seconds => format!("about {} h", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TargetKind;

    #[test]
    fn a_plan_says_what_where_how_much_and_how_long() {
        let target = TargetInfo {
            name: "/dev/nvme0n1".to_owned(),
            kind: TargetKind::BlockDevice,
            engine: "io_uring",
            capacity: Bytes(1 << 40),
            block_bytes: 512,
            longest: Bytes(1 << 20),
            depth: 32,
            writable: true,
            identity: None,
        };
        let plan = WritePlan {
            target: &target,
            what: "a sequential fill",
            start: Bytes(0),
            area: Bytes(1 << 30),
            volume: Some(Bytes(3 << 30)),
            time: Some(Duration::from_secs(90)),
        };
        assert_eq!(
            plan.to_string(),
            "writes to /dev/nvme0n1 (block device, 1.0 TiB): a sequential fill, 3.0 GiB in all, from byte 0 (0 B) to byte \
             1073741824 (1.0 GiB); about 90 s; what is there now is lost"
        );
        let all = WritePlan { area: Bytes(1 << 40), volume: None, time: None, ..plan.clone() };
        assert!(all.to_string().contains("for as long as it takes, over all of it; what"), "{all}");
        let long = WritePlan { time: Some(Duration::from_secs(3601)), ..plan.clone() };
        assert!(long.to_string().contains("about 61 min"), "{long}");
    }
}
