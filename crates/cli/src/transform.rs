//! stand-in
use planewise_model::Request;
pub fn scale_time(b: &mut [Request], f: f64) {
    for r in b {
        r.arrival = planewise_model::Ns((r.arrival.0 as f64 * f).round() as u64);
    }
}
pub fn fold(b: &mut [Request], s: u64) {
    for r in b {
        r.start.0 %= s;
        r.sectors = (u64::from(r.sectors)).min(s - r.start.0) as u32;
    }
}
