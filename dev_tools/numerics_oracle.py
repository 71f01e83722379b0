"""The multi-precision side of ./dev numerics: exact values by MPFR and MPC (gmpy2), and by mpmath where those lack a function; and the measure, ULPs of the
result's type.

A reference value is kept as two doubles, high + low (106 bits), scaled by 2^200 or 2^-200 where a double's own range ends. Beyond the range of the result's
type a result counts as the power of two that comes next, so that infinity is right to 0.5 ULP from half an ULP above the largest number on, as IEEE rounds.
"""
from dataclasses import dataclass, field

import gmpy2
import mpmath
import numpy as np

PRECISION = 160
NORMAL, NAN, INFINITY, ZERO = range(4)
SCALE = 200
UP, DOWN = gmpy2.mpfr(2) ** SCALE, gmpy2.mpfr(2) ** -SCALE

# name: digits of the significand, exponent of the least normal number, exponent of the first power of two that is too large
FORMATS = {"float16": (11, -14, 16), "bfloat16": (8, -126, 128), "float32": (24, -126, 128), "float64": (53, -1022, 1024)}


def use_precision(bits=PRECISION):
    gmpy2.get_context().precision = bits
    mpmath.mp.prec = bits


# ---- functions that MPFR and MPC do not have

def converging(function):
    """Evaluates at more and more bits until both parts agree to 100 bits: for formulas that cancel"""
    def evaluate(*arguments):
        bits, last = PRECISION, None
        while True:
            with gmpy2.context(gmpy2.get_context(), precision=bits):
                value = function(*arguments)
                if value is None or last is not None and (bits > 5000 or agree(last, value)):
                    return value
            last, bits = value, bits * 2
    return evaluate


def agree(a, b):
    parts = [(a.real, b.real), (a.imag, b.imag)] if isinstance(b, gmpy2.mpc) else [(a, b)]
    return all(p == q or (gmpy2.is_nan(p) and gmpy2.is_nan(q)) or (gmpy2.is_finite(q) and abs(p - q) <= abs(q) * gmpy2.mpfr(2) ** -100)
               for p, q in parts)


def lgamma(x):
    return gmpy2.mpfr("inf") if gmpy2.is_infinite(x) else gmpy2.lgamma(x)[0]


def logistic(x):
    return 1 / (1 + gmpy2.exp(-x))


def rsqrt(x):
    return 1 / x if x == 0 else gmpy2.rec_sqrt(x)  # -infinity at -0, as IEEE 754 has it


def digamma(x):
    return gmpy2.mpfr("nan") if x <= 0 and gmpy2.is_integer(x) else gmpy2.digamma(x)  # the poles


def complex_cbrt(z):
    return z if z == 0 else gmpy2.exp(gmpy2.log(z) / 3)


def complex_expm1(z):
    """By expm1(a) cos b - 2 sin^2(b/2), which cancels less than exp z - 1"""
    a, b = z.real, z.imag
    if not (gmpy2.is_finite(a) and gmpy2.is_finite(b)) or b == 0:
        return gmpy2.mpc(gmpy2.expm1(a), b) if b == 0 else gmpy2.exp(z) - 1
    half = gmpy2.sin(b / 2)
    return gmpy2.mpc(gmpy2.expm1(a) * gmpy2.cos(b) - 2 * half * half, gmpy2.exp(a) * gmpy2.sin(b))


def complex_log1p(z):
    a, b = z.real, z.imag
    if not (gmpy2.is_finite(a) and gmpy2.is_finite(b)) or abs(z) > 8 or abs(1 + z) < 0.5:
        return gmpy2.log(1 + z)
    return gmpy2.mpc(gmpy2.log1p(a * (2 + a) + b * b) / 2, gmpy2.atan2(b, 1 + a))


def complex_logistic(z):
    """conj(1 + w) / |1 + w|^2, w = exp -z"""
    w = gmpy2.exp(-z)
    if gmpy2.is_nan(w) or gmpy2.is_infinite(w) or abs(z.real) > 1000000:
        return None
    up = 1 + w.real
    size = up * up + w.imag * w.imag
    return gmpy2.mpc(up / size, -w.imag / size)


def complex_rsqrt(z):
    return 1 / gmpy2.sqrt(z) if z != 0 else gmpy2.mpc(gmpy2.mpfr("inf"), -z.imag)


def complex_sign(z):
    """0 at 0; undefined at infinity"""
    return z if z == 0 else z / abs(z) if gmpy2.is_finite(z) else None


def by_mpmath(function):
    """A function of mpmath over MPFR numbers; NaN where it has no real value"""
    def evaluate(*arguments):
        if any(gmpy2.is_nan(a) for a in arguments):
            return gmpy2.mpfr("nan")
        try:
            value = mpmath.mpmathify(function(*(to_mpmath(a) for a in arguments)))
        except (ValueError, ZeroDivisionError, mpmath.NoConvergence, NotImplementedError, OverflowError):
            return None  # mpmath does not know: the point is left out
        if isinstance(value, mpmath.mpc):
            return gmpy2.mpfr("nan")
        return from_mpmath(value)
    return evaluate


def to_mpmath(x):
    if not gmpy2.is_finite(x):
        return mpmath.mpf(float(x))
    mantissa, exponent = x.as_mantissa_exp()
    return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))


def from_mpmath(x):
    if not mpmath.isfinite(x):
        return gmpy2.mpfr(float(x))
    sign, mantissa, exponent, _ = x._mpf_
    value = gmpy2.mpfr(int(mantissa)) * gmpy2.mpfr(2) ** int(exponent)
    return -value if sign else value


def zero_kept(function):
    """Odd functions of mpmath, which has no -0"""
    return lambda x: x if x == 0 else function(x)


def erf_inv(x):
    if abs(x) == 1:
        return mpmath.mpf("inf") * x
    if abs(x) > 1:
        return mpmath.nan
    if abs(x) < mpmath.mpf(2) ** -60:
        return x * mpmath.sqrt(mpmath.pi) / 2
    return mpmath.erfinv(x)


def bessel_e(order):
    return lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(order, x) if mpmath.isfinite(x) else mpmath.mpf(0)


def igamma(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def igammac(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def hurwitz(s, q):
    return mpmath.inf if s == 1 else mpmath.zeta(s, q) if s > 1 and q > 0 else mpmath.nan


# ---- the measure

@dataclass
class Reference:
    """Exact results; `known` leaves out what the oracle could not tell"""
    kind: np.ndarray
    negative: np.ndarray
    high: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    known: np.ndarray


def references(values, limit):
    """Of MPFR numbers; `limit` is the exponent from which on the type has infinity"""
    n = len(values)
    r = Reference(np.zeros(n, np.int8), np.zeros(n, bool), np.zeros(n), np.zeros(n), np.zeros(n, np.int32), np.ones(n, bool))
    top, high_edge, low_edge = gmpy2.mpfr(2) ** limit, gmpy2.mpfr(2) ** 900, gmpy2.mpfr(2) ** -900
    for i, v in enumerate(values):
        if v is None:
            r.known[i] = False
        elif gmpy2.is_nan(v):
            r.kind[i] = NAN
        else:
            r.negative[i] = gmpy2.is_signed(v)
            if gmpy2.is_zero(v):
                r.kind[i] = ZERO
            elif gmpy2.is_infinite(v):
                r.kind[i] = INFINITY
            else:
                magnitude = abs(v)
                if magnitude > top:
                    v = -top if r.negative[i] else top
                if magnitude > high_edge:
                    v, r.scale[i] = v * DOWN, -SCALE
                elif magnitude < low_edge:
                    v, r.scale[i] = v * UP, SCALE
                r.high[i] = high = float(v)
                r.low[i] = float(v - high)
    return r


@dataclass
class Finding:
    """What became of one function in one type: the largest error and where, and how many special results are wrong"""
    ulp: float = 0.0
    at: int = -1
    wrong: dict = field(default_factory=dict)  # what: (count, index of the first)
    count: int = 0

    def add(self, what, where):
        index = np.flatnonzero(where)
        if len(index):
            count, first = self.wrong.get(what, (0, int(index[0])))
            self.wrong[what] = (count + len(index), first)

    def merge(self, other):
        if other.ulp > self.ulp:
            self.ulp, self.at = other.ulp, other.at
        self.count += other.count
        for what, (count, first) in other.wrong.items():
            old, index = self.wrong.get(what, (0, first))
            self.wrong[what] = (old + count, index)
        return self


def unit(reference, format_name):
    """The ULP of each exact value, scaled as the value is"""
    digits, least, top = FORMATS[format_name]
    _, exponent = np.frexp(reference.high)
    exponent = exponent - 1 - ((np.frexp(reference.high)[0] == 0.5) & (reference.low * reference.high < 0))
    exponent = np.where(reference.high == 0, least, exponent - reference.scale)
    return np.ldexp(1.0, np.clip(exponent, least, top - 1) - (digits - 1) + reference.scale)


def measure(got, reference, format_name):
    """Compares an array of results (any float type) with the exact values"""
    digits, least, top = FORMATS[format_name]
    got = np.asarray(got).astype(np.float64)
    kind, finding = reference.kind, Finding(count=int(reference.known.sum()))
    known = reference.known
    finding.add("NaN missing", known & (kind == NAN) & ~np.isnan(got))
    finding.add("NaN", known & (kind != NAN) & np.isnan(got))
    finding.add("infinity", known & (kind == INFINITY) & ~np.isnan(got) & (got != np.where(reference.negative, -np.inf, np.inf)))
    finding.add("infinity", known & (kind == ZERO) & np.isinf(got))
    finding.add("zero", known & (kind == ZERO) & np.isfinite(got) & (got != 0))
    finding.add("sign of zero", known & (kind == ZERO) & (got == 0) & (np.signbit(got) != reference.negative))
    finite = known & (kind == NORMAL) & ~np.isnan(got)
    sign = np.where(reference.negative, -1.0, 1.0)
    far = finite & np.isinf(got) & (np.ldexp(np.abs(reference.high), -reference.scale) < np.ldexp(1.0, top - 2))
    finding.add("infinity", far)
    scaled = np.where(np.isinf(got), np.sign(got) * np.ldexp(1.0, np.minimum(top + reference.scale, 1023)), np.ldexp(got, reference.scale))
    ulps = np.abs((scaled - reference.high) - reference.low) / unit(reference, format_name)
    small = np.abs(reference.high) < np.ldexp(1.0, np.clip(least + reference.scale, -1074, 1000))
    flushed = finite & small & (got == 0) & (ulps > 0.5)
    finding.add("flushed to zero", flushed & (ulps > 1))
    finding.add("wrong sign", finite & (got != 0) & (np.sign(got) != sign))
    measured = np.where(finite & ~far & ~flushed, ulps, 0.0)
    if len(measured):
        finding.at = int(np.argmax(measured))
        finding.ulp = float(measured[finding.at])
    return finding


def norm_error(got, real, imaginary, format_name):
    """The largest error of complex results in ULPs of the result's larger part, where both are finite"""
    ok = real.known & np.isin(real.kind, (NORMAL, ZERO)) & np.isin(imaginary.kind, (NORMAL, ZERO)) & (real.scale == imaginary.scale)
    got = np.asarray(got).astype(np.complex128)
    ok &= np.isfinite(got) & ((real.high != 0) | (imaginary.high != 0))
    error = np.maximum(*(np.abs((np.ldexp(part, r.scale) - r.high) - r.low) for part, r in ((got.real, real), (got.imag, imaginary))))
    size = np.maximum(unit(real, format_name), unit(imaginary, format_name))
    ulps = np.where(ok, error / size, 0.0)
    return float(ulps.max()) if len(ulps) else 0.0
