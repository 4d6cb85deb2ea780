//! `planewise-tracepoints FILE`: tells the simulator's policies what the modules' tracepoints recorded. 0 where every answer is the same.

use planewise_kernel_core::tracepoints::replay;
use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path] = arguments.as_slice() else {
        eprintln!(
            "planewise-tracepoints: one argument: the text of /sys/kernel/tracing/trace with the events of a module"
        );
        return ExitCode::from(2);
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("planewise-tracepoints: {path}: {error}");
            return ExitCode::from(2);
        }
    };
    match replay(&mut BufReader::new(file)) {
        Ok(replayed) if replayed.dispatched > 0 => {
            println!("{path}: the simulator's policies answer the same: {replayed:?}");
            ExitCode::SUCCESS
        }
        Ok(_) => {
            eprintln!(
                "planewise-tracepoints: {path}: no request was dispatched: enable the events before the scheduler is set"
            );
            ExitCode::from(2)
        }
        Err(difference) => {
            eprintln!("planewise-tracepoints: {path}: {difference}");
            ExitCode::FAILURE
        }
    }
}
