//! `planewise bench`: what it runs, what it says, and what it refuses before anything runs.

mod support;

use planewise_sim::results::Results;
use support::{Place, small_device};

fn place() -> Place {
    let place = Place::new();
    place.file("small.toml", small_device());
    place
}

fn results(place: &Place, directory: &str) -> Results {
    let path = place.path().join(directory).join("results.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn jobs_from_the_command_line_run_under_lists_of_schemes_and_values() {
    let place = place();
    let said = place.ok(
        "bench --target sim:small.toml --rw randrw --bs 4k --number_ios 300 --vary iodepth=1,4 --schedulers noop,piq --check --out x",
    );
    assert!(said.out.contains("throughput, MB/s") && said.out.contains("iodepth"), "{}", said.out);
    let all = results(&place, "x");
    assert_eq!(all.runs.len(), 4);
    let labels: Vec<(&str, &str)> = all
        .runs
        .iter()
        .map(|run| (run.labels.scheduler.as_str(), run.labels.workload["iodepth"].as_str()))
        .collect();
    assert_eq!(labels, [("noop", "1"), ("piq", "1"), ("noop", "4"), ("piq", "4")]);
    for run in &all.runs {
        let job = &run.closed_loop.as_ref().unwrap().jobs[0];
        assert_eq!((job.all.requests, run.metrics.requests.completed), (300, 300));
        assert!(!run.invariants.is_empty() && job.all.latency_ns.deviation > 0.0);
    }
    let report = std::fs::read_to_string(place.path().join("x/report.html")).unwrap();
    assert!(report.contains("planewise bench") && report.contains("--vary iodepth=1,4"));
}

#[test]
fn job_files_in_toml_and_in_fios_own_format_mean_the_same() {
    let place = place();
    place.file(
        "a.toml",
        "[target]\nprofile = \"small.toml\"\n[global]\nsize = \"8m\"\nnumber_ios = 200\n\
         [job.reader]\nrw = \"randread\"\nnumjobs = 2\n[job.writer]\nrw = \"write\"\nbs = \"16k\"\noffset = \"8m\"\n",
    );
    place.file(
        "a.fio",
        "; the same\n[global]\nsize=8m\nnumber_ios=200\ngroup_reporting\n\n[reader]\nrw=randread\nnumjobs=2\n[writer]\nreadwrite=write\nblocksize=16k\noffset=8m\n",
    );
    place.ok("bench a.toml --out toml");
    place.ok("bench a.fio --target sim:small.toml --out fio");
    let (toml, fio) = (results(&place, "toml"), results(&place, "fio"));
    assert_eq!(toml.runs[0].metrics, fio.runs[0].metrics);
    let jobs = &toml.runs[0].closed_loop.as_ref().unwrap().jobs;
    let told: Vec<_> = jobs.iter().map(|job| (job.name.as_str(), job.processes, job.all.requests)).collect();
    assert_eq!(told, [("reader", 2, 400), ("writer", 1, 200)]);
    place.ok("workload check a.toml");
    place.ok("bench a.toml --iodepth 3 --out deeper");
    assert!(
        results(&place, "deeper").runs[0].metrics.mean_queue_depth > toml.runs[0].metrics.mean_queue_depth
    );
}

#[test]
fn what_cannot_be_run_is_refused_by_option_before_anything_runs() {
    let place = place();
    place.file("empty.toml", "[global]\nrw = \"read\"\n");
    place.file("unknown.toml", "[job.a]\niodpeth = 4\n");
    place.file("section.toml", "[jobs.a]\nrw = \"read\"\n");
    place.file("loose.fio", "rw=read\n");
    place.file("syntax.toml", "[job.a]\nrw = = 4\n");
    place.file("profile.toml", "[target]\nprofile = \"ssd9\"\n[job.a]\nrw = \"read\"\n");
    place.file("file.fio", "[a]\nzonesize=1g\n");
    place.file("binary.fio", b"\xff\xfe\0".as_slice());
    std::fs::create_dir(place.path().join("folder.d")).unwrap();
    place.file("model.toml", "model = \"sysbench-file\"\nthread = 4\n");
    let left = place.everything();
    let jobs: [(&str, &[&str]); 37] = [
        ("--rwmixread 30 --rw read", &["rwmixread", "one direction", "rw=randrw"]),
        ("--rw randrw --rwmixread 30 --rwmixwrite 60", &["rwmixread", "add up to 100"]),
        ("--rw randrw --rwmixread 101", &["rwmixread", "'101'", "0 to 100"]),
        ("--rw raedwrite", &["rw", "'raedwrite'", "randread"]),
        ("--rw trum", &["'trum'", "did you mean 'trim'"]),
        ("--iodepth 8 --ioengine sync", &["iodepth", "synchronous ioengine", "libaio"]),
        ("--iodepth 0", &["iodepth", "'0'", "1 or more"]),
        ("--ioengine mmap", &["ioengine", "'mmap'", "io_uring"]),
        ("--bs 1m --size 64k", &["size", "at least one request"]),
        ("--bs 4k --bsrange 4k-8k", &["bsrange", "beside bs"]),
        ("--bs 1000", &["bs", "'1000'", "512"]),
        ("--bs 4q", &["bs", "'4q'", "4k"]),
        ("--bssplit 4k/60:8k/60", &["bssplit", "add up to 100"]),
        ("--offset 1t", &["offset", "1.0 TiB", "inside the device"]),
        ("--offset 8m --size 1t", &["size", "1.0 TiB", "behind offset"]),
        ("--numjobs 4 --offset_increment 1g", &["offset_increment", "4 processes"]),
        ("--time_based 1", &["time_based", "runtime"]),
        ("--runtime 10y", &["runtime", "'10y'", "10 (seconds)"]),
        ("--rw read --percentage_random 50", &["percentage_random", "sequential"]),
        ("--rw read --random_distribution zipf:1.2", &["random_distribution", "sequential"]),
        ("--rw randread --random_distribution zipf:1", &["random_distribution", "zipf:THETA"]),
        ("--rw randread --stride 8k", &["stride", "random pattern"]),
        ("--rw read --stride 512", &["stride", "size of a request"]),
        ("--thinktime_blocks 4", &["thinktime_blocks", "thinktime"]),
        ("--direct 1 --buffered 1", &["buffered", "direct"]),
        ("--vary iodepht=1,2", &["'iodepht'", "did you mean 'iodepth'"]),
        ("--vary iodepth=1,1", &["iodepth", "'1'", "second time"]),
        ("--set trim_percentage=5", &["trim_percentage", "rw=trim"]),
        ("--fsync=-1", &["fsync: found '-1'", "0 or more"]),
        ("--rw randread --vary bs=4k,4096", &["--vary bs", "'4k' and '4096'", "the same"]),
        ("--bs 4k --set bs=8k", &["bs", "'8k'", "--set", "'4k'", "an option"]),
        ("--bs 4k --set blocksize=8k", &["blocksize", "'8k'", "bs '4k'"]),
        ("--bs 4k --vary bs=4k,8k", &["--vary", "bs", "one of the two"]),
        ("--rw read --vary bs=4k;blocksize=8k", &["--vary", "blocksize", "second time"]),
        ("--rw read --iodepth 4096 --numjobs 4096", &["iodepth", "1048576"]),
        ("--rw read --thinktime 10000d", &["thinktime", "365d"]),
        ("--rw read --tunable batch=1 --tunable batch=2 --schedulers pass", &["tunable", "batch=2"]),
    ];
    for (arguments, words) in jobs {
        place.fails(2, &format!("bench --target sim:small.toml {arguments}"), words);
    }
    let others: [(&str, &[&str]); 18] = [
        ("bench --rw read", &["--target", "sim:PROFILE"]),
        ("bench --target /dev/absent --rw read", &["/dev/absent", "no such device or file"]),
        ("bench --target sim:ssd9 --rw read", &["ssd9", "known"]),
        ("bench profile.toml", &["ssd9", "known"]),
        ("bench empty.toml --target sim:small.toml", &["empty.toml", "no job", "[job.NAME]"]),
        ("bench unknown.toml --target sim:small.toml", &["job 'a'", "'iodpeth'", "did you mean 'iodepth'"]),
        ("bench section.toml --target sim:small.toml", &["section.toml", "'jobs'", "did you mean 'job'"]),
        ("bench loose.fio --target sim:small.toml", &["loose.fio:1", "before any section"]),
        ("bench syntax.toml --target sim:small.toml", &["syntax.toml:2"]),
        ("bench file.fio --target sim:small.toml", &["file.fio:2: job 'a'", "zonesize", "not modelled"]),
        ("bench binary.fio --target sim:small.toml", &["binary.fio", "no UTF-8", "fio's format"]),
        ("bench folder.d --target sim:small.toml", &["folder.d", "a directory", "fio's format"]),
        ("bench --target sim:small.toml", &["no workload and no option", "--rw randread"]),
        ("bench model.toml --target sim:small.toml", &["model.toml", "'thread'", "did you mean 'threads'"]),
        ("bench sysbench-fil --target sim:small.toml", &["did you mean 'sysbench-file'"]),
        ("bench sysbench-file --target sim:small.toml", &["total_size", "device"]),
        ("bench sysbench-file --target sim:ssd1 --iodepth 4", &["parameter of the model", "'iodepth'"]),
        ("run --record a.csv", &["--record", ".parquet"]),
    ];
    for (arguments, words) in others {
        place.fails(2, arguments, words);
    }
    assert_eq!(place.everything(), left);
}

#[test]
fn options_of_fio_that_change_nothing_are_taken_with_a_note() {
    let place = place();
    let said = place.ok(
        "bench --target sim:small.toml --name a --filename=/dev/nvme0n1 --rw randread --number_ios 50 --runtime 1 --group_reporting --thread --time_based --out x",
    );
    assert!(said.err.contains("note: without effect here: filename;"), "{}", said.err);
    place.file("a.fio", "[a]\ndirectory=/mnt\nrw=randread ; reads\nnumber_ios=50\n");
    let said = place.ok("workload check a.fio");
    assert!(said.err.contains("directory"), "{}", said.err);
}

#[test]
fn a_trace_is_not_written_over_itself() {
    let place = place();
    place.ok("run --trace pgbench --requests 500 --record t.parquet --out x");
    place.fails(
        2,
        "run --trace t.parquet --record t.parquet --force --out y",
        &["t.parquet", "read and written"],
    );
}

#[test]
fn a_ramp_that_is_never_over_is_an_error() {
    let place = place();
    place.fails(
        2,
        "bench --target sim:small.toml --rw randread --number_ios 10 --ramp_time 10 --out x",
        &["ramp_time", "10.00 s", "nothing is measured"],
    );
}

#[test]
fn application_models_run_sweep_and_count_their_own_operations() {
    let place = place();
    place.ok(
        "bench --target sim:pass-60g --workload sysbench-file --set max_requests=500 --vary threads=1,4 --check --out file",
    );
    let file = results(&place, "file");
    assert_eq!(file.runs.len(), 2);
    for run in &file.runs {
        let closed = run.closed_loop.as_ref().unwrap();
        let operations = closed.operations.as_ref().unwrap();
        assert_eq!((operations.what.as_str(), operations.count), ("requests", 500));
        let (threads, journal) = (&closed.jobs[0], &closed.jobs[1]);
        // 300 reads and 200 writes, 1.5 to 1; five times after each hundred and once at the end, the last two in one.
        assert!((299..=301).contains(&threads.read.requests), "{}", threads.read.requests);
        assert_eq!((journal.name.as_str(), journal.background), ("jbd2", true));
        assert!((8..=24).contains(&journal.write.requests), "{}", journal.write.requests);
    }
    place.ok(
        "bench --target sim:pass-60g --workload sysbench-oltp-complex --set max_requests=200;threads=8;buffer_pool=16m --check --out oltp",
    );
    let oltp = &results(&place, "oltp").runs[0];
    let closed = oltp.closed_loop.as_ref().unwrap();
    assert_eq!(closed.operations.as_ref().unwrap().count, 200);
    let names: Vec<&str> = closed.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["threads", "page cleaner", "jbd2"]);
    assert!(closed.jobs[0].fairness > 0.8 && closed.jobs[0].read.requests > 200);
    let list = place.ok("workload list").out;
    for name in ["file-benchmark", "sysbench-file", "sysbench-oltp-simple", "sysbench-oltp-complex"] {
        assert!(list.contains(name), "{list}");
        assert!(place.ok(&format!("workload show {name}")).out.contains("PASS paper"));
    }
    assert!(place.ok("workload options").out.contains("Accepted without effect: randrepeat"));
}

#[test]
fn a_recorded_trace_is_what_the_device_was_issued_and_replays_elsewhere() {
    let place = place();
    let bench = "bench --target sim:small.toml --rw randrw --bs 4k --number_ios 400 --iodepth 8 --seed 7";
    place.ok(&format!("{bench} --schedulers noop,piq --record t.parquet --out x"));
    let files = place.everything();
    for name in ["t-scheduler-noop.parquet", "t-scheduler-piq.parquet"] {
        assert!(files.contains(&name.to_owned()), "{files:?}");
        let info = place.ok(&format!("trace info {name} --json")).out;
        assert!(info.contains("400"), "{info}");
    }
    place.fails(
        4,
        &format!("{bench} --schedulers noop,piq --record t.parquet --out y"),
        &["t-scheduler-noop.parquet", "--force"],
    );
    place.ok("run --trace t-scheduler-noop.parquet --device small.toml --check --out again");
    assert_eq!(results(&place, "again").runs[0].metrics.requests.completed, 400);
    // Recorded at the queue and replayed, a run is the same run.
    place.ok("run --trace pgbench --requests 3000 --record q.parquet --record-at queue --seed 7 --out first");
    place.ok("run --trace q.parquet --seed 7 --out second");
    let (first, second) = (results(&place, "first"), results(&place, "second"));
    assert_eq!(first.runs[0].metrics, second.runs[0].metrics);
}

#[test]
fn what_is_merged_is_recorded_as_one_request() {
    let place = place();
    let run = "run --trace pgbench --requests 5000 --merging full --device piq-128g --pace recorded";
    place.ok(&format!("{run} --record merged.parquet --out x"));
    place.ok(&format!("{run} --record all.parquet --record-at queue --out y"));
    let merged = results(&place, "x").runs[0].metrics.requests.merged;
    assert!(merged > 0);
    place.ok("run --trace merged.parquet --out m");
    place.ok("run --trace all.parquet --out a");
    let count = |directory| results(&place, directory).runs[0].metrics.requests.completed;
    assert_eq!((count("m"), count("a")), (5000 - merged, 5000));
}
