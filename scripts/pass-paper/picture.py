#!/usr/bin/env python3
"""docs/schedulers/pass-in-linux.svg: figure 9 with 16 threads by who decides whether a request reads or writes.

    picture.py [DIRECTORY] >docs/schedulers/pass-in-linux.svg
"""
import csv
import sys
from pathlib import Path

ORDERS = [("sysbench", "completed by all", "(sysbench itself)"), ("own", "completed by", "each thread"), ("random", "drawn", ""), ("issued", "begun by all", "(they alternate)")]
MODELS = {"sysbench": "sysbench-file completed", "issued": "sysbench-file issued"}
BARS = [("none", "", "none", "#9aa5b1"), ("mq-deadline", "", "mq-deadline", "#5b8db8"), ("planewise-pass", "none", "PASS", "#e0a458"),
        ("planewise-pass", "region", "PASS, barrier region", "#cf6f4a"), ("planewise-pass", "device", "PASS, barrier device", "#a63d40")]
LEFT, TOP, HEIGHT, GROUP, BAR = 46, 40, 180, 150, 25


def main():
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "target/pass-paper")
    found = {}
    for part in ("causes", "models"):
        for row in csv.DictReader((directory / f"{part}.tsv").open(), delimiter="\t"):
            if row["device"] == "ssd1" and row["threads"] == "16":
                found[row["what"], row["scheduler"], row["barrier"]] = (float(row["MB/s"]), float(row["turns/request"]))
    width, bottom = LEFT + GROUP * len(ORDERS), TOP + HEIGHT
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + 66}" font-family="sans-serif" font-size="11">',
             f'<rect width="{width}" height="{bottom + 66}" fill="white"/>']
    for rate in (0, 20, 40, 60):
        y = bottom - HEIGHT * rate / 65
        parts.append(f'<path d="M{LEFT} {y:.0f}H{width - 8}" stroke="#ddd"/><text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{rate}</text>')
    parts.append(f'<text x="8" y="{TOP - 22}">MB/s, and turns a request in the bars; 16 threads, ssd1, Linux 6.12; black: the model</text>')
    for place, (order, *words) in enumerate(ORDERS):
        for bar, (scheduler, barrier, _, colour) in enumerate(BARS):
            rate, turns = found[f"order {order}", scheduler, barrier]
            x, high = LEFT + 12 + place * GROUP + bar * BAR, HEIGHT * rate / 65
            parts.append(f'<rect x="{x}" y="{bottom - high:.0f}" width="{BAR - 3}" height="{high:.0f}" fill="{colour}"/>')
            top = bottom - high
            if order in MODELS:
                y = bottom - HEIGHT * found[MODELS[order], scheduler, barrier][0] / 65
                parts.append(f'<path d="M{x - 1} {y:.0f}H{x + BAR - 2}" stroke="black" stroke-width="2"/>')
                top = min(top, y)
            parts.append(f'<text x="{x + 11}" y="{top - 4:.0f}" text-anchor="middle">{rate:.0f}</text>')
            parts.append(f'<text x="{x + 11}" y="{bottom - 6}" text-anchor="middle" font-size="9" fill="white">{turns:.2f}</text>')
        for line, word in enumerate(words):
            parts.append(f'<text x="{LEFT + 10 + place * GROUP + 62}" y="{bottom + 15 + 13 * line}" text-anchor="middle">{word}</text>')
    x = LEFT
    for _, _, name, colour in BARS:
        parts.append(f'<rect x="{x}" y="{bottom + 42}" width="10" height="10" fill="{colour}"/><text x="{x + 14}" y="{bottom + 51}">{name}</text>')
        x += 30 + 7 * len(name)
    print("\n".join([*parts, "</svg>"]))


main()
