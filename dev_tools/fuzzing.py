"""./dev fuzz: random modules, evaluator against backend, and the parser targets under libFuzzer, ASan and UBSan. What fails is left in build/fuzz-findings."""
import os
import re
import subprocess
import sys

from building import build_targets, folder
from environment import install
from progress import ROOT, Failure, Step

CORPUS = ROOT / "tests" / "fuzz" / "parsers" / "corpus"
FINDINGS = ROOT / "build" / "fuzz-findings"
# What only this command needs; the rest of the project is built with GCC.
PACKAGES = ["clang-22", "libclang-rt-22-dev"]
# A file that takes longer to read, or more memory, is a finding.
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-max_len=8192"]


def targets():
    return sorted(path.name for path in CORPUS.iterdir())


def parse(arguments):
    options = {"modules": 2000, "runs": 200000, "minutes": 0, "seed": 1}
    chosen = []
    arguments = list(arguments)
    while arguments:
        argument = arguments.pop(0)
        name, equals, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and name in options:
            if not equals:
                value = arguments.pop(0) if arguments else ""
            if not value.isdigit():
                raise Failure(f"--{name} takes a whole number, not '{value}'")
            options[name] = int(value)
        elif argument in targets():
            chosen.append(argument)
        else:
            raise Failure(f"'{argument}' is neither a flag (--{', --'.join(options)}) nor a target ({', '.join(targets())})")
    return options, chosen


def fuzz_modules(options):
    """Failures, and what was done in one line"""
    build_targets("dev", ["strop_fuzz"])
    command = [folder("dev") / "bin" / "strop_fuzz", f"--modules={options['modules']}", f"--minutes={options['minutes']}", f"--seed={options['seed']}",
               f"--out={FINDINGS / 'modules'}"]
    with Step("random modules"):
        told = subprocess.run(command, capture_output=True, text=True)
    print(told.stdout, end="")
    if told.returncode not in (0, 1):
        raise Failure(f"strop_fuzz ended with {told.returncode}: {told.stderr}")
    return told.returncode


def fuzz_target(name, options):
    work = FINDINGS / name
    grown = folder("fuzz") / "corpus" / name  # what libFuzzer adds; the corpus of the repository stays small
    for path in (work, grown):
        path.mkdir(parents=True, exist_ok=True)
    command = [folder("fuzz") / "bin" / f"fuzz_{name}", *LIMITS, f"-runs={options['runs']}", f"-artifact_prefix={work}{os.sep}", f"-seed={options['seed']}",
               "-print_final_stats=1", grown, CORPUS / name]
    if options["minutes"]:
        command.insert(1, f"-max_total_time={60 * options['minutes']}")
    with Step(f"parser target {name}"):
        told = subprocess.run(command, capture_output=True, text=True, errors="replace")
    executed = re.search(r"number_of_executed_units:\s*(\d+)", told.stderr)
    print(f"{name}: {executed.group(1) if executed else '?'} executions, " + ("a finding" if told.returncode else "no finding"), flush=True)
    if told.returncode:
        print(told.stderr[-4000:], file=sys.stderr)
    return told.returncode


def fuzz(arguments):
    options, chosen = parse(arguments)
    failed = 0
    if options["modules"] and not chosen:
        failed += bool(fuzz_modules(options))
    if options["runs"]:
        install(PACKAGES)
        names = chosen or targets()
        build_targets("fuzz", [f"fuzz_{name}" for name in names])
        failed += sum(bool(fuzz_target(name, options)) for name in names)
    if failed:
        print(f"findings are in {FINDINGS.relative_to(ROOT)}; `strop reduce` makes modules small", file=sys.stderr)
    return 1 if failed else 0
