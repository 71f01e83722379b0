"""./dev optimizer: what the passes make of a folder of HLO files.

  idempotence FILES   another run changes nothing, and no group of passes is stopped by its limit of rounds
  equal FILES         the evaluator computes the same of the program before and after the passes, and sends the same to the world
                      outside, for which it makes up custom calls, feeds, channels, other devices and random numbers. Programs
                      of several partitions are not partitioned here (./dev fuzz --shardings is for that). What is too large
                      for the evaluator is cut (optimizer_sizes.py); what differs in f32 and agrees in f64 is rounding. Both
                      are said of each file
  xla FILES --out=D   XLA:CPU's own optimised modules, D/NAME.pb, by jaxlib
  counts FILES --xla=D
                      instructions and bytes touched beside XLA:CPU's, as `strop opt --stats` counts both (strop/analysis/statistics.h)
  layers              the time of the passes over a transformer's gradient of 3, 6, 12 and 24 layers, and the exponent

FILES are .hlo files or folders of them. --json=FILE keeps what was found, file by file; --max-bytes=N leaves larger files out. What strop refuses is counted
and left out. One process at a time: run it with nice beside other work."""
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import optimizer_sizes as sizes
from building import folder
from progress import Failure

STROP = folder("dev") / "bin" / "strop"
TIMEOUT = 120
RUNS = 9
MEMORY_SHARE = 0.5


class Refused(Exception):
    pass


def strop(*arguments, timeout=TIMEOUT):
    """With so many seconds of processor time, whatever else the machine does; what wants too much memory is refused before there is none."""
    def bounded():
        limit = MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (int(limit), resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CPU, (timeout, resource.RLIM_INFINITY))

    told = subprocess.run([STROP, *arguments], capture_output=True, text=True, preexec_fn=bounded)
    if told.returncode == -signal.SIGXCPU:
        raise Refused(f"longer than {timeout} s")
    if told.returncode:
        raise Refused(told.stderr.strip()[:300] or f"exit code {told.returncode}")
    return told


def parse(arguments):
    options = {"xla": "", "out": "", "json": "", "max-bytes": "3000000"}
    files = []
    for argument in arguments:
        name, equals, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--"):
            if name not in options or not equals:
                raise Failure(f"'{argument}' is none of " + ", ".join(f"--{n}=..." for n in options))
            options[name] = value
            continue
        path = Path(argument)
        found = sorted(path.rglob("*.hlo")) if path.is_dir() else [path]
        if not found or not found[0].exists():
            raise Failure(f"no HLO files at '{argument}'")
        files += found
    files = [f for f in files if f.stat().st_size <= int(options["max-bytes"])]
    return options, sorted(files, key=lambda f: (f.stat().st_size, f.name))


def keep(options, found):
    if options["json"]:
        Path(options["json"]).write_text(json.dumps(found, indent=0))


def refused_line(refused):
    return f"{len(refused)} refused" if refused else "none refused"


# ---- idempotence, equality -------------------------------------------------------------------------------------------

def idempotence(options, files):
    same, changed, refused = 0, [], []
    with tempfile.TemporaryDirectory() as place:
        again = Path(place) / "again.hlo"
        for path in files:
            try:
                once = strop("opt", path, "--explain")
            except Refused as reason:
                refused.append((path.name, str(reason)))
                continue
            again.write_text(once.stdout)
            try:
                twice = strop("opt", again, "--explain")
            except Refused as reason:
                changed.append((path.name, str(reason)))
                continue
            if once.stdout == twice.stdout and "not-settled" not in once.stderr + twice.stderr:
                same += 1
            else:
                changed.append((path.name, "changed or not settled"))
    keep(options, {"same": same, "changed": changed, "refused": refused})
    for name, reason in changed:
        print(f"{name}: {reason}")
    print(f"idempotence: {same} files come out the same again, {len(changed)} do not, {refused_line(refused)}")
    return 1 if changed else 0


# What `strop opt --compare` says of results that differ; anything else means that there are none.
DIFFERENT = "the passes change what the program computes"
# Without the pass that rounds less on purpose, that which gives rng its generator, and what makes shards of arguments.
WITHOUT = "--disable-pass=product-widening,rng-expander,sharding-propagation,spmd-partitioner"


def compare(path, timeout):
    """None where both agree, otherwise what was said."""
    try:
        strop("opt", path, "--compare", WITHOUT, timeout=timeout)
        return None
    except Refused as reason:
        return str(reason)


def told(text, other, said):
    """What a difference is: rounding is what f64 does not show. None where f64 is beyond the evaluator."""
    other.write_text(sizes.in_f64(text))
    exact = compare(other, TIMEOUT)
    if exact is None:
        return "rounding", said
    return ("different", said) if DIFFERENT in exact else None


def outcome(path, place):
    """(same | cut | rounding | different | without, what was said) of a file that the passes take."""
    said = compare(path, TIMEOUT)
    if said is None:
        return "same", ""
    text, other = path.read_text(), place / "other.hlo"
    found = told(text, other, said) if DIFFERENT in said else None
    if found:
        return found
    last = "different" if DIFFERENT in said else "without", said
    for how, smaller in sizes.smaller(text):
        other.write_text(smaller)
        again = compare(other, TIMEOUT)
        if again is None:
            if last[0] == "different":
                continue  # what differs with more elements is not told by fewer that agree
            return "cut", f"{how}; as it stands: {said}"
        if DIFFERENT in again:
            found = told(smaller, other, f"{how}: {again}")
            if found:
                return found
            last = "different", f"{how}: {again}"
    return last


TOLD = {"cut": "agrees with smaller sizes: ", "rounding": "differs in f32, agrees in f64: ", "different": "", "without": "cannot be told: "}


def equal(options, files):
    found = {"same": [], "cut": [], "rounding": [], "different": [], "without": [], "refused": []}
    with tempfile.TemporaryDirectory() as place:
        for path in files:
            try:
                strop("opt", path)
            except Refused as reason:
                found["refused"].append((path.name, str(reason)))
                continue
            what, said = outcome(path, Path(place))
            found[what].append((path.name, said))
            if what != "same":
                print(f"{path.name}: {TOLD[what]}{said}", flush=True)
    keep(options, found)
    n = {what: len(names) for what, names in found.items()}
    print(f"equal: {n['same']} files have the same results, {n['cut']} more with smaller sizes, {n['rounding']} but for rounding (the same in f64), "
          f"{n['different']} do not; {n['without']} cannot be evaluated, {refused_line(found['refused'])}")
    return 1 if found["different"] else 0


# ---- beside XLA:CPU --------------------------------------------------------------------------------------------------

# Runs in a process of its own: XLA aborts on some programs.
COMPILE = """
import sys
import jax
from jaxlib import _hlo, _jax
from jaxlib.xla_client import CompileOptions
client = jax.devices("cpu")[0].client
for line in sys.stdin:
    source, target = line.rstrip("\\n").split("\\t")
    try:
        proto = _hlo.hlo_module_from_text(open(source).read()).as_serialized_hlo_module_proto()
        program = _jax.mlir.hlo_to_stablehlo(proto)
        executable = client.compile_and_load(program, client.devices()[:1], CompileOptions())
        (module,) = executable.hlo_modules()
        open(target, "wb").write(module.as_serialized_hlo_module_proto())
        print("ok", flush=True)
    except Exception as error:
        print("refused", str(error).replace("\\n", " ")[:200], flush=True)
"""


def xla(options, files):
    if not options["out"]:
        raise Failure("xla needs --out=FOLDER")
    out = Path(options["out"])
    out.mkdir(parents=True, exist_ok=True)
    python = os.environ.get("STROP_PYTHON", sys.executable)
    counts, process = {}, None
    for path in files:
        target = out / f"{path.stem}.pb"
        if target.exists():
            continue
        if process is None or process.poll() is not None:
            process = subprocess.Popen([python, "-c", COMPILE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       env=dict(os.environ, JAX_PLATFORMS="cpu"))
        try:
            process.stdin.write(f"{path}\t{target}\n")
            process.stdin.flush()
            told = process.stdout.readline().split(" ", 1)[0].strip() or "crash"
        except BrokenPipeError:
            told = "crash"
        if told == "crash":
            process.wait()
            process = None
        counts[told] = counts.get(told, 0) + 1
    if process:
        process.stdin.close()
        process.wait()
    print("xla: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    if counts and set(counts) == {"crash"}:
        raise Failure("every program crashed: is jax there? STROP_PYTHON names a Python that has it")
    return 0


# (what, ours, theirs): the table's rows. Ours before fusion against theirs with what fusions repeat counted once; kernels and bytes both after fusion.
ROWS = [("instructions", "optimized", "instructions"), ("distinct instructions", "optimized", "distinct"), ("kernels", "fused", "kernels"),
        ("bytes touched", "fused", "bytes_touched")]


def counts(options, files):
    if not options["xla"]:
        raise Failure("counts needs --xla=FOLDER, which ./dev optimizer xla makes")
    with tempfile.TemporaryDirectory() as place:
        found, refused, absent = count(options, files, Path(place))
    keep(options, {"files": found, "refused": refused})
    if not found:
        raise Failure("no file has a module of XLA:CPU's in that folder")
    print(f"{len(found)} files; {absent} that XLA:CPU did not compile, {refused_line(refused)}\n")
    print("| count | files where ours is no more | fewer | equal | more | ours, all files | XLA:CPU's |\n|---|---|---|---|---|---|---|")
    for what, stage, key in ROWS:
        pairs = [(f["ours"][stage][key], f["xla"][key]) for f in found]
        fewer, same = sum(a < b for a, b in pairs), sum(a == b for a, b in pairs)
        share = 100 * (fewer + same) / len(pairs)
        print(f"| {what} | {share:.1f} % | {fewer} | {same} | {len(pairs) - fewer - same} | {sum(a for a, _ in pairs)} | {sum(b for _, b in pairs)} |")
    return 0


def as_pjrt_has_it(path, place):
    """XLA compiled each for arguments and results in the default layouts; a layout in the text would be work for ours alone."""
    changed = place / "default.hlo"
    try:
        changed.write_text(strop("opt", path, "--passes=default-layouts").stdout)
    except Refused:
        return path
    return changed


def count(options, files, place):
    found, refused, absent = [], [], 0
    for path in files:
        theirs = Path(options["xla"]) / f"{path.stem}.pb"
        if not theirs.exists():
            absent += 1
            continue
        try:
            ours = json.loads(strop("opt", as_pjrt_has_it(path, place), "--stats").stdout)
            other = json.loads(strop("opt", theirs, "--passes=,", "--stats").stdout)["given"]
        except Refused as reason:
            refused.append((path.name, str(reason)))
            continue
        found.append({"file": path.name, "ours": ours, "xla": other})
    return found, refused, absent


# ---- layers ----------------------------------------------------------------------------------------------------------

GRADIENT = """
import sys
import jax, jax.numpy as jnp
layers, d, f, v, t = int(sys.argv[1]), 64, 256, 128, 32
def norm(x, g): return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g
def layer(p, x):
    h = norm(x, p["g1"])
    q, k, w = (jnp.einsum("btd,dhe->bhte", h, p[n]) for n in "qkv")
    s = jnp.einsum("bhte,bhse->bhts", q, k) / 4.0
    s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e9)
    x = x + jnp.einsum("bhte,hed->btd", jnp.einsum("bhts,bhse->bhte", jax.nn.softmax(s, -1), w), p["o"])
    return x + jax.nn.gelu(norm(x, p["g2"]) @ p["a"]) @ p["b"]
def loss(p, x, y):
    h = p["e"][x]
    for one in p["layers"]: h = layer(one, h)
    return -jnp.take_along_axis(jax.nn.log_softmax(h @ p["e"].T), y[..., None], -1).mean()
z = lambda *s: jax.ShapeDtypeStruct(s, jnp.float32)
one = {"g1": z(d), "g2": z(d), "q": z(d, 4, 16), "k": z(d, 4, 16), "v": z(d, 4, 16), "o": z(4, 16, d), "a": z(d, f), "b": z(f, d)}
i = jax.ShapeDtypeStruct((2, t), jnp.int32)
print(jax.jit(jax.value_and_grad(loss)).lower({"e": z(v, d), "layers": [one] * layers}, i, i).as_text())
"""


def layers(options, files):
    """The least of several runs, each in a process of its own."""
    python = os.environ.get("STROP_PYTHON", sys.executable)
    sizes, times = [3, 6, 12, 24], []
    with tempfile.TemporaryDirectory() as place:
        for n in sizes:
            told = subprocess.run([python, "-c", GRADIENT, str(n)], capture_output=True, text=True, env=dict(os.environ, JAX_PLATFORMS="cpu"))
            if told.returncode:
                raise Failure("jax could not lower the program; STROP_PYTHON names a Python that has it\n" + told.stderr[-500:])
            path = Path(place) / f"layers_{n}.mlir"
            path.write_text(told.stdout)
            least = []  # of each pass of the pipeline: what else the machine does hits one run or another
            for _ in range(RUNS):
                told = strop("opt", path, "--timing", "--stats")
                run = [float(line.split()[0]) for line in told.stderr.splitlines() if " ms " in line]
                least = [min(pair) for pair in zip(least, run)] or run
            stats = json.loads(told.stdout)
            times.append(sum(least))
            print(f"{n:3} layers: {stats['given']['instructions']:6} instructions as given, {stats['optimized']['instructions']:6} after {times[-1]:8.1f} ms of passes, "
                  f"{stats['fused']['kernels']} kernels")
    xs, ys = [math.log(n) for n in sizes], [math.log(t) for t in times]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    exponent = sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)
    print(f"time grows with layers to the power of {exponent:.2f}")
    return 0


def optimizer(arguments):
    commands = {"idempotence": idempotence, "equal": equal, "xla": xla, "counts": counts, "layers": layers}
    if not arguments or arguments[0] not in commands:
        raise Failure(f"optimizer takes one of {', '.join(commands)}")
    if not STROP.exists():
        raise Failure(f"{STROP} is not built: ./dev build")
    options, files = parse(arguments[1:])
    if not files and arguments[0] != "layers":
        raise Failure("no files: name .hlo files or folders")
    return commands[arguments[0]](options, files)
