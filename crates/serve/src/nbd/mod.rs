//! Network Block Device, fixed newstyle, as the protocol's own document has it (github.com/NetworkBlockDevice/nbd, doc/proto.md).
//!
//! | file | what |
//! |---|---|
//! | `negotiation.rs` | what a client and we agree on before the first request |
//! | `transmission.rs` | requests |
//! | `replies.rs` | answers, by whoever has them, one after the other |
//! | `server.rs` | sockets and connections |

pub mod negotiation;
pub mod replies;
pub mod server;
pub mod transmission;

/// What is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// Whether only who knows the name gets it: the empty name, which stands for any, is refused, and so is the list.
    pub is_guarded: bool,
    /// Bytes that clients should ask for at least.
    pub preferred_bytes: u32,
}

/// Most bytes that a request moves.
pub const PAYLOAD_MAX: u32 = 32 << 20;

/// Transmission flags: there are flags; flush, forced unit access, trim, zeros, several connections, and reads in one piece.
pub const TRANSMISSION_FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8;
