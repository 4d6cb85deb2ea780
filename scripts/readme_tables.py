#!/usr/bin/env python3
"""Makes the tables of README.md again: runs the command in each mark "<!-- printed by: planewise ... -->" and puts what it prints,
up to where the report is, in the place of the indented block behind the mark.

    scripts/readme_tables.py [PROGRAM]        # target/release/planewise by default; make build makes it
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- printed by: planewise ([^\n]*) -->\n\n)(?:(?: {4}[^\n]*)?\n)+")


def printed(program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, *arguments.split(), "--quiet"], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"planewise {arguments}: {done.stderr.strip()}")
    return done.stdout.split("\nReport: ")[0].strip("\n").split("\n")


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/planewise")

    def block(found):
        lines = printed(program, found.group(2))
        return found.group(1) + "".join(f"    {line}".rstrip() + "\n" for line in lines) + "\n"

    readme = ROOT / "README.md"
    readme.write_text(BLOCK.sub(block, readme.read_text()))


if __name__ == "__main__":
    main()
