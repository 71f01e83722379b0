"""What the examples share: the same JAX function on Strop and on XLA:CPU in one process, what it cost, and how far the results are apart.

    platforms = side_by_side.platforms(__doc__)         # before the first use of jax; reads --platform strop|cpu|both
    runs = [Run(p, step, *example_arguments) for p in platforms]
    ...
    sys.exit(side_by_side.verdict(checks))
"""
import argparse
import os
import sys
import time

NAMES = {"strop": "Strop", "cpu": "XLA:CPU"}


def arguments(description, *extra):
    """Parses --platform and the example's own flags, and selects the JAX platforms; jax must not be imported before."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--platform", choices=["both", "strop", "cpu"], default="both", help="where to run; both compares (default)")
    for flag, options in extra:
        parser.add_argument(flag, **options)
    parsed = parser.parse_args()
    parsed.platforms = ["strop", "cpu"] if parsed.platform == "both" else [parsed.platform]
    os.environ["JAX_PLATFORMS"] = ",".join(parsed.platforms)
    return parsed


class Run:
    """A function compiled for one platform. Calling it runs it; compile_seconds and interpreted say what the compiler did."""

    def __init__(self, platform, function, *example):
        import jax
        self.platform, self.name = platform, NAMES[platform]
        self.device = jax.devices(platform)[0]
        example = jax.device_put(example, self.device)
        begin = time.perf_counter()
        self.compiled = jax.jit(function).lower(*example).compile()
        self.compile_seconds = time.perf_counter() - begin
        self.seconds = []

    def put(self, tree):
        import jax
        return jax.device_put(tree, self.device)

    def __call__(self, *args):
        import jax
        begin = time.perf_counter()
        result = jax.block_until_ready(self.compiled(*args))
        self.seconds.append(time.perf_counter() - begin)
        return result

    @property
    def interpreted(self):
        """How many instructions of the program have no machine code: 0 is the aim; None where the platform does not say (XLA:CPU)."""
        analysis = self.compiled.cost_analysis() or {}
        value = analysis.get("interpreted instructions")
        return None if value is None else int(value)

    def report(self):
        steps = sorted(self.seconds)
        step = f"{steps[len(steps) // 2] * 1e3:9.3f} ms" if steps else "        -"
        told = "" if self.platform != "strop" else f"   {'unknown' if self.interpreted is None else self.interpreted} interpreted instructions"
        print(f"  {self.name:8} compile {self.compile_seconds:7.3f} s   step (median of {len(steps)}) {step}{told}", flush=True)


def relative_error(got, want):
    """Largest |got - want| / max(|want|, 1e-6) over all numbers of two trees"""
    import jax
    import numpy as np
    worst = 0.0
    for a, b in zip(jax.tree_util.tree_leaves(got), jax.tree_util.tree_leaves(want), strict=True):
        a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
        if a.shape != b.shape or not np.isfinite(a).all():
            return float("inf")
        if a.size:
            worst = max(worst, float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-6))))
    return worst


class Checks:
    """Prints each check as it is made; exit_code() is 1 if one failed."""

    def __init__(self):
        self.failed = 0

    def __call__(self, what, passed):
        print(f"  {'ok    ' if passed else 'FAILED'} {what}", flush=True)
        self.failed += not passed

    def runs(self, runs):
        """Reports every run, and that Strop compiled all of it."""
        for run in runs:
            run.report()
        for run in runs:
            if run.platform == "strop":
                self(f"every instruction compiled to machine code ({run.interpreted} interpreted)", run.interpreted == 0)

    def same(self, what, results, tolerance):
        """Compares the results of two platforms, {platform: tree}."""
        if len(results) == 2:
            error = relative_error(results["strop"], results["cpu"])
            self(f"{what}: Strop and XLA:CPU differ by {error:.2e} relative, at most {tolerance:.0e} is accepted", error <= tolerance)

    def exit_code(self):
        sys.stdout.flush()
        return 1 if self.failed else 0
