"""./dev bench --suite=FOLDER: the side-by-side benchmark that lies beside the checkout, and docs/performance.md from what it measured.

  ./dev bench --suite=FOLDER [options of sidebyside.py]    runs FOLDER/sidebyside.py on XLA:CPU and Strop, all cases without options, and writes the document
  ./dev bench --report=FILE.json                           writes the document from a run that is there

Only a run of all cases is written. Run it on a machine that does nothing else."""
import json
import math
from pathlib import Path

from progress import ROOT, Failure

DOCUMENT = ROOT / "docs" / "performance.md"
OURS, THEIRS = "strop", "cpu"


def geometric_mean(values):
    values = [v for v in values if v and v > 0 and math.isfinite(v)]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def number(value, digits=3):
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"


def percent(value):
    return "" if value is None or not math.isfinite(value) else f"{100 * value:.0f}"


class Case:
    def __init__(self, record):
        self.name, self.group = record["name"], record["group"]
        self.sides = {p: record["platforms"].get(p, {}) for p in (THEIRS, OURS)}
        ratios = record.get("ratios", {}).get(OURS, {})
        self.ratio = ratios.get("run", {}).get("median", math.nan)
        self.compiling = ratios.get("compile_ms") or math.nan
        # Without a verdict: the baseline of the comparison, or nothing to compare.
        self.wrong = not self.sides[OURS].get("run") and record.get("kind") == "jit" or self.sides[OURS].get("verdict") == "wrong"

    def least(self, platform):
        return self.sides[platform].get("run", {}).get("min_ms", math.nan)

    def roofline(self, platform):
        return self.sides[platform].get("roofline") or math.nan


def machine_lines(machine):
    measured = machine.get("measured", {})
    gflops = ", ".join(f"{kind} {value:.0f}" for kind, value in measured.get("gflops", {}).items())
    widths = [f"{b['bytes'] / 2**20:g} MiB {b['read']:.0f}" for b in measured.get("bandwidth", []) if b["bytes"] >= 2**18]
    fresh = measured.get("fresh_pages_64MiB", {})
    return [f"- {machine.get('cpu', 'unknown')}, {machine.get('threads', '?')} threads, {measured.get('cycles_per_ns', math.nan):.2f} GHz",
            f"- arithmetic, GFLOP/s: {gflops}; {measured.get('gexp', math.nan):.1f} G exponentials a second",
            f"- reading, GB/s by footprint: {', '.join(widths)}",
            f"- touching 64 MiB of fresh pages: {fresh.get('small_ms', math.nan):.1f} ms, in huge pages {fresh.get('huge_ms', math.nan):.1f} ms"]


def summary(name, cases):
    ratios = sorted(c.ratio for c in cases if math.isfinite(c.ratio))
    slower = sum(r < 0.95 for r in ratios)
    middle = ratios[len(ratios) // 2] if ratios else math.nan
    worst = min(cases, key=lambda c: c.ratio if math.isfinite(c.ratio) else math.inf)
    return (f"| {name} | {len(cases)} | {number(geometric_mean(ratios))} | {number(middle)} | {slower} | `{worst.name}` {number(worst.ratio)} "
            f"| {percent(geometric_mean(c.roofline(OURS) for c in cases))} | {percent(geometric_mean(c.roofline(THEIRS) for c in cases))} "
            f"| {number(geometric_mean(c.compiling for c in cases))} |")


def document(data):
    cases = [Case(record) for record in data["cases"]]
    groups = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    wrong = [c.name for c in cases if c.wrong]
    faults = [c.name for c in cases if c.sides[OURS].get("page_faults")]
    versions = ", ".join(f"{name} {version}" for name, version in data.get("versions", {}).items())
    mode = "quick" if data.get("quick") else "full"
    lines = ["# Speed beside XLA:CPU", "",
             f"Written by `./dev bench --suite=FOLDER` from the run of {data.get('started', 'an unknown time')} ({mode} mode; {versions}). Both platforms run in one",
             "process, by turns, on the same inputs; ratios are XLA:CPU's time by Strop's, medians over rounds: above 1 Strop is faster. Times are each one's least.",
             "Roofline: the share of what the machine was measured to be able to do, of arithmetic or memory, whichever binds; for sorts, factorisations",
             "and sequential programs it is only a lower bound.", "",
             *machine_lines(data["machine"]), "",
             f"{len(cases)} cases: {'all results within tolerance' if not wrong else 'beyond tolerance, or failed: ' + ', '.join(wrong)}; "
             f"page faults in steady state: {'none' if not faults else ', '.join(faults)}.", "",
             "| group | cases | geometric mean | median | below 0.95 | slowest | % of roofline | XLA:CPU's | compiling |",
             "|---|---|---|---|---|---|---|---|---|"]
    lines += [summary(name, members) for name, members in groups.items()]
    lines += [summary("all", cases), ""]
    for name, members in groups.items():
        lines += [f"## {name}", "", "| case | XLA:CPU ms | Strop ms | ratio | % of roofline | XLA:CPU's | bound | compile ms, XLA:CPU | Strop | temporaries, XLA:CPU MB | Strop |",
                  "|---|---|---|---|---|---|---|---|---|---|---|"]
        for case in members:
            theirs, ours = case.sides[THEIRS], case.sides[OURS]
            lines.append(f"| {case.name} | {number(case.least(THEIRS))} | {number(case.least(OURS))} | {number(case.ratio)} | {percent(case.roofline(OURS))} "
                         f"| {percent(case.roofline(THEIRS))} | {ours.get('bound', '')} | {number(theirs.get('compile_ms'))} | {number(ours.get('compile_ms'))} "
                         f"| {number((theirs.get('temp_bytes') or 0) / 1e6)} | {number((ours.get('temp_bytes') or 0) / 1e6)} |")
        lines.append("")
    return "\n".join(lines)


def report(path):
    try:
        data = json.loads(Path(path).read_text())
        text = document(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failure(f"'{path}' is no result of sidebyside.py --json: {error}") from None
    DOCUMENT.write_text(text)
    print(f"wrote {DOCUMENT.relative_to(ROOT)} from {len(data['cases'])} cases")
    return 0
