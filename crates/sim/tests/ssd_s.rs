//! The drive SSD-S of Chen et al. (TOS 2016): what the paper saw, in kind, and in size where nothing else is in the way. `scripts/chen_claims.py`
//! measures all of it.

mod common;

use common::closed;
use planewise_model::profile::Profile;
use planewise_model::{Direction, Ns};
use planewise_sim::RunConfig;

/// MB/s of each direction, and of both, over the second half of a run.
fn rates(profile: &Profile, jobs: &str) -> [f64; 3] {
    let mut config = RunConfig::new(profile.clone());
    config.queue_length = 64;
    let done = closed(&config, &format!("global = {{ size = \"256m\", bs = \"4k\" }}\n{jobs}"));
    let end = done.iter().map(|completion| completion.completed).max().unwrap();
    let from = Ns(end.0 / 2);
    let bytes = |direction: Direction| {
        let counted = done.iter().filter(|c| c.completed > from && c.request.direction == direction);
        counted.map(|completion| completion.request.bytes().0).sum::<u64>() as f64
    };
    let seconds = (end - from).as_secs_f64();
    let [reads, writes] = [Direction::Read, Direction::Write].map(|way| bytes(way) / 1e6 / seconds);
    [reads, writes, reads + writes]
}

fn one(profile: &Profile, options: &str) -> f64 {
    rates(profile, &format!("job.one = {{ number_ios = 4000, {options} }}"))[2]
}

fn ssd_s() -> Profile {
    Profile::embedded("ssd-s").unwrap()
}

fn assert_near(found: f64, published: f64, share: f64, what: &str) {
    assert!((found / published - 1.0).abs() < share, "{what}: {found:.1} MB/s, published {published}");
}

#[test]
fn bandwidths_are_those_of_section_6_1() {
    let drive = ssd_s();
    for (options, published) in [
        ("rw = \"randread\"", 21.3),
        ("rw = \"randread\", iodepth = 32", 145.0),
        ("rw = \"randread\", bs = \"16k\", iodepth = 32", 225.5),
        ("rw = \"randread\", bs = \"16k\"", 65.5),
        ("rw = \"read\", bs = \"64k\"", 221.3),
        ("rw = \"read\"", 72.6),
        ("rw = \"write\", iodepth = 32", 186.1),
    ] {
        assert_near(one(&drive, options), published, 0.1, options);
    }
    let mlc = Profile::embedded("ssd-m").unwrap();
    assert_near(one(&mlc, "rw = \"write\", iodepth = 32"), 80.0, 0.1, "SSD-M writes");
}

#[test]
fn strides_show_ten_domains_of_two_sub_domains() {
    let drive = ssd_s();
    let stride =
        |jobs: u32, chunks: u32| one(&drive, &format!("rw = \"read:{}k\", iodepth = {jobs}", 4 * chunks));
    assert_near(stride(2, 9), 33.0, 0.1, "two jobs in one domain");
    assert_near(stride(2, 4), 40.0, 0.1, "two jobs in two");
    assert_near(stride(4, 19), 33.0, 0.1, "four jobs in one sub-domain");
    assert_near(stride(4, 4), 64.0, 0.1, "four jobs in two domains");
    // Dies of a package do not show: four packages' worth of strides repeat after two.
    assert!(stride(4, 9) > 1.05 * stride(4, 19) && (stride(4, 39) / stride(4, 19) - 1.0).abs() < 0.01);
}

#[test]
fn reads_and_writes_disturb_each_other_as_in_table_2() {
    let drive = ssd_s();
    let pair = |reads: &str| {
        rates(
            &drive,
            &format!(
                "job.r = {{ rw = \"{reads}\", number_ios = 4000 }}\njob.w = {{ rw = \"write\", offset = \"1g\", number_ios = 4000 }}"
            ),
        )
    };
    let [reads, _, both] = pair("read");
    assert_near(both, 109.2, 0.1, "sequential reads and writes");
    assert!(reads < one(&drive, "rw = \"read\""));
    let [reads, writes, _] = pair("randread");
    assert_near(reads, 19.4, 0.1, "random reads beside writes");
    assert!(3.0 * writes < one(&drive, "rw = \"write\""), "writes lose most: {writes:.1} MB/s");
}

#[test]
fn a_second_stream_ends_read_ahead_and_more_win_it_back() {
    let drive = ssd_s();
    let streams =
        |count: u32| one(&drive, &format!("rw = \"read\", numjobs = {count}, offset_increment = \"256m\""));
    let [single, double, many] = [1, 2, 32].map(streams);
    assert_near(double / single, 0.57, 0.15, "two streams over one");
    assert!(many > single);
}
