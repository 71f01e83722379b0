#!/usr/bin/env python3
"""Checks the house rules: check.py [layers|sizes|readmes|names|snippets|format ...], all without arguments. Exit 0, 1, or 77 where a tool is missing."""
import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKS = ["layers", "sizes", "readmes", "names", "snippets", "format"]


def run(names):
    failed = skipped = 0
    for name in names:
        errors, warnings = importlib.import_module(f"checks.{name}").check(ROOT)
        for line in warnings:
            print(f"  warning: {line}")
        for line in errors or []:
            print(f"  error: {line}")
        skipped += errors is None
        failed += bool(errors)
        print(f"check {name}: " + ("skipped" if errors is None else f"{len(errors)} errors" if errors else "ok"), flush=True)
    return 1 if failed else 77 if skipped else 0


if __name__ == "__main__":
    wanted = sys.argv[1:] or CHECKS
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown:
        sys.exit(f"check.py: no check '{unknown[0]}'; there are: {', '.join(CHECKS)}")
    sys.exit(run(wanted))
