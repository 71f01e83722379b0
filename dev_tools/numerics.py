"""./dev numerics: how exact every elementary and special function is, on Strop (compiled and interpreted) and on XLA:CPU, against multi-precision arithmetic.

    ./dev numerics tanh power            these, in all types, as a table
    ./dev numerics --types=float32 exp   in one type
    ./dev numerics --quick               few samples of everything: half a minute
    ./dev numerics --write               everything, and docs/numerics.md anew

Exit code 1 if a bound (numerics_cases.py) is exceeded, a special value is wrong in a real function, or Strop is less exact than XLA:CPU where that is more
than one ULP.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "numerics.md"

HEADER = """# Numerics
Written by `./dev numerics --write`; `./dev numerics OP` repeats a row. The error of a result is its distance from the exact value in units of the last place of
the type (ULP; for subnormal results their own spacing), the largest of all samples. Oracle: MPFR, MPC, mpmath at {precision} bits and more.

- f16 and bf16: all 65,536 arguments of the functions of one argument (of some special functions a sample). Others: all exponents with random mantissas, subnormals, zeros, infinities, a dense
  sample where the function is interesting, neighbours of hard points (multiples of pi/2, ends of ranges, places where formulas change).
- Special results: NaN, infinities, zeros and their signs, and subnormals, as IEEE 754 and C have them. A count is of samples; "flushed to zero": a subnormal
  result (or argument) was treated as zero.
- Complex functions: the larger of the errors of the two parts, each in ULPs of that part; in brackets in ULPs of the larger part. Special values against C's Annex G
  as MPC has it.
- Machine code for a vector and for a scalar is the same formula; results do not depend on the number of threads (`tests/e2e/numerics_test.py`). Loops over states of up to two vectors sum
  polynomials by pairs, since they wait for them: other last bits, within 0.01 ulp of the bounds of `strop/cpu/math_test.cc`.
- "Strop" is the op itself (`strop run`), "JAX on Strop" what JAX sends instead of it: its client turns several ops into formulas before any plugin sees them,
  among them the special functions and exp, log, log1p, sqrt of complex numbers. "interpreter" is `strop run --interpret`.

"""


def evaluate(function, arguments, platform):
    import jax
    import numpy as np

    device = jax.devices(platform)[0]
    return np.asarray(jax.jit(function)(*jax.device_put(arguments, device)))


def run_op(case, arguments, *flags):
    """By `strop run`, the op as it stands (JAX's client rewrites several into formulas before a plugin sees them); None if there is none"""
    import numpy as np

    if case.op.startswith("."):
        return None
    names = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "complex<f32>", "complex128": "complex<f64>"}
    types = [f"tensor<{len(a)}x{names[a.dtype.name]}>" for a in arguments]
    result = types[0].replace("complex<", "").replace(">>", ">") if case.name == "abs" else types[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.mlir").write_text(case.text(types, result))
        stored = [a.view("V2") if a.dtype.name == "bfloat16" else a for a in arguments]
        np.savez(folder / "in.npz", **{f"arg{n}": a for n, a in enumerate(stored)})
        command = [Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop", "run", folder / "program.mlir", f"--in={folder / 'in.npz'}",
                   f"--out={folder / 'out.npz'}", *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{case.op} of {types[0]}: {done.stderr.strip()}")
        with np.load(folder / "out.npz") as out:
            value = out[out.files[0]]
        return value.view(arguments[0].dtype) if value.dtype.kind == "V" else value


def exact_values(case, arguments):
    import gmpy2
    import numpy as np

    if np.iscomplexobj(arguments[0]):
        columns = [[gmpy2.mpc(complex(v)) for v in a] for a in arguments]
    else:
        columns = [[gmpy2.mpfr(v) for v in a.astype(np.float64).tolist()] for a in arguments]
    return [case.exact(*row) for row in zip(*columns)]


def judge(got, exact, part):
    """A Finding, and for complex results the error by norm"""
    import numpy as np
    import numerics_oracle as oracle

    limit = oracle.FORMATS[part][2]
    import gmpy2
    if any(isinstance(v, gmpy2.mpc) for v in exact):
        parts = [None if v is None else (v.real, v.imag) for v in exact]
        real, imaginary = (oracle.references([p and p[n] for p in parts], limit) for n in (0, 1))
        judged = []
        for g in got:
            g = np.asarray(g)
            finding = oracle.measure(g.real, real, part).merge(oracle.measure(g.imag, imaginary, part))
            judged.append((finding, oracle.norm_error(g, real, imaginary, part)))
        return judged
    reference = oracle.references(exact, limit)
    return [(oracle.measure(g, reference, part), None) for g in got]


def run_case(case, type_name, quick):
    """(arguments, [(Finding, norm) of the op on Strop, of JAX on Strop, of XLA:CPU, of the interpreter]); where there is no such op, JAX's stands for it"""
    import numerics_cases as cases

    count = max(400, case.count // 16) if quick else case.count
    arguments = cases.arguments_of(case, type_name, count)
    through_jax = evaluate(case.function, arguments, "strop")
    compiled, interpreted = run_op(case, arguments), run_op(case, arguments, "--interpret")
    got = [through_jax if compiled is None else compiled, through_jax, evaluate(case.function, arguments, "cpu"),
           through_jax if interpreted is None else interpreted]
    part = {"complex64": "float32", "complex128": "float64"}.get(type_name, type_name)
    return arguments, judge(got, exact_values(case, arguments), part)


def text_of(arguments, index):
    return ", ".join(f"{a[index]:.9g}" if a.dtype.kind != "c" else f"{a[index]:.17g}" for a in arguments)


def figure(judged):
    finding, norm = judged
    number = f"{finding.ulp:.3g}" if finding.ulp < 1e4 else f"{finding.ulp:.1e}"
    return number + (f" ({norm:.2g})" if norm is not None else "")


def special_text(finding, arguments):
    return "; ".join(f"{count} {what} (at {text_of(arguments, first)})" for what, (count, first) in sorted(finding.wrong.items()))


def complaints(case, type_name, judged):
    """What is not as it must be"""
    wide = {"float32": 0, "float64": 1, "complex64": 0, "complex128": 1}.get(type_name)
    bound = case.half if wide is None else case.bounds[wide] if case.bounds else None
    is_complex = type_name.startswith("complex")
    xla, told = judged[2][0], []
    for who, (finding, _) in zip(("op", "JAX"), judged):
        if bound is not None and finding.ulp > bound and (who == "op" or not is_complex):
            told.append(f"{who}: {finding.ulp:.3g} ulp, the bound is {bound}")
        if finding.ulp > 1 and finding.ulp > 1.05 * xla.ulp:
            told.append(f"{who}: {finding.ulp:.3g} ulp, XLA:CPU {xla.ulp:.3g}")
        worse = {what for what, (count, _) in finding.wrong.items() if count > xla.wrong.get(what, (0,))[0]}
        if worse or (finding.wrong and case.bounds and not is_complex):
            told.append(f"{who}: special values")
    return told


def table(cases, options, tell):
    """Rows of text, and complaints"""
    rows, bad = [], []
    for case in cases:
        for type_name in case.types:
            if options.types and type_name not in options.types:
                continue
            arguments, judged = run_case(case, type_name, options.quick)
            op, jax, xla = (judged[n][0] for n in range(3))
            row = [case.name, type_name, *map(figure, judged), text_of(arguments, op.at),
                   special_text(op, arguments), special_text(jax, arguments), special_text(xla, arguments)]
            rows.append(row)
            wrong = complaints(case, type_name, judged)
            bad += [f"{case.name} {type_name}: {w}" for w in wrong]
            tell(row, wrong)
    return rows, bad


def line(row, told, verbose):
    text = f"{row[0]:22s} {row[1]:10s} op {row[2]:>14s}  jax {row[3]:>14s}  xla:cpu {row[4]:>16s}  interpreter {row[5]:>12s}  at {row[6]}"
    for who, specials in zip(("op", "jax", "XLA:CPU"), row[7:]):
        if specials and (verbose or who != "XLA:CPU"):
            text += f"  {who} [{specials}]"
    return text + ("  <-- " + "; ".join(told) if told else "")


def document(sections):
    import numerics_oracle as oracle

    text = HEADER.format(precision=oracle.PRECISION)
    for title, rows in sections:
        text += f"## {title}\n| op | type | Strop | JAX on Strop | XLA:CPU | interpreter | Strop's largest at | wrong special results of Strop | of JAX on Strop | of XLA:CPU |\n"
        text += "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        text += "".join("| " + " | ".join(row) + " |\n" for row in rows) + "\n"
    return text.rstrip("\n") + "\n"


def measure_all(options):
    import jax
    import numpy as np

    np.seterr(all="ignore")  # NaN, infinities and their conversions are what this is about

    jax.config.update("jax_enable_x64", True)
    import numerics_cases as cases
    import numerics_oracle as oracle

    oracle.use_precision()
    sections, bad, known = [], [], set()
    for title, rows in (("Elementary functions", cases.real_cases()), ("Special functions", cases.special_cases()), ("Complex functions", cases.complex_cases())):
        known |= {case.name for case in rows}
        rows = [case for case in rows if not options.ops or case.name in options.ops]
        written, wrong = table(rows, options, lambda row, told: print(line(row, told, options.verbose), flush=True))
        sections.append((title, written))
        bad += wrong
    unknown = set(options.ops) - known
    if unknown:
        print(f"no such function: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}", file=sys.stderr)
        return 2
    if options.write:
        DOCUMENT.write_text(document(sections))
    if bad:
        print(f"\n{len(bad)} not as they must be:", *bad, sep="\n  ")
    return 1 if bad else 0


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="./dev numerics", description=__doc__.split("\n")[0])
    parser.add_argument("ops", nargs="*", help="functions, by HLO's names; all if none is given")
    parser.add_argument("--types", type=lambda s: s.split(","), default=[], help="only these, such as float32,complex64")
    parser.add_argument("--quick", action="store_true", help="few samples")
    parser.add_argument("--write", action="store_true", help="writes docs/numerics.md")
    parser.add_argument("--verbose", action="store_true", help="also shows XLA:CPU's wrong special results")
    options = parser.parse_args(arguments)
    if options.write and (options.ops or options.types or options.quick):
        parser.error("--write is for everything: no ops, --types or --quick with it")
    return options


def numerics(arguments):
    """The command: builds, then runs this file in the private Python environment"""
    from building import DEFAULT_PRESET, build_targets, folder
    from demo import plugin_environment
    from environment import PYTHON, setup
    from progress import run

    options_of(arguments)
    setup()
    build_targets(DEFAULT_PRESET)
    return run([PYTHON, __file__, *arguments], env=dict(plugin_environment(), STROP_BUILD_DIR=str(folder(DEFAULT_PRESET))))


def main():
    os.environ["JAX_PLATFORMS"] = "strop,cpu"
    options = options_of(sys.argv[1:])
    missing = []
    for module in ("jax", "gmpy2", "mpmath"):
        try:
            __import__(module)
        except ImportError:
            missing.append(module)
    if missing:
        print(f"numerics: {', '.join(missing)} cannot be imported; ./dev setup installs what dev_tools/requirements.txt lists", file=sys.stderr)
        return 77
    return measure_all(options)


if __name__ == "__main__":
    sys.exit(main())
