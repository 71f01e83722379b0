"""./dev fmt and ./dev check."""
import json
import subprocess

import check as rules
from building import DEFAULT_PRESET, folder
from checks import format as clang_format
from environment import install, setup
from progress import ROOT, Failure, Step, run


def fmt(arguments):
    setup()
    run([clang_format.program(), "-i", *clang_format.sources(ROOT)], "clang-format failed")
    return 0


def changed_sources():
    """.cc files that differ from main, known to the compilation database"""
    base = subprocess.run(["git", "merge-base", "HEAD", "main"], cwd=ROOT, capture_output=True, text=True).stdout.strip() or "HEAD"
    diff = subprocess.run(["git", "diff", "--name-only", base], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    database = folder(DEFAULT_PRESET) / "compile_commands.json"
    if not database.is_file():
        raise Failure("clang-tidy needs a configured build: ./dev build")
    known = {entry["file"] for entry in json.loads(database.read_text())}
    return [f for f in diff if f.endswith(".cc") and str(ROOT / f) in known]


def check(arguments):
    if any(a != "--tidy" for a in arguments):
        raise Failure("check takes --tidy only")
    code = rules.run(rules.CHECKS)
    if arguments:
        install(["clang-tidy-22"])
        sources = changed_sources()
        if sources:
            with Step(f"clang-tidy over {len(sources)} changed files"):
                code |= run(["clang-tidy-22", "--quiet", "-p", folder(DEFAULT_PRESET), *sources])
    return 1 if code == 1 else 0
