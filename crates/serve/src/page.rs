//! Counters for Prometheus, on the loopback address: version 0.0.4 of its text format.

use crate::core::{Handle, KINDS, Snapshot};
use crate::error::ServeError;
use crate::lateness::Summary;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of a request, at most, and how long it may take.
const REQUEST_MAX: usize = 8192;
const REQUEST_TIME: Duration = Duration::from_secs(2);

/// A running page.
pub struct Page {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Page {
    /// Listens at a port, 0 for any; `clients` says how many are connected.
    ///
    /// # Errors
    /// The port cannot be had.
    pub fn start(
        port: u16,
        drive: Handle,
        dilation: f64,
        clients: impl Fn() -> usize + Send + 'static,
    ) -> Result<Page, ServeError> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let failed = |error| ServeError::system(format!("{wanted}: cannot listen"), error);
        let listener = TcpListener::bind(wanted).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let for_thread = Arc::clone(&is_over);
        let answer_all = move || {
            for stream in listener.incoming() {
                if for_thread.load(Ordering::SeqCst) {
                    return;
                }
                // Whoever hangs up in the middle wanted no more.
                let _ = stream.and_then(|stream| {
                    answer(stream, || drive.look().map(|now| text(&now, dilation, clients())))
                });
            }
        };
        let thread = std::thread::Builder::new().name("page".into()).spawn(answer_all).map_err(failed)?;
        Ok(Page { address, is_over, thread: Some(thread) })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // It waits for somebody: that is us.
        if TcpStream::connect_timeout(&self.address, REQUEST_TIME).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, page: impl FnOnce() -> Option<String>) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIME))?;
    stream.set_write_timeout(Some(REQUEST_TIME))?;
    let (mut request, mut piece) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece)?;
        if count == 0 || request.len() + count > REQUEST_MAX {
            return respond(&mut stream, "400 Bad Request", "not a request\n");
        }
        request.extend(&piece[..count]);
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    match line.split(|byte| *byte == b' ').collect::<Vec<_>>()[..] {
        [b"GET", b"/metrics" | b"/", _] => match page() {
            Some(page) => respond(&mut stream, "200 OK", &page),
            None => respond(&mut stream, "503 Service Unavailable", "the drive has ended\n"),
        },
        [b"GET", _, _] => respond(&mut stream, "404 Not Found", "there is /metrics\n"),
        _ => respond(&mut stream, "400 Bad Request", "allowed: GET /metrics\n"),
    }
}

fn respond(stream: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())
}

/// The page.
fn text(now: &Snapshot, dilation: f64, clients: usize) -> String {
    let mut page = String::new();
    let mut family = |name: &str, kind: &str, help: &str, lines: &[(String, f64)]| {
        let _ = writeln!(page, "# HELP planewise_{name} {help}\n# TYPE planewise_{name} {kind}");
        for (labels, value) in lines {
            let _ = writeln!(page, "planewise_{name}{labels} {value}");
        }
    };
    let by_kind = |counts: &[u64; 4]| -> Vec<(String, f64)> {
        let labelled = KINDS.iter().zip(counts);
        labelled.map(|(kind, count)| (format!("{{operation=\"{kind}\"}}"), *count as f64)).collect()
    };
    let one = |value: f64| [(String::new(), value)];
    family("requests_total", "counter", "Requests answered.", &by_kind(&now.answered));
    family("bytes_total", "counter", "Bytes of the requests answered.", &by_kind(&now.bytes));
    family("failed_total", "counter", "Requests answered with an error.", &one(now.failed as f64));
    family("requests_under_way", "gauge", "Requests not answered yet.", &one(now.under_way as f64));
    family("clients", "gauge", "Clients that are connected.", &one(clients as f64));
    family("wall_seconds_total", "counter", "Wall time since the beginning.", &one(now.wall.as_secs_f64()));
    let simulated = now.simulated.as_secs_f64();
    family("simulated_seconds_total", "counter", "Time on the drive.", &one(simulated));
    family("dilation", "gauge", "Wall time for each unit of simulated time.", &one(dilation));
    let classes = [("transfer", &now.transfers), ("flush", &now.flushes)];
    let late = "From when an answer was due to when it was handed over, wall time.";
    family("lateness_seconds", "gauge", late, &quantiles(&classes, |summary| &summary.late));
    let latency = "From a request's arrival to when its answer was due, wall time.";
    family("latency_seconds", "gauge", latency, &quantiles(&classes, |summary| &summary.latency));
    page
}

fn quantiles(
    classes: &[(&str, &Summary)],
    of: impl Fn(&Summary) -> &planewise_sim::results::Distribution,
) -> Vec<(String, f64)> {
    let mut lines = Vec::new();
    for (class, summary) in classes {
        let found = of(summary);
        let values = [
            ("mean", found.mean),
            ("0.5", found.p50 as f64),
            ("0.99", found.p99 as f64),
            ("max", found.max as f64),
        ];
        for (quantile, ns) in values {
            lines.push((format!("{{class=\"{class}\",at=\"{quantile}\"}}"), ns / 1e9));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &'static [u8]) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let client = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let _ = stream.write_all(request);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            String::from_utf8_lossy(&answer).into_owned()
        });
        let now = Snapshot { answered: [3, 1, 0, 0], ..Snapshot::default() };
        let _ = answer(listener.accept().unwrap().0, || Some(text(&now, 10.0, 2)));
        client.join().unwrap()
    }

    #[test]
    fn the_page_has_the_counters_and_nothing_else_is_a_page() {
        let page = asked(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
        for line in [
            "planewise_requests_total{operation=\"read\"} 3",
            "planewise_clients 2",
            "planewise_dilation 10",
            "planewise_lateness_seconds{class=\"transfer\",at=\"0.99\"} 0",
        ] {
            assert!(page.contains(line), "{page}");
        }
        assert!(asked(b"GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(asked(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400"));
        assert!(asked(b"\xff\x00nonsense").starts_with("HTTP/1.1 400"));
        assert!(asked(&[b'x'; 10_000]).len() < 200);
    }
}
