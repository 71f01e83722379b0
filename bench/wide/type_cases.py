"""Elements of other types: integers of 8, 16 and 64 bits, f64, complex numbers, special functions; and moving such elements."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")

LIMITS = {"int8": (-128, 128), "uint8": (0, 256), "int16": (-30_000, 30_000), "uint16": (0, 1 << 16), "int64": (-(1 << 62), 1 << 62),
          "uint64": (0, 1 << 63)}  # fmt: skip


def integers(name, dtype, f, n=200_000):
    low, high = LIMITS[dtype]
    case("elementwise", lambda g: (g.rng.integers(low, high, n).astype(dtype), g.rng.integers(1, high, n).astype(dtype)),
         name=f"{name}_{dtype}", x64=dtype.endswith("64"))(f)  # fmt: skip


integers("divmod", "int8", lambda x, y: (x // y, x % y))
integers("divmod", "int64", lambda x, y: (x // y, x % y))
integers("shifts", "uint16", lambda x, y: (x << (y & 7), x >> (y & 7)))
integers("popcount_clz", "int64", lambda x, y: (lax.population_count(x), lax.clz(y)))
integers("powers", "int8", lambda x, y: (x**3, x**7))
integers("least_magnitude_sign", "int64", lambda x, y: (jnp.minimum(x, y), jnp.abs(x), jnp.sign(x)))
integers("saturating_add", "int16", lambda x, y: jnp.clip(x.astype(jnp.int32) + y, -30_000, 30_000).astype(x.dtype))
integers("to_float", "int64", lambda x, y: (x.astype(jnp.float32) * 0.5, y.astype(jnp.float32)))
integers("xorshift", "uint64", lambda x, y: ((x ^ (x >> 12)) * y) ^ (x << 25))

DOUBLES = {
    "tanh": lambda x: jnp.tanh(x), "power": lambda x: (jnp.abs(x) + 0.1) ** x, "erf_inv": lambda x: lax.erf_inv(jnp.tanh(x)),
    "log1p_expm1": lambda x: (jnp.log1p(jnp.abs(x)), jnp.expm1(x)), "arctan2": lambda x: jnp.arctan2(x, x[::-1]),
    "sigmoid_gelu": lambda x: (nn.sigmoid(x), nn.gelu(x)),
}  # fmt: skip
for name, f in DOUBLES.items():
    case("elementwise", lambda g: (g.rng.standard_normal(100_000),), name=f"{name}_f64", x64=True)(f)

SPECIAL = {
    "bessel_scaled": lambda x: (lax.bessel_i0e(x), lax.bessel_i1e(x)), "polygamma_1": lambda x: jax.scipy.special.polygamma(1, jnp.abs(x) + 0.5),
    "log_normal_distribution": lambda x: jax.scipy.special.log_ndtr(x), "betainc": lambda x: jax.scipy.special.betainc(2.0, 3.0, nn.sigmoid(x)),
}  # fmt: skip
for name, f in SPECIAL.items():
    case("elementwise", lambda g: (g.normal(20_000),), name=f"{name}_20k", tol=1e-3)(f)

COMPLEX = {
    "multiply_divide": lambda x: (x * x[::-1], x / (x[::-1] + 2)), "sqrt": lambda x: jnp.sqrt(x), "sin_tanh": lambda x: (jnp.sin(x), jnp.tanh(x)),
}  # fmt: skip
for name, f in COMPLEX.items():
    case("elementwise", lambda g: (g.normal(60_000, dtype="c64").astype(np.complex128),), name=f"{name}_c128", x64=True)(f)


@case("elementwise", lambda g: (g.rng.standard_normal((60, 50, 70)),), x64=True)
def transpose_120_f64(x):
    return x.transpose(1, 2, 0)


@case("elementwise", lambda g: (g.normal(60, 40, 50, dtype="c64"),))
def transpose_102_c64(x):
    return x.swapaxes(0, 1)


@case("elementwise", lambda g: (g.normal(8, 9, 10, 11, 6, 7),))
def transpose_six_dimensions(x):
    return x.transpose(5, 3, 1, 0, 2, 4)


@case("elementwise", lambda g: (g.normal(100_000, 5),))
def transpose_100000x5(x):
    return x.T


@case("elementwise", lambda g: (g.normal(300, 401, dtype="c64"),))
def flip_last_c64(x):
    return jnp.flip(x, 1)


@case("elementwise", lambda g: (g.normal(300, 301, dtype="bf16"),))
def stack_last_bf16(x):
    return jnp.stack([x, x[::-1]], -1)


@case("elementwise", lambda g: (g.normal(4, 30, 30, 16),))
def patches_3x3_by_slices(x):
    return jnp.stack([x[:, i : i + 28, j : j + 28] for i in range(3) for j in range(3)], -2)


@case("elementwise", lambda g: (g.normal(20_000),))
def sliding_windows_of_10(x):
    return jnp.stack([x[i : i + 19_990] for i in range(10)], 1)


@case("elementwise", lambda g: (g.normal(300),))
def circulant_300(x):
    return x[(jnp.arange(300)[:, None] - jnp.arange(300)) % 300]


@case("elementwise", lambda g: (g.rng.standard_normal((90, 700)),), x64=True)
def powers_of_constants_f64(x):
    return 2.0**x + jnp.abs(x) ** 1.7
