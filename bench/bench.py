"""Times every case on Strop and on XLA:CPU in one process, and compares the results. The table is markdown, for docs/status.md.

A case is run until it has taken half a second, at least five times; the figure is the median. Runs of the platforms alternate, so that a
machine that slows down slows both. Exit code 1 if a result differs.
"""
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import side_by_side  # noqa: E402

arguments = side_by_side.arguments(__doc__, ("cases", dict(nargs="?", default="", help="regular expression; only cases whose name it finds")),
                                   ("--seconds", dict(type=float, default=0.5, help="how long to time each case")))

import jax  # noqa: E402
import numpy as np  # noqa: E402
from cases import CASES  # noqa: E402


def measure(runs, values):
    """{platform: result}; the times are in the runs"""
    placed = {run.platform: run.put(values) for run in runs}
    results = {run.platform: run(*placed[run.platform]) for run in runs}
    for run in runs:
        run.seconds.clear()
    begin = time.perf_counter()
    while len(runs[0].seconds) < 5 or time.perf_counter() - begin < arguments.seconds * len(runs):
        for run in runs:
            run(*placed[run.platform])
    return results


def agree(results):
    """Whether the platforms' results agree as far as float32 sums in different orders do"""
    if len(results) < 2:
        return True
    for a, b in zip(jax.tree.leaves(results["strop"]), jax.tree.leaves(results["cpu"]), strict=True):
        a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
        scale = np.abs(b).max(initial=1)
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-3, atol=1e-3 * scale, equal_nan=True):
            return False
    return True


def main():
    wrong = 0
    print("| case | Strop ms | XLA:CPU ms | ratio | Strop compile s | XLA:CPU compile s | interpreted | results |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (function, make) in CASES.items():
        if not re.search(arguments.cases, name):
            continue
        values = make()
        runs = [side_by_side.Run(platform, function, *values) for platform in arguments.platforms]
        same = agree(measure(runs, values))
        wrong += not same
        by = {run.platform: run for run in runs}
        median = {p: float(np.median(r.seconds)) * 1e3 for p, r in by.items()}

        def cell(table, platform, form):
            return format(table[platform], form) if platform in table else "-"

        ratio = f"{median['strop'] / median['cpu']:.2f}" if len(median) == 2 else "-"
        compile_seconds = {p: r.compile_seconds for p, r in by.items()}
        interpreted = by["strop"].interpreted if "strop" in by else "-"
        print(f"| {name} | {cell(median, 'strop', '.3f')} | {cell(median, 'cpu', '.3f')} | {ratio} | {cell(compile_seconds, 'strop', '.3f')} | "
              f"{cell(compile_seconds, 'cpu', '.3f')} | {interpreted} | {'-' if len(by) < 2 else 'agree' if same else 'DIFFER'} |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
