//! stub
use planewise_model::Request;
pub mod synth {
    use super::*;
    pub struct VolumeDescription {
        pub name: String,
    }
    pub static VOLUMES: &[(&str, &str)] = &[];
    pub fn find(_: &str) -> Result<VolumeDescription, ()> {
        Err(())
    }
    pub struct Generator;
    impl Generator {
        pub fn new(_: &VolumeDescription, _: u64, _: u64) -> Result<Generator, crate::failure::Failure> {
            Ok(Generator)
        }
        pub fn next_batch(&mut self, _: &mut Vec<Request>, _: usize) -> usize {
            0
        }
    }
}
pub mod transform {
    use super::*;
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
}
