//! What stands between the scheduler and the device's tags.

use crate::error::SimError;
use std::fmt;
use std::str::FromStr;

/// When a request leaves the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BlockLayer {
    /// When the device has a tag for it, or as its own block layer says (mq-deadline, kyber, bfq).
    #[default]
    Direct,
    /// As under Linux's multi-queue block layer, whoever schedules: one request is taken before there is a tag for it, and goes first
    /// when there is one.
    BlkMq,
}

impl fmt::Display for BlockLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BlockLayer::Direct => "direct",
            BlockLayer::BlkMq => "blk-mq",
        })
    }
}

impl FromStr for BlockLayer {
    type Err = SimError;

    fn from_str(text: &str) -> Result<BlockLayer, SimError> {
        match text {
            "direct" => Ok(BlockLayer::Direct),
            "blk-mq" => Ok(BlockLayer::BlkMq),
            _ => Err(SimError::Option {
                key: "block_layer".into(),
                found: format!("'{text}'"),
                allowed: "direct, blk-mq".into(),
            }),
        }
    }
}
