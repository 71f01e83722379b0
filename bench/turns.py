"""Times programs of one's own on XLA:CPU and on several builds of Strop, by turns in one process.

  python bench/turns.py FILE.py [REGEX] --lib=LIB [--lib=LIB] [--seconds=1] [--threads=N]

FILE.py defines CASES, a list of (name, function, arguments); arguments are arrays. Every call is waited for. Of each platform the table has the
least time of a call in us and of compiling in ms, XLA:CPU's least time by it (above 1 Strop is faster), the greatest difference from XLA:CPU's
results by their greatest value, and whether all builds gave the same bits. Libraries of equal name are told apart by their place: a, b, c.
"""
import argparse
import importlib.util
import os
import re
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("file")
parser.add_argument("regex", nargs="?", default="")
parser.add_argument("--lib", action="append", required=True, metavar="LIB", help="a PJRT plugin; given again, another build")
parser.add_argument("--seconds", type=float, default=1.0, help="how long each case is timed, all platforms together")
parser.add_argument("--threads", type=int, help="of every platform: the process is bound to as many processors")
arguments = parser.parse_args()

builds = [chr(ord("a") + i) for i in range(len(arguments.lib))]
os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = ",".join(f"{b}:{os.path.abspath(p)}" for b, p in zip(builds, arguments.lib))
os.environ["JAX_PLATFORMS"] = ",".join(["cpu", *builds])
if arguments.threads:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])

import jax  # noqa: E402
import numpy as np  # noqa: E402

PLATFORMS = ["cpu", *builds]


def cases():
    """[(name, function, arguments)] of the file"""
    spec = importlib.util.spec_from_file_location("turns_cases", arguments.file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CASES


def compiled(platform, function, values):
    """The program, its arguments on the platform's device, and the milliseconds that compiling took"""
    device = jax.devices(platform)[0]
    placed = jax.device_put(values, device)
    with jax.default_device(device):
        lowered = jax.jit(function).lower(*placed)
        begin = time.perf_counter()
        program = lowered.compile()
        return program, placed, (time.perf_counter() - begin) * 1e3


def least(programs):
    """{platform: least time of a call in us}; batches of about 5 ms by turns, forwards and backwards"""
    best = dict.fromkeys(PLATFORMS, float("inf"))
    end = time.perf_counter() + arguments.seconds
    order = list(PLATFORMS)
    while time.perf_counter() < end:
        for platform in order:
            program, placed, _ = programs[platform]
            stop = time.perf_counter() + 0.005
            while True:
                begin = time.perf_counter()
                jax.block_until_ready(program(*placed))
                now = time.perf_counter()
                best[platform] = min(best[platform], (now - begin) * 1e6)
                if now > stop:
                    break
        order.reverse()
    return best


def difference(results, wanted):
    """The greatest difference of any element by the greatest value of its array"""
    worst = 0.0
    for a, b in zip(results, wanted, strict=True):
        if not np.issubdtype(b.dtype, np.complexfloating):
            a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(b)
        if (np.isfinite(a) != finite).any():
            return float("inf")
        if finite.any():
            worst = max(worst, float(np.abs(a - b)[finite].max() / max(np.abs(b[finite]).max(), 1e-30)))
    return worst


def main():
    means = {b: [] for b in builds}
    print(f"{'case':36}" + f"{'cpu us':>10}" + "".join(f"{b + ' us':>10}{'cpu/' + b:>8}" for b in builds) + "   compile ms  difference")
    for name, function, values in cases():
        if not re.search(arguments.regex, name):
            continue
        try:
            programs = {p: compiled(p, function, values) for p in PLATFORMS}
            results = {p: [np.asarray(x) for x in jax.tree.leaves(run(*placed))] for p, (run, placed, _) in programs.items()}
        except Exception as error:
            print(f"{name:36} {type(error).__name__}: {str(error)[:300]}")
            continue
        best = least(programs)
        same = all(x.tobytes() == y.tobytes() for b in builds[1:] for x, y in zip(results["a"], results[b], strict=True))
        worst = max(difference(results[b], results["cpu"]) for b in builds)
        line = f"{name:36}{best['cpu']:10.1f}"
        for b in builds:
            means[b].append(best["cpu"] / best[b])
            line += f"{best[b]:10.1f}{best['cpu'] / best[b]:8.2f}"
        print(line + "   " + "/".join(f"{programs[p][2]:.0f}" for p in PLATFORMS) + f"  {worst:.1e}" + ("" if same else " bits differ"), flush=True)
    if means["a"]:
        print(f"{'geometric mean':46}" + "".join(f"{'':10}{np.exp(np.log(m).mean()):8.2f}" for m in means.values()))


main()
