"""Order and reductions along every axis: sorts of other types, medians, running values, extremes with their places."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")


def integers(g, bound, *shape):
    return g.rng.integers(-bound, bound, shape)


@case("indexing", lambda g: (integers(g, 1 << 60, 200_000),), x64=True)
def sort_i64_200k(x):
    return jnp.sort(x)


@case("indexing", lambda g: (g.rng.standard_normal(60_000),), x64=True)
def argsort_f64_60k(x):
    return jnp.argsort(x)


@case("indexing", lambda g: (g.normal(150_000, dtype="bf16"),))
def sort_bf16_150k(x):
    return jnp.sort(x)


@case("indexing", lambda g: (g.ints(-100, 100, 500, 300, dtype="i8"),))
def sort_columns_i8(x):
    return jnp.sort(x, axis=0)


@case("indexing", lambda g: (g.normal(30, 90, 40),))
def argsort_middle_descending(x):
    return jnp.argsort(x, axis=1, descending=True)


@case("indexing", lambda g: (g.normal(15, 200, 200),))
def median_of_15_frames(x):
    return jnp.median(x, axis=0)


@case("indexing", lambda g: (g.normal(600, 70),))
def percentiles_of_columns(x):
    return jnp.percentile(x, jnp.asarray([5.0, 25.0, 75.0], x.dtype), axis=0)


@case("indexing", lambda g: (g.normal(50, 3000, dtype="bf16"),))
def topk_bf16_10(x):
    return lax.top_k(x, 10)


@case("reduction", lambda g: (g.normal(40, 60, 70),))
def cummax_middle(x):
    return lax.cummax(x, axis=1)


@case("reduction", lambda g: (integers(g, 1000, 200_000),), x64=True)
def cumsum_i64_200k(x):
    return jnp.cumsum(x)


@case("reduction", lambda g: (g.uniform(64, 1000, lo=0.5, hi=0.99), g.normal(64, 1000)), tol=1e-3)
def linear_recurrence_rows(a, b):
    return lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, b), axis=1)[1]


@case("reduction", lambda g: (np.where(g.uniform(60, 70, 80) < 0.1, np.nan, g.normal(60, 70, 80)).astype(np.float32),))
def nan_mean_and_max_last(x):
    return jnp.nanmean(x, 2), jnp.nanmax(x, 2)


@case("reduction", lambda g: (g.normal(41, 60, 77),))
def softmax_middle_of_3d(x):
    return nn.softmax(x, axis=1)


@case("reduction", lambda g: (g.ints(-1000, 1000, 70, 60, 90),))
def places_of_extremes_i32_middle(x):
    return x.argmax(1), x.argmin(1)


@case("reduction", lambda g: (g.ints(0, 256, 70, 60, 90, dtype="u8"),))
def argmax_u8_last(x):
    return x.argmax(2)


@case("reduction", lambda g: (g.rng.standard_normal((70, 60, 90)),), x64=True)
def argmin_f64_first(x):
    return x.argmin(0)


@case("reduction", lambda g: (g.ints(0, 2, 70, 60, 90, dtype="bool"),))
def any_all_and_count_middle(x):
    return x.any(1), jnp.count_nonzero(x, 1), x.all(1)


@case("reduction", lambda g: (g.normal(50, 60, 70, dtype="c64"),))
def sum_and_mean_c64_last(x):
    return x.sum(2), x.mean(2)
