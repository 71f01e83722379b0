"""./dev collectives: what programs of many devices send, beside XLA's partitioner.

  make FILES --out=D  the programs of collectives_cases.py (without FILES), or HLO files with shardings, and XLA:CPU's modules of them
  counts --out=D      bytes and number of collectives, ours beside XLA's, as `strop opt --stats` counts both (strop/analysis/collective_traffic.h): bytes that
                      leave one device, on a ring; loops as often as they run
  time --out=D        the time of our passes that partition beside that of XLA's, and for 4,096 devices: the least of several runs
  soak                repeats programs of collectives on eight devices of this machine: every run must end, and give the bits of the first

FILES are .hlo files or folders of them. --only=TEXT leaves out names without it; --json=FILE keeps what was found. STROP_PYTHON names a Python that has JAX."""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from optimizer import STROP, Refused, strop
from progress import ROOT, Failure

MOST_ABOVE = 1.2
RUNS = 5
MORE = 512
SMALL_RUNS, LARGE_RUNS = 1000, 250  # of each program, on small values and on large ones
AT_A_TIME = 40  # HLO files a process


def parse(arguments, needs_out):
    options, files = {"out": "", "only": "", "json": ""}, []
    for argument in arguments:
        name, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--"):
            path = Path(argument)
            files += sorted(path.rglob("*.hlo")) if path.is_dir() else [path]
        elif name in options and equals:
            options[name] = value
        else:
            raise Failure(f"'{argument}' is none of " + ", ".join(f"--{n}=..." for n in options))
    if not options["out"] and needs_out:
        raise Failure("collectives needs --out=FOLDER, which `make` fills")
    return options, files


def make(options, files):
    cases = Path(__file__).parent / "collectives_cases.py"
    python = os.environ.get("STROP_PYTHON", sys.executable)
    groups = [files[k:k + AT_A_TIME] for k in range(0, len(files), AT_A_TIME)] or [[]]
    for group in groups:
        subprocess.run([python, cases, options["out"], *group], check=True, stderr=subprocess.DEVNULL if files else None)
    return 0


def programs(options):
    found = sorted(p for p in Path(options["out"]).iterdir() if p.name.endswith((".mlir", ".hlo")) and options["only"] in p.name)
    if not found:
        raise Failure(f"no programs in {options['out']}: ./dev collectives make --out={options['out']}")
    return found


def as_jax_compiles(path, place):
    """JAX leaves it to the compiler how results lie of which the program says nothing; that stands beside the program."""
    if path.suffix == ".hlo":
        return path
    changed = place / "program.hlo"
    head, line, rest = strop("opt", path, "--passes=,").stdout.partition("\n")
    changed.write_text(head + ", allow_spmd_sharding_propagation_to_output={true}" + line + rest)
    return changed


def geometric(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def total(statistics):
    collectives = statistics.get("collectives", {})
    return sum(number for number, _ in collectives.values()), sum(size for _, size in collectives.values())


def compare(options, place):
    found, refused = [], []
    for path in programs(options):
        try:
            ours = json.loads(strop("opt", as_jax_compiles(path, place), "--stats").stdout)["optimized"]
            theirs = json.loads(strop("opt", path.with_name(f"{path.stem}.xla.txt"), "--passes=,", "--stats").stdout)["given"]
        except Refused as reason:
            refused.append((path.stem, str(reason)))
            continue
        found.append({"name": path.stem, "ours": total(ours), "xla": total(theirs), "by op": [s.get("collectives", {}) for s in (ours, theirs)]})
    return found, refused


def counts(options, _):
    with tempfile.TemporaryDirectory() as place:
        found, refused = compare(options, Path(place))
    if options["json"]:
        Path(options["json"]).write_text(json.dumps({"programs": found, "refused": refused}, indent=0))
    print("| program | collectives, ours | XLA's | bytes, ours | XLA's | ratio |\n|---|---|---|---|---|---|")
    ratios = []
    for f in found:
        (number, size), (number_xla, size_xla) = f["ours"], f["xla"]
        if size and size_xla:
            ratios.append(size / size_xla)
        ratio = f"{size / size_xla:.3f}" if size_xla else "1" if not size else "none of XLA's"
        print(f"| {f['name']} | {number} | {number_xla} | {size} | {size_xla} | {ratio} |")
    for name, reason in refused:
        print(f"{name}: {reason}")
    mean = geometric(ratios) if ratios else 1
    silent = sum(not f["ours"][1] and not f["xla"][1] for f in found)
    only_ours, only_xla = (sum(bool(f[a][1]) and not f[b][1] for f in found) for a, b in (("ours", "xla"), ("xla", "ours")))
    print(f"\n{len(found)} programs, {len(refused)} refused; {len(ratios)} in which both send: geometric mean {mean:.3f}, {sum(r > MOST_ABOVE for r in ratios)} above "
          f"{MOST_ABOVE}; {silent} in which none does, {only_ours} in which only ours does, {only_xla} in which only XLA's does")
    return 0


# ---- time ------------------------------------------------------------------------------------------------------------

PASSES = ("sharding-propagation", "spmd-partitioner")


def partitioning(path):
    """Seconds of our passes, the least of several runs."""
    least = math.inf
    for _ in range(RUNS):
        told = strop("opt", path, "--timing").stderr
        least = min(least, sum(float(line.split()[0]) for line in told.splitlines() if any(f" {p} " in line for p in PASSES)) / 1e3)
    return least


def on_more_devices(text, times):
    """The same program where all that it does is done `times` times: the mesh has one more axis, the largest."""
    text = re.sub(r"mhlo.num_partitions = (\d+)", lambda m: f"mhlo.num_partitions = {int(m[1]) * times}", text)
    return re.sub(r'sdy\.mesh @(\w+) = <\[', rf'sdy.mesh @\1 = <["more"={times}, ', text)


def time_(options, _):
    shares, growth = [], []
    print("| program | partitioning, ours, ms | XLA's | ratio | 512 times as many devices | ratio |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        larger = Path(place) / "larger.mlir"
        for path in programs(options):
            theirs = float(path.with_name(f"{path.stem}.seconds").read_text().split()[1])
            if path.suffix != ".mlir" or not theirs:
                continue
            larger.write_text(on_more_devices(path.read_text(), MORE))
            try:
                ours, most = partitioning(path), partitioning(larger)
            except Refused as reason:
                print(f"{path.stem}: {reason}")
                continue
            shares.append(ours / theirs)
            growth.append(most / ours)
            print(f"| {path.stem} | {1e3 * ours:.2f} | {1e3 * theirs:.2f} | {shares[-1]:.3f} | {1e3 * most:.2f} | {growth[-1]:.2f} |")
    if shares:
        print(f"\n{len(shares)} programs: geometric mean {geometric(shares):.3f} of XLA's time, at most {max(shares):.3f}; with {MORE} times as many devices "
              f"{geometric(growth):.2f} times as long, at most {max(growth):.2f}")
    return 0


def soak(*_):
    library = STROP.parents[1] / "lib" / "libstrop_pjrt.so"
    environment = dict(os.environ, STROP_PLUGIN=str(library), PYTHONPATH=str(ROOT / "python"))
    command = [os.environ.get("STROP_PYTHON", sys.executable), Path(__file__).parent / "collectives_soak.py", str(SMALL_RUNS), str(LARGE_RUNS)]
    return subprocess.run(command, env=environment).returncode


def collectives(arguments):
    commands = {"make": make, "counts": counts, "time": time_, "soak": soak}
    if not arguments or arguments[0] not in commands:
        raise Failure(f"collectives takes one of {', '.join(commands)}")
    if not STROP.exists():
        raise Failure(f"{STROP} is not built: ./dev build")
    return commands[arguments[0]](*parse(arguments[1:], arguments[0] != "soak"))
