#!/usr/bin/env python3
"""The tables of docs/schedulers/pass-in-linux.md from the .tsv of scripts/pass-paper.sh.

    tables.py [DIRECTORY]
"""
import csv
import sys
from pathlib import Path

COLUMNS = ["none", "mq-deadline", "kyber", "bfq", "pass none", "pass region", "pass device"]
HEAD = ["none", "mq-deadline", "kyber", "bfq", "PASS: none", "region", "device"]
OTHERS = COLUMNS[:4]


def read(directory, part):
    path = directory / f"{part}.tsv"
    if not path.exists():
        return []
    rows = list(csv.DictReader(path.open(), delimiter="\t"))
    for row in rows:
        row["column"] = f"pass {row['barrier']}" if row["scheduler"] == "planewise-pass" else row["scheduler"]
    return rows


def pick(rows, metric, **wanted):
    """Means over the seeds, by column."""
    found = {}
    for row in rows:
        if all(row[key.replace("_", " ")] == value for key, value in wanted.items()) and row[metric]:
            found.setdefault(row["column"], []).append(float(row[metric]))
    return {column: sum(values) / len(values) for column, values in found.items()}


def widest(rows, metric, *keys):
    """The most that seeds differ, over their mean."""
    groups = {}
    for row in rows:
        if row[metric]:
            groups.setdefault((row["column"], *(row[key] for key in keys)), []).append(float(row[metric]))
    return max(((max(v) - min(v)) / (sum(v) / len(v)) for v in groups.values() if len(v) > 1), default=0)


def line(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def head(*cells):
    print()
    line(*cells)
    print("|" + "---|" * len(cells))


def cells(found, form, columns=COLUMNS):
    return [form.format(found[column]) if column in found else "–" for column in columns]


def over_best(found, column):
    if column not in found:
        return "–"
    return f"{found[column] / max(found[other] for other in OTHERS if other in found):.2f}"


def main():
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "target/pass-paper")
    models, table2, figure8, figure9, figure10, causes, erases = (
        read(directory, part) for part in ("models", "table2", "figure8", "figure9", "figure10", "causes", "erases"))

    print("## figure 9, MB/s: kernel, then model")
    head("threads", "", *HEAD)
    for threads in "1 2 4 8 16 32 64".split():
        line(threads, "kernel, direct", *cells(pick(figure9, "MB/s", threads=threads, mode="direct"), "{:.1f}"))
        line("", "kernel, buffered", *cells(pick(figure9, "MB/s", threads=threads, mode="buffered"), "{:.1f}"))
        line("", "model", *cells(pick(models, "MB/s", what="sysbench-file", threads=threads), "{:.1f}"))
    print("seeds differ by at most", f"{widest(figure9, 'MB/s', 'threads', 'mode'):.3f}")

    print("\n## PASS over the best of the other four")
    head("threads", "published", "kernel: none", "region", "device", "model: none", "region", "device")
    for threads, published in (("1", "about 1"), ("2", "about 1"), ("4", "–"), ("8", "–"), ("16", "1.37"), ("32", "1.42"), ("64", "–")):
        kernel, model = pick(figure9, "MB/s", threads=threads, mode="direct"), pick(models, "MB/s", what="sysbench-file", threads=threads)
        line(threads, published, *(over_best(found, column) for found in (kernel, model) for column in COLUMNS[4:]))

    print("\n## turns a request")
    head("threads", "", *HEAD)
    for threads in ("4", "16", "64"):
        line(threads, "kernel", *cells(pick(figure9, "turns/request", threads=threads, mode="direct"), "{:.2f}"))
        line("", "model", *cells(pick(models, "turns/request", what="sysbench-file", threads=threads), "{:.2f}"))

    print("\n## table 2, 2^20 bytes/s")
    head("", *HEAD)
    for mode in ("direct", "sync", "buffered"):
        line(f"kernel, {mode}", *cells(pick(table2, "2^20 bytes/s", mode=mode), "{:.2f}"))
    line("model", *cells(pick(models, "2^20 bytes/s", what="file-benchmark", device="ssd1"), "{:.2f}"))
    head("", *HEAD)
    for what in ("mean depth", "mean response ms", "deviation ms", "turns/request"):
        for mode in ("direct", "sync", "buffered"):
            line(f"{what}, {mode}", *cells(pick(table2, what, mode=mode), "{:.2f}"))
    print("seeds differ by at most", f"{widest(table2, 'MB/s', 'mode'):.4f}")

    print("\n## figure 8")
    head("drive", *HEAD, "PASS over the best other: none", "region", "device", "model: none", "region", "device")
    sums = {}
    for number in range(1, 7):
        kernel = pick(figure8, "2^20 bytes/s", device=f"ssd{number}")
        model = pick(models, "2^20 bytes/s", what="file-benchmark", device=f"ssd{number}")
        if not kernel:
            continue
        gains = [over_best(found, column) for found in (kernel, model) for column in COLUMNS[4:]]
        for place, gain in enumerate(gains):
            sums.setdefault(place, []).append(float(gain))
        line(f"`ssd{number}`", *cells(kernel, "{:.1f}"), *gains)
    line("mean", *[""] * 7, *(f"{sum(v) / len(v):.2f}" for v in sums.values()))
    print("seeds differ by at most", f"{widest(figure8, 'MB/s', 'device'):.4f}")
    few = [COLUMNS[0], COLUMNS[1], *COLUMNS[4:]]
    for what in ("figure 8", "figure 8 drawn"):
        sums = {}
        # The model draws.
        kinds = ["PASS over the best other", "model"] if what.endswith("drawn") else ["PASS over the best other"]
        head(f"{what}, drains", "none", "mq-deadline", "PASS: none", "region", "device", *(cell for kind in kinds for cell in (f"{kind}: none", "region", "device")))
        for number in range(1, 7):
            device = f"ssd{number}:processor.drains_to_turn=true"
            found = pick(causes, "2^20 bytes/s", what=what, device=device)
            model = pick(models, "2^20 bytes/s", what="file-benchmark", device=device)
            if len(found) < 5:
                continue
            gains = [over_best(of, column) for of in (found, model)[:len(kinds)] for column in COLUMNS[4:]]
            for place, gain in enumerate(gains):
                sums.setdefault(place, []).append(float(gain))
            line(f"`ssd{number}`", *cells(found, "{:.1f}", few), *gains)
        line("mean", *[""] * 5, *(f"{sum(v) / len(v):.2f}" for v in sums.values()))

    print("\n## figure 10, transactions/s")
    for what in ("simple", "complex"):
        head(what, "", *HEAD, "PASS over the best other: none", "region", "device")
        for threads in ("1", "4", "16", "64"):
            kernel = pick(figure10, "transactions/s", what=what, threads=threads)
            model = pick(models, "transactions/s", what=f"sysbench-oltp-{what}", threads=threads)
            for name, found in (("kernel", kernel), ("model", model)):
                if found:
                    line(threads, name, *cells(found, "{:.0f}" if what == "simple" else "{:.1f}"), *(over_best(found, column) for column in COLUMNS[4:]))
        print("seeds differ by at most", f"{widest([row for row in figure10 if row['what'] == what], 'transactions/s', 'threads'):.3f}")

    def cause(label, of=causes, **wanted):
        rates, turns = (pick(of, metric, **wanted) for metric in ("MB/s", "turns/request"))
        text = [f"{rates[column]:.1f} ({turns[column]:.2f})" if column in rates else "–" for column in few]
        best, others = max((rates[column] for column in COLUMNS[4:] if column in rates), default=0), [rates[column] for column in few[:2] if column in rates]
        line(*label, *text, f"{best / max(others):.2f}" if others else "–")

    few_head = ["none", "mq-deadline", "PASS: none", "region", "device", "the best PASS over the best other"]
    print("\n## orders, MB/s (turns a request)")
    head("threads", "order", *few_head)
    for threads in ("16", "64"):
        for order in ("sysbench", "completed", "own", "random", "issued"):
            cause((threads, "*sysbench's program*" if order == "sysbench" else order), what=f"order {order}", device="ssd1", threads=threads)
        for order in ("completed", "issued"):
            cause((threads, f"*model*, {order}"), models, what=f"sysbench-file {order}", device="ssd1", threads=threads)

    names = {"ssd1": "`ssd1`", "ssd1:interface.command_queue=ncq:1": "1 tag", "ssd1:interface.command_queue=ncq:8": "8 tags",
             "ssd1:processor.drains_to_turn=true": "empties its data path to turn", "ssd1:processor.turn_ns=0": "turns are free"}
    print("\n## drives, MB/s (turns a request)")
    head("drive", "threads", "order", *few_head)
    for device in names:
        for threads in ("16", "64"):
            for order in ("sysbench", "issued"):
                if pick(causes, "MB/s", what=f"order {order}", device=device, threads=threads):
                    cause((names[device], threads, order), what=f"order {order}", device=device, threads=threads)
                counts = "completed" if order == "sysbench" else order
                if pick(models, "MB/s", what=f"sysbench-file {counts}", device=device, threads=threads):
                    cause((names[device], threads, f"*model*, {counts}"), models, what=f"sysbench-file {counts}", device=device, threads=threads)

    print("\n## what else is not it, MB/s (turns a request)")
    head("changed", "threads", "order", *few_head)
    for changed in ("no fsync", "files packed"):
        for threads in ("16", "64"):
            for order in ("sysbench", "issued"):
                cause((changed, threads, order), what=f"order {order} and {changed}", device="ssd1", threads=threads)

    print("\n## table 2, causes, MB/s (turns a request)")
    head("drive", "reads and writes", *few_head)
    for device in names:
        for what, name in (("table 2", "in turn"), ("table 2 drawn", "drawn"), ("table 2 and pass_over 0", "in turn, `pass_over` 0")):
            if pick(causes, "MB/s", what=what, device=device):
                cause((names[device], name), what=what, device=device)
            if what == "table 2 drawn" and pick(models, "MB/s", what="file-benchmark", device=device):
                cause((names[device], "*model*, drawn"), models, what="file-benchmark", device=device)

    print("\n## erases, over none")
    head("trace of", "allocation", "", *["none", "mq-deadline", "kyber", "bfq", "PASS: none", "region", "device"])
    traces = ["none", "mq-deadline", "kyber", "bfq", "planewise-pass", "planewise-pass-region", "planewise-pass-device"]
    for what in ("file", "oltp"):
        for allocation in ("cwdp", "concatenated"):
            by = {row["scheduler"]: row for row in erases if row["what"] == "replay" and row["trace of"] == what and row["allocation"] == allocation}
            if len(by) == len(traces):
                for metric in ("pages written", "erases", "write amplification"):
                    line(what, allocation, metric, by["none"][metric], *(f"{float(by[trace][metric]) / float(by['none'][metric]):.3f}" for trace in traces[1:]))


main()
