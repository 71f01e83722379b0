"""What ./dev numerics evaluates functions at: every number of 16 bits; of wider types all exponents with random mantissas, subnormals, zeros and infinities, a
dense sample of where a function is interesting, and the neighbours of hard points (multiples of pi/2, ends of ranges, places where formulas change)."""
import math

import ml_dtypes
import numpy as np

TYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16), "float32": np.dtype(np.float32), "float64": np.dtype(np.float64)}
BITS = {"float32": (np.uint32, 23, 255), "float64": (np.uint64, 52, 2047)}

# Doubles and floats that lie closest to a multiple of pi/2, found by continued fractions.
NEAR_PI = [6381956970095103 * 2.0**797, 16367173 * 2.0**72, 5.319372648326541e255, 1.5707963267948966e15, 2.0**120, 1e22]
COMMON = [0.25, 0.375, 0.41421356, 0.5, 0.61803, 0.6417, math.sqrt(0.5), 0.75, 1, 1.25, 1.5, math.sqrt(2), 2, 2.5, 3, 4, 5, 6, 8, 10, 20, 22, 40, 100, 170.5, 1024,
          2.0**20, 2.0**27, 2.0**52, 2.0**53, math.log(2) / 2, math.log(2), 88.72283905, 89.41598629, 103.2789, 103.97208, 709.782712893384, 710.4758600739439,
          745.1332191019411, 708.3964185322641, 1e-3, 2.0**-12, 2.0**-14, 2.0**-25, 2.0**-27, 2.0**-54, 3.9192059, 5.921587, 27.226017, 1.4616321449683623]


def all_codes(name):
    return np.arange(65536, dtype=np.uint16).view(TYPES[name])


def specials(name):
    info = ml_dtypes.finfo(TYPES[name])
    tiny, least, largest = float(info.tiny), float(info.smallest_subnormal), float(info.max)
    half = [0.0, least, 3 * least, tiny - least, tiny, 2 * tiny, float(info.eps), 0.5, 1.0, 2.0, 3.0, largest / 2, largest, math.inf]
    return np.array([s * v for v in half for s in (1, -1)], dtype=TYPES[name])


def around(name, points, steps=3):
    """Each point, negated too, and its neighbours"""
    code_type = BITS[name][0]
    x = np.array(points, dtype=np.float64).astype(TYPES[name])
    codes = np.abs(x[np.isfinite(x) & (x != 0)]).view(code_type)
    offsets = np.arange(-steps, steps + 1)
    near = (codes[:, None].astype(np.int64) + offsets).astype(code_type).ravel().view(TYPES[name])
    return np.concatenate([near, -near])


def every_exponent(name, random, per_exponent):
    code_type, mantissa, top = BITS[name]
    exponents = np.repeat(np.arange(top, dtype=code_type), per_exponent) << code_type(mantissa)
    mantissas = random.integers(0, 2**mantissa, len(exponents), dtype=code_type)
    x = (exponents | mantissas).view(TYPES[name])
    return x * random.choice([-1, 1], len(x)).astype(TYPES[name])


def reals(name, interesting, hard=(), count=16000, seed=5):
    """One array of arguments; `interesting` is a range"""
    if name not in BITS:
        codes = all_codes(name)
        return codes if count >= 16000 else codes[:: max(1, 65536 // (4 * count))]
    random = np.random.default_rng(seed)
    top = BITS[name][2]
    multiples = [k * math.pi / 2 for k in [*range(1, 40), *(2**n for n in range(6, 60, 3)), *(2**n + 1 for n in range(6, 60, 3))]]
    low, high = interesting
    parts = [specials(name), around(name, [*COMMON, *multiples, *NEAR_PI, *hard]), every_exponent(name, random, max(1, count // (2 * top))),
             random.uniform(low, high, count // 2).astype(TYPES[name])]
    return np.concatenate(parts)


def pairs(name, interesting, hard=(), count=16000, seed=6):
    """Two arrays: specials against specials, any two exponents, exponents near each other, and two ranges"""
    random = np.random.default_rng(seed)
    if name not in BITS:
        codes = all_codes(name)
        wide = np.float32
        near = [random.uniform(*r, count // 2).astype(wide).astype(TYPES[name]) for r in interesting]
        special = specials(name)
        return (np.concatenate([np.repeat(special, len(special)), random.choice(codes, count // 2), near[0]]),
                np.concatenate([np.tile(special, len(special)), random.choice(codes, count // 2), near[1]]))
    special = np.concatenate([specials(name), np.array([0.7, -0.7, 5.0, -5.0], TYPES[name])])
    each = max(1, count // (4 * BITS[name][2]))
    any_x, any_y = every_exponent(name, random, each), every_exponent(name, random, each)
    random.shuffle(any_y)
    close = any_x * np.exp2(random.uniform(-6, 6, len(any_x))).astype(TYPES[name])
    ranges = [random.uniform(*r, count // 2).astype(TYPES[name]) for r in interesting]
    points = around(name, list(hard) or [1.0], 2)
    against = random.uniform(*interesting[1], len(points)).astype(TYPES[name])
    return (np.concatenate([np.repeat(special, len(special)), any_x, any_x, ranges[0], points]),
            np.concatenate([np.tile(special, len(special)), any_y, close, ranges[1], against]))


def powers(name, count=16000, seed=7):
    """Bases and exponents whose power is in range, or at its ends; whole and half exponents, bases near 1"""
    x, y = pairs(name, [(-3, 3), (-6, 6)], count=count // 2, seed=seed)
    random = np.random.default_rng(seed)
    dtype = TYPES[name]
    top = {"float16": 16, "bfloat16": 128, "float32": 128, "float64": 1024}[name]
    if name in BITS:
        bases = np.abs(every_exponent(name, random, max(1, count // (2 * BITS[name][2]))))
    else:
        bases = np.abs(random.choice(all_codes(name), count // 2))
    bases = bases[np.isfinite(bases.astype(np.float64)) & (bases != 0) & (bases != 1)]
    bases = np.concatenate([bases, (1 + random.uniform(-1e-2, 1e-2, count // 4)).astype(dtype)])
    logs = np.log2(bases.astype(np.float64))
    logs[logs == 0] = 1e-9
    exponents = (random.uniform(-1.15 * top, 1.05 * top, len(bases)) / logs).astype(dtype)
    whole = random.integers(-40, 40, count // 4).astype(dtype) / dtype.type(2)
    signed = (random.uniform(-20, 20, count // 4)).astype(dtype)
    return np.concatenate([x, bases, signed]), np.concatenate([y, exponents, whole])


def complexes(name, count=8000, seed=8):
    """Complex numbers, by the type of their parts: specials, any exponents, near the unit circle, near +-1 and +-i, and a box"""
    random = np.random.default_rng(seed)
    dtype = TYPES[name]
    special = np.concatenate([specials(name), np.array([0.1, -0.1, 1.5707963267948966, -1.5707963267948966, 25.0, -25.0, 1e-9, -1e-9], dtype)])
    each = max(1, count // (4 * BITS[name][2]))
    any_x, any_y = every_exponent(name, random, each), every_exponent(name, random, each)
    random.shuffle(any_y)
    close = any_x * np.exp2(random.uniform(-4, 4, len(any_x))).astype(dtype)
    angle = random.uniform(-math.pi, math.pi, count // 6)
    off = 1 + random.choice([-1, 1], len(angle)) * np.exp2(random.uniform(-60, -1, len(angle)))
    distance = np.exp2(random.uniform(-60, 1, count // 6))
    turn = random.uniform(-math.pi, math.pi, len(distance))
    center = random.choice([-1, 1], len(distance))
    imaginary = random.random(len(distance)) < 0.5
    near_x = np.where(imaginary, 0, center) + distance * np.cos(turn)
    near_y = np.where(imaginary, center, 0) + distance * np.sin(turn)
    box = random.uniform(-1, 1, (2, count // 3)) * np.exp(random.uniform(-2, 5, (2, count // 3)))
    x = np.concatenate([np.repeat(special, len(special)), any_x, any_x, (off * np.cos(angle)).astype(dtype), near_x.astype(dtype), box[0].astype(dtype)])
    y = np.concatenate([np.tile(special, len(special)), any_y, close, (off * np.sin(angle)).astype(dtype), near_y.astype(dtype), box[1].astype(dtype)])
    out = np.empty(len(x), np.complex64 if name == "float32" else np.complex128)
    out.real, out.imag = x, y
    return out


def complex_pairs(name, count=4000, seed=9):
    random = np.random.default_rng(seed)
    z = complexes(name, count, seed)
    z = z[np.isfinite(z)]
    w = np.empty_like(z)
    w.real = (random.uniform(-1, 1, len(z)) * np.exp(random.uniform(-3, 3, len(z)))).astype(TYPES[name])
    w.imag = (random.uniform(-1, 1, len(z)) * np.exp(random.uniform(-3, 3, len(z)))).astype(TYPES[name])
    return z, w
