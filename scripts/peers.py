#!/usr/bin/env python3
"""Times other simulators beside `planewise run`: the same trace, drives of about the same size, processor time and memory of the whole process.

    scripts/peers.py [--mqsim FOLDER] [--requests N] [--runs N] [--planewise PROGRAM]

FOLDER is a checkout of the peer's source, in which nothing is changed: it is copied, built as its own makefile says, and set up for 128 GB
behind 8 channels with pages of 4 KiB. The trace: requests of 4 to 16 KiB, 60 % of them writes, 1 ms apart on average, over 2 GB. Prints a row of a
table for each: the median of the runs. What the peers do differs (MQSim has a data cache and a host interface of its own): it is cost that is compared.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile


def trace(path, requests):
    generator, clock, pages = random.Random(1), 0.0, 2 * 10**9 // 4096
    with open(path, "w") as out:
        for _ in range(requests):
            clock += generator.expovariate(1.0)
            operation = 0 if generator.random() < 0.6 else 1
            out.write(f"{int(clock * 1e6)} 0 {8 * generator.randrange(pages)} {8 * generator.randint(1, 4)} {operation}\n")


def measure(command, folder):
    """Processor seconds and largest memory, MB, of a process."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"peers.py: {command[0]}: ended with status {status}: {errors[-300:]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def copy(source, work, name):
    folder = work / name
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".git"))
    return folder


def build(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"peers.py: {' '.join(command)} in {folder}: {done.stderr[-500:]}")


def mqsim(source, work, requests):
    folder = copy(source, work, "mqsim")
    build(["make", "-j2"], folder)
    config = (folder / "ssdconfig.xml").read_text()
    for key, value in {"Flash_Channel_Count": 8, "Chip_No_Per_Channel": 8, "Die_No_Per_Chip": 2, "Plane_No_Per_Die": 2,
                       "Block_No_Per_Plane": 2048, "Page_No_Per_Block": 64, "Page_Capacity": 4096}.items():
        config, count = re.subn(rf"<{key}>[^<]*<", f"<{key}>{value}<", config)
        if count == 0:
            sys.exit(f"peers.py: {source}/ssdconfig.xml has no {key}")
    (folder / "own.xml").write_text(config)
    ids = ",".join(map(str, range(8)))
    (folder / "workload-own.xml").write_text(f"""<?xml version="1.0" encoding="us-ascii"?>
<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Trace_Based>
<Priority_Class>HIGH</Priority_Class><Device_Level_Data_Caching_Mode>WRITE_CACHE</Device_Level_Data_Caching_Mode>
<Channel_IDs>{ids}</Channel_IDs><Chip_IDs>{ids}</Chip_IDs><Die_IDs>0,1</Die_IDs><Plane_IDs>0,1</Plane_IDs>
<Initial_Occupancy_Percentage>70</Initial_Occupancy_Percentage><File_Path>trace.txt</File_Path>
<Percentage_To_Be_Executed>100</Percentage_To_Be_Executed><Relay_Count>1</Relay_Count><Time_Unit>NANOSECOND</Time_Unit>
</IO_Flow_Parameter_Set_Trace_Based></IO_Scenario></MQSim_IO_Scenarios>
""")
    trace(folder / "trace.txt", requests)
    return "MQSim", ["./MQSim", "-i", "own.xml", "-w", "workload-own.xml"], folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mqsim", type=pathlib.Path)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--planewise", default="target/release/planewise")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        own = work / "own"
        own.mkdir()
        trace(own / "trace.txt", arguments.requests)
        command = [os.path.abspath(arguments.planewise), "run", "--trace", "trace.txt", "--format", "ssdsim", "--time-unit", "ns",
                   "--quiet", "--force", "--out", "out"]
        programs = [("Planewise", command, own)]
        if arguments.mqsim:
            programs.append(mqsim(arguments.mqsim, work, arguments.requests))
        found = {name: [] for name, *_ in programs}
        # In turns: a machine that slows down slows all of them.
        for _ in range(arguments.runs):
            for name, command, place in programs:
                found[name].append(measure(command, place))
        base = statistics.median(seconds for seconds, _ in found["Planewise"])
        print(f"| {arguments.requests} requests | processor time | of Planewise's | memory |\n|---|---|---|---|")
        for name, runs in found.items():
            seconds = statistics.median(seconds for seconds, _ in runs)
            print(f"| {name} | {seconds:.2f} s | {seconds / base:.1f} | {statistics.median(memory for _, memory in runs):.0f} MB |")


if __name__ == "__main__":
    main()
