//! The one named random generator of the project.

use rand::SeedableRng;

/// PCG XSL RR 128/64 ("pcg64", O'Neill 2014): small, fast, statistically sound and stable across platforms and releases,
/// so that the same seed gives the same bytes everywhere. Every result records [`GENERATOR_NAME`] and its seed.
pub type Generator = rand_pcg::Pcg64;

/// The name written beside the seed in results.
pub const GENERATOR_NAME: &str = "pcg64";

/// The seed used when the user names none.
pub const DEFAULT_SEED: u64 = 0x504c_414e_4557_4953; // "PLANEWIS"

/// A generator for one purpose. Different `purpose` strings give independent streams of the same seed, so that adding
/// a consumer of randomness never shifts the numbers another one sees.
pub fn generator(seed: u64, purpose: &str) -> Generator {
    // FNV-1a over the purpose: stable, and spread enough to tell a handful of stream names apart.
    let stream = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&(!seed).to_le_bytes());
    bytes[16..24].copy_from_slice(&stream.to_le_bytes());
    bytes[24..].copy_from_slice(&stream.rotate_left(32).to_le_bytes());
    Generator::from_seed(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn same_seed_same_stream_and_other_purpose_other_stream() {
        let draw = |seed, purpose| {
            let mut generator = generator(seed, purpose);
            (0..8).map(|_| generator.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, "arrivals"), draw(1, "arrivals"));
        assert_ne!(draw(1, "arrivals"), draw(2, "arrivals"));
        assert_ne!(draw(1, "arrivals"), draw(1, "addresses"));
    }
}
