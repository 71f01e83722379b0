"""strop reduce on large programs: a miscompile, seeded by a pass in a shared object (tests/pass_libraries), in 2,000 instructions becomes at most 10 of them in
a number of checks that is far below the number of instructions; wherever it sits, and with the same result for any number of jobs."""
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ["STROP_BUILD_DIR"])
STROP = BUILD / "bin" / "strop"
MISCOMPILE = f"--load={BUILD}/lib/passes/libmistakes.so --passes=swaps-difference"
CHECKS = {"opt": f"{STROP} opt {MISCOMPILE} --compare", "run": f"{STROP} run --random-inputs {MISCOMPILE} --compare"}
MOST_INSTRUCTIONS, MOST_CHECKS = 10, 400


def body(rng, count, shape, first, seeded):
    """`count` instructions on values of one shape, the seeded pattern about two thirds down where wanted."""
    lines, values = [], list(first)
    while len(lines) < count:
        if seeded and len(lines) > 2 * count // 3:
            a, b = rng.sample(values[-20:], 2)
            lines += [f"%seed.exp = {shape} exponential({b})", f"%seed = {shape} subtract({a}, %seed.exp)"]
            values.append("%seed")
            seeded = False
            continue
        name = f"%v{len(lines)}"
        op = rng.choice(["add", "multiply", "subtract", "maximum", "tanh", "tanh", "negate", "abs"])
        operands = [rng.choice(values[-40:]) for _ in range(1 if op in ("tanh", "negate", "abs") else 2)]
        lines.append(f"{name} = {shape} {op}({', '.join(operands)})")
        values.append(name)
    return lines, values


def flat(seed):
    rng = random.Random(seed)
    lines, values = body(rng, 1994, "f32[8,16]", ["%x", "%y"], True)
    results = rng.sample(values[:-100], 5) + [values[-1], "%seed"]
    types = ", ".join(["f32[8,16]"] * len(results))
    return "\n".join(["HloModule flat", "ENTRY %main {", "%x = f32[8,16] parameter(0)", "%y = f32[8,16] parameter(1)", *lines,
                      f"ROOT %out = ({types}) tuple({', '.join(results)})", "}"])


def loops(seed):
    """Eight loops one after the other, the mistake in the body of the sixth."""
    rng = random.Random(seed)
    out, state = ["HloModule loops"], "(s32[], f32[4,4])"
    out += [f"%more {{ %s = {state} parameter(0)", "%n = s32[] get-tuple-element(%s), index=0", "%three = s32[] constant(3)",
            "ROOT %c = pred[] compare(%n, %three), direction=LT }"]
    entry = ["%x = f32[4,4] parameter(0)", "%zero = s32[] constant(0)", f"%t0 = {state} tuple(%zero, %x)"]
    for k in range(8):
        lines, values = body(rng, 240, "f32[4,4]", ["%in"], k == 5)
        last = "%seed" if k == 5 else values[-1]
        out += [f"%body{k} {{ %s = {state} parameter(0)", "%n = s32[] get-tuple-element(%s), index=0", "%one = s32[] constant(1)",
                "%next = s32[] add(%n, %one)", "%in = f32[4,4] get-tuple-element(%s), index=1", *lines,
                f"ROOT %out = {state} tuple(%next, {last}) }}"]
        entry += [f"%w{k} = {state} while(%t{k}), condition=%more, body=%body{k}", f"%r{k} = f32[4,4] get-tuple-element(%w{k}), index=1",
                  f"%u{k} = f32[4,4] tanh(%r{k})", f"%t{k + 1} = {state} tuple(%zero, %u{k})"]
    return "\n".join([*out, "ENTRY %main {", *entry, "ROOT %result = f32[4,4] add(%u7, %x)", "}"])


def reduce(folder, text, check, *flags):
    """The reduced module's text, how many instructions it has, how many there were, and how many checks it took."""
    source, smaller = folder / "large.hlo", folder / "small.hlo"
    source.write_text(text)
    done = subprocess.run([STROP, "reduce", source, "--check", check, "-o", smaller, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    words = done.stderr.split()
    assert words[1:2] == ["of"] and "max-checks" not in done.stderr, done.stderr
    kept = subprocess.run(f"{check} {smaller}", shell=True, capture_output=True, text=True)
    assert kept.returncode == 1 and " is " in kept.stderr and ", was " in kept.stderr, kept.stderr
    return smaller.read_text(), int(words[0]), int(words[2]), int(words[5])


with tempfile.TemporaryDirectory() as name:
    for program, command in ((flat, "opt"), (loops, "opt"), (flat, "run")):
        text = program(5)
        start = time.monotonic()
        small, after, before, checks = reduce(Path(name), text, CHECKS[command], "-j", "2")
        print(f"{program.__name__}, strop {command}: {after} of {before} instructions after {checks} checks, {time.monotonic() - start:.1f} s")
        assert before >= 1900 and after <= MOST_INSTRUCTIONS and checks <= MOST_CHECKS, small
        if (program, command) == (flat, "opt"):
            assert reduce(Path(name), text, CHECKS[command], "-j", "1")[0] == small, "the result depends on the number of jobs"
sys.exit(0)
