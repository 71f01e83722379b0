"""The functions that ./dev numerics measures: how JAX calls each, what it is exactly, where it is interesting, and the bounds (ULP) that must hold.

Bounds are for f32 and f64; in f16 and bf16, which are computed in f32, `half` must hold. For complex functions the bounds are for each part, of the op
itself. None: the function has no bound (it is ill-conditioned near its zeros, and JAX sends its own formula), but must not be less exact than on XLA:CPU.
"""
from dataclasses import dataclass

import gmpy2
import mpmath
import numerics_oracle as oracle
import numerics_samples as samples
from jax import lax

ALL, WIDE, COMPLEX = ("float16", "bfloat16", "float32", "float64"), ("float32", "float64"), ("complex64", "complex128")


@dataclass
class Case:
    name: str
    function: object
    exact: object
    interesting: object          # a range, or one for each argument
    bounds: tuple = (2.0, 2.0)   # for float32 and float64
    half: float = 0.52
    hard: tuple = ()
    types: tuple = ALL
    count: int = 16000
    arguments: object = None     # how to make them, if not as usual
    op: str = ""                 # StableHLO's or CHLO's; without a dialect JAX's formula is all there is

    def text(self, types, result):
        """A program of the op alone"""
        names = ", ".join(f"%{n}" for n in range(len(types)))
        parameters = ", ".join(f"%{n}: {t}" for n, t in enumerate(types))
        return (f"func.func @main({parameters}) -> {result} {{\n"
                f"  %r = \"{self.op}\"({names}) : ({', '.join(types)}) -> {result}\n  return %r : {result}\n}}\n")


def row(op, function, exact, *interesting, **more):
    """A Case named as HLO names the op"""
    return Case(op.partition(".")[2], function, exact, interesting[0] if len(interesting) < 2 else list(interesting), op=op, **more)


def real_cases():
    g = gmpy2
    return [
        row("stablehlo.exponential", lax.exp, g.exp, (-104, 90), hard=(-708, -745)),
        row("stablehlo.exponential_minus_one", lax.expm1, g.expm1, (-3, 3)),
        row("stablehlo.log", lax.log, g.log, (0, 3)),
        row("stablehlo.log_plus_one", lax.log1p, g.log1p, (-1, 3)),
        row("stablehlo.logistic", lax.logistic, oracle.logistic, (-104, 40)),
        row("stablehlo.sqrt", lax.sqrt, g.sqrt, (0, 3), bounds=(0.5, 0.5), half=0.5),
        row("stablehlo.rsqrt", lax.rsqrt, oracle.rsqrt, (0, 3)),
        row("stablehlo.cbrt", lax.cbrt, g.cbrt, (-3, 3)),
        row("stablehlo.tanh", lax.tanh, g.tanh, (-10, 10)),
        row("chlo.sinh", lax.sinh, g.sinh, (-3, 3)),
        row("chlo.cosh", lax.cosh, g.cosh, (-3, 3)),
        row("stablehlo.sine", lax.sin, g.sin, (-30, 30)),
        row("stablehlo.cosine", lax.cos, g.cos, (-30, 30)),
        row("stablehlo.tan", lax.tan, g.tan, (-30, 30)),
        row("chlo.asin", lax.asin, g.asin, (-1, 1)),
        row("chlo.acos", lax.acos, g.acos, (-1, 1)),
        row("chlo.atan", lax.atan, g.atan, (-3, 3)),
        row("chlo.asinh", lax.asinh, g.asinh, (-3, 3)),
        row("chlo.acosh", lax.acosh, g.acosh, (1, 3)),
        row("chlo.atanh", lax.atanh, g.atanh, (-1, 1)),
        row("stablehlo.power", lax.pow, lambda x, y: x**y, None, arguments=samples.powers),
        row("stablehlo.atan2", lax.atan2, g.atan2, (-3, 3), (-3, 3)),
        row("stablehlo.remainder", lax.rem, g.fmod, (-100, 100), (-7, 7), bounds=(0, 0), half=0),
        row("chlo.erf", lax.erf, g.erf, (-5, 5)),
    ]


def special_cases():
    g, m, odd = gmpy2, oracle.by_mpmath, oracle.zero_kept
    two = {"types": WIDE, "count": 1000, "arguments": ranges}
    return [
        row("chlo.erfc", lax.erfc, g.erfc, (-6, 28), bounds=None),
        row("chlo.erf_inv", lax.erf_inv, m(odd(oracle.erf_inv)), (-1, 1), bounds=None, count=2000),
        row("chlo.lgamma", lax.lgamma, oracle.lgamma, (-10, 30), bounds=None, half=None),
        row("chlo.digamma", lax.digamma, oracle.digamma, (-10, 30), bounds=None, half=None, count=4000),
        row(".bessel_i0e", lax.bessel_i0e, m(oracle.bessel_e(0)), (-40, 40), bounds=None, count=1000),
        row("chlo.bessel_i1e", lax.bessel_i1e, m(odd(oracle.bessel_e(1))), (-40, 40), bounds=None, count=1000),
        row(".igamma", lax.igamma, m(oracle.igamma), (0.01, 30), (0.01, 40), bounds=None, **two),
        row(".igammac", lax.igammac, m(oracle.igammac), (0.01, 30), (0.01, 40), bounds=None, **two),
        row("chlo.zeta", lax.zeta, m(oracle.hurwitz), (1.01, 20), (0.01, 30), bounds=None, **two),
        row("chlo.polygamma", lax.polygamma, m(lambda n, x: mpmath.psi(int(n), x)), (0, 6), (0.01, 20), bounds=None, types=WIDE, count=1000, arguments=orders),
    ]


def complex_cases():
    g, slow = gmpy2, oracle.converging
    rows = [
        ("stablehlo.exponential", lax.exp, g.exp), ("stablehlo.exponential_minus_one", lax.expm1, slow(oracle.complex_expm1)),
        ("stablehlo.log", lax.log, g.log), ("stablehlo.log_plus_one", lax.log1p, slow(oracle.complex_log1p)),
        ("stablehlo.logistic", lax.logistic, slow(oracle.complex_logistic)), ("stablehlo.sqrt", lax.sqrt, g.sqrt),
        ("stablehlo.rsqrt", lax.rsqrt, oracle.complex_rsqrt),
        ("stablehlo.tanh", lax.tanh, g.tanh), ("chlo.sinh", lax.sinh, g.sinh), ("chlo.cosh", lax.cosh, g.cosh), ("stablehlo.sine", lax.sin, g.sin),
        ("stablehlo.cosine", lax.cos, g.cos), ("stablehlo.tan", lax.tan, g.tan), ("chlo.asin", lax.asin, g.asin), ("chlo.acos", lax.acos, g.acos),
        ("chlo.atan", lax.atan, g.atan), ("chlo.asinh", lax.asinh, g.asinh), ("chlo.acosh", lax.acosh, g.acosh), ("chlo.atanh", lax.atanh, g.atanh),
        ("stablehlo.abs", lax.abs, abs), ("stablehlo.sign", lax.sign, oracle.complex_sign),
    ]
    unbounded = ("stablehlo.exponential_minus_one", "stablehlo.logistic")  # in c128, a part that cancels is as exact as the larger one
    cases = [row(op, function, exact, None, bounds=(1.0, None if op in unbounded else 4.5), types=COMPLEX, count=4000) for op, function, exact in rows]
    pairs = {"bounds": (1.0, None), "types": COMPLEX, "count": 4000, "arguments": samples.complex_pairs}
    cases.append(row("stablehlo.divide", lax.div, lambda a, b: a / b, None, **pairs))
    cases.append(row("stablehlo.power", lax.pow, lambda a, b: a**b, None, **pairs))
    return cases


def ranges(name, count, case):
    random = samples.np.random.default_rng(11)
    return tuple(random.uniform(*r, count).astype(samples.TYPES[name]) for r in case.interesting)


def orders(name, count, case):
    n, x = ranges(name, count, case)
    return samples.np.floor(n), x


def arguments_of(case, type_name, count):
    """A tuple of arrays"""
    part = {"complex64": "float32", "complex128": "float64"}.get(type_name, type_name)
    if case.arguments in (ranges, orders):
        return case.arguments(part, count, case)
    if case.arguments:
        return case.arguments(part, count)
    if type_name in COMPLEX:
        return (samples.complexes(part, count),)
    if isinstance(case.interesting, list):
        return samples.pairs(part, case.interesting, case.hard, count)
    return (samples.reals(part, case.interesting, case.hard, count),)
