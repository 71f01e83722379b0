"""./dev fuzz: random modules, evaluator against backend, and the parser targets under libFuzzer, ASan and UBSan. What fails is left in build/fuzz-findings."""
import os
import pathlib
import re
import subprocess
import sys
import time

from building import build_targets, folder
from environment import install
from progress import ROOT, Failure, Step

CORPUS = ROOT / "tests" / "fuzz" / "parsers" / "corpus"
FINDINGS = ROOT / "build" / "fuzz-findings"
# What only this command needs; the rest of the project is built with GCC.
PACKAGES = ["clang-22", "libclang-rt-22-dev"]
# Targets of the whole library, which the preset fuzz leaves out: mutations of ours in the dev build. The preset asan has them, too.
WHOLE_LIBRARY = ["serialized", "artifact"]
# A file that takes longer to read, or more memory, is a finding.
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=1024"]
ASAN = "malloc_context_size=5:quarantine_size_mb=32"  # the defaults remember more than a report needs, and cost a fifth of the speed


def targets():
    return sorted(path.name for path in CORPUS.iterdir())


def parse(arguments):
    options = {"modules": 2000, "runs": 200000, "minutes": 0, "seed": 1, "max-len": 8192, "seeds": ""}
    chosen = []
    arguments = list(arguments)
    while arguments:
        argument = arguments.pop(0)
        name, equals, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and name in options:
            if not equals:
                value = arguments.pop(0) if arguments else ""
            if name == "seeds":
                if not pathlib.Path(value).is_dir():
                    raise Failure(f"--seeds takes a folder with one folder a target ({', '.join(targets())}), not '{value}'")
                options[name] = value
                continue
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


class Progress:
    """Says every so often how far libFuzzer is, from the lines that it writes itself."""
    SECONDS = 15

    def __init__(self, name, runs):
        self.name, self.runs = name, runs
        self.begin = self.told = time.monotonic()
        self.executed, self.found = 0, []

    def line(self, text):
        if match := re.match(r"#(\d+)\s.*?cov: (\d+)", text):
            self.executed = int(match.group(1))
            now = time.monotonic()
            if now - self.told >= self.SECONDS:
                self.told = now
                print(f"    {self.name}: {self.executed:,} of {self.runs:,} executions, {self.executed / (now - self.begin):,.0f} a second, "
                      f"{int(match.group(2)):,} edges reached", flush=True)
        elif match := re.match(r"stat::number_of_executed_units:\s*(\d+)", text):
            self.executed = int(match.group(1))
        elif re.search(r"^does not hold|ERROR: |SUMMARY: |runtime error:|Test unit written to", text):
            self.found.append(text.rstrip()[:300])


def fuzz_target(name, options):
    """Whether there was a finding, and how many executions"""
    work = FINDINGS / name
    grown = folder("fuzz") / "corpus" / name  # what libFuzzer adds; the corpus of the repository stays small
    for path in (work, grown):
        path.mkdir(parents=True, exist_ok=True)
    seeds = [CORPUS / name]
    if options["seeds"]:
        seeds += [path for path in [pathlib.Path(options["seeds"]) / name] if path.is_dir()]
    command = [folder("fuzz") / "bin" / f"fuzz_{name}", *LIMITS, f"-max_len={options['max-len']}", f"-runs={options['runs']}",
               f"-artifact_prefix={work}{os.sep}", f"-seed={options['seed']}", "-print_final_stats=1", grown, *seeds]
    if options["minutes"]:
        command.insert(1, f"-max_total_time={60 * options['minutes']}")
    log = FINDINGS / f"{name}.log"
    environment = dict(os.environ)
    environment.setdefault("ASAN_OPTIONS", ASAN)
    progress = Progress(name, options["runs"])
    with Step(f"parser target {name}, seed {options['seed']}; log in {log.relative_to(ROOT)}"), log.open("w") as out:
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace", env=environment) as process:
            for text in process.stderr:
                out.write(text)
                progress.line(text)
    print(f"{name}: {progress.executed:,} executions, " + (f"a finding (exit {process.returncode})" if process.returncode else "no finding"), flush=True)
    for text in progress.found:
        print(f"    {text}", flush=True)
    return bool(process.returncode), progress.executed


def fuzz_whole_library(name, options):
    """The same of a target without libFuzzer, which has no seed"""
    seeds = CORPUS / name
    rounds = max(1, options["runs"] // len(list(seeds.iterdir())))
    with Step(f"parser target {name}, {rounds:,} mutations of each seed, without sanitizers"):
        told = subprocess.run([folder("dev") / "bin" / f"fuzz_{name}", seeds, str(rounds)], capture_output=True, text=True, errors="replace")
    executed = re.match(r"(\d+) executions", told.stdout)
    executed = int(executed.group(1)) if executed else 0
    print(f"{name}: {executed:,} executions, " + (f"a finding (exit {told.returncode})\n    {told.stderr[-2000:]}" if told.returncode else "no finding"), flush=True)
    return bool(told.returncode), executed


def fuzz(arguments):
    options, chosen = parse(arguments)
    failed = 0
    if options["modules"] and not chosen:
        failed += bool(fuzz_modules(options))
    if options["runs"]:
        names = chosen or targets()
        whole = [name for name in names if name in WHOLE_LIBRARY]
        small = [name for name in names if name not in WHOLE_LIBRARY]
        if whole:
            build_targets("dev", [f"fuzz_{name}" for name in whole])
        if small:
            install(PACKAGES)
            build_targets("fuzz", [f"fuzz_{name}" for name in small])
        results = [fuzz_target(name, options) for name in small] + [fuzz_whole_library(name, options) for name in whole]
        failed += sum(found for found, _ in results)
        print(f"{len(results)} parser targets, {sum(executed for _, executed in results):,} executions, {sum(found for found, _ in results)} with a finding")
    if failed:
        print(f"findings are in {FINDINGS.relative_to(ROOT)}; `strop reduce` makes modules small", file=sys.stderr)
    return 1 if failed else 0
