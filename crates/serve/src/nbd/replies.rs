//! Answers of one connection: written by whoever has them, in one piece each.
//!
//! The drive's thread must not wait for a client that does not read: what a socket does not take at once is left to a thread of the connection. And a client
//! that asks for more than is good is not listened to until some of it is answered.

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Requests and bytes under way at a time in one connection.
const REQUESTS_MAX: usize = 1024;
const BYTES_MAX: usize = 64 << 20;

#[derive(Default)]
struct State {
    /// What the socket did not take, with how much of it was sent.
    left: VecDeque<(Vec<u8>, usize)>,
    requests: usize,
    bytes: usize,
    /// Nobody reads any more.
    is_dead: bool,
    /// No request will come any more.
    is_over: bool,
}

/// The sending half of a connection.
pub struct Replies {
    socket: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
}

impl Replies {
    /// Of a connected socket.
    pub fn new(socket: OwnedFd) -> Replies {
        Replies { socket, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until there is room for a request that holds so many bytes; false where nobody reads any more.
    pub fn admit(&self, bytes: usize) -> bool {
        let mut state = self.lock();
        // One is always let in, however long.
        while !state.is_dead
            && (state.requests > 0 || state.bytes > 0)
            && (state.requests >= REQUESTS_MAX || state.bytes.saturating_add(bytes) > BYTES_MAX)
        {
            state = self.wait(state);
        }
        state.requests += 1;
        state.bytes += bytes;
        !state.is_dead
    }

    /// Answers a request that was let in with so many bytes. Does not wait.
    pub fn send(&self, message: Vec<u8>, bytes: usize) {
        let mut state = self.lock();
        state.requests -= 1;
        state.bytes -= bytes;
        if !state.is_dead {
            let mut sent = 0;
            while state.left.is_empty() && sent < message.len() {
                match send(&self.socket, &message[sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                    Ok(count) => sent += count,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => break,
                    Err(_) => {
                        state.is_dead = true;
                        break;
                    }
                }
            }
            if sent < message.len() && !state.is_dead {
                // Still held, until it is sent.
                state.bytes += message.len() - sent;
                state.left.push_back((message, sent));
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Sends what was left, until all requests are answered and no more will come.
    pub fn send_what_is_left(&self) {
        let mut state = self.lock();
        loop {
            if state.is_dead || state.is_over && state.requests == 0 && state.left.is_empty() {
                return;
            }
            let Some((message, sent)) = state.left.front_mut() else {
                state = self.wait(state);
                continue;
            };
            // It stays in front, so that nobody overtakes it.
            let (message, sent) = (std::mem::take(message), *sent);
            drop(state);
            let outcome = loop {
                match send(&self.socket, &message[sent..], SendFlags::NOSIGNAL) {
                    Err(Errno::INTR) => {}
                    other => break other,
                }
            };
            state = self.lock();
            match outcome {
                Err(_) => state.is_dead = true,
                Ok(count) => {
                    state.bytes -= count;
                    if sent + count == message.len() {
                        state.left.pop_front();
                    } else if let Some(front) = state.left.front_mut() {
                        *front = (message, sent + count);
                    }
                }
            }
            self.changed.notify_all();
        }
    }

    /// No request will come any more.
    pub fn finish(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Waits until all is answered and sent, or nobody reads.
    pub fn wait_until_sent(&self) {
        let mut state = self.lock();
        while !state.is_dead && (state.requests > 0 || !state.left.is_empty()) {
            state = self.wait(state);
        }
    }

    /// Hangs up.
    pub fn hang_up(&self) {
        let _ = rustix::net::shutdown(self.socket.as_fd(), rustix::net::Shutdown::Both);
        self.lock().is_dead = true;
        self.changed.notify_all();
    }
}
