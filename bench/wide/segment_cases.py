"""Sums, extremes and picks by index: sparse products, graphs, histograms, tables, and gathers along several dimensions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sxs.registry import Registrar

case = Registrar("held_out")


@case("indexing", lambda g: (g.normal(300_000), np.sort(g.ints(0, 40_000, 300_000)), g.ints(0, 40_000, 300_000),
                             g.normal(40_000)))  # fmt: skip
def sparse_by_vector_sorted_rows(values, rows, columns, x):
    return jax.ops.segment_sum(values * x[columns], rows, 40_000, indices_are_sorted=True)


@case("indexing", lambda g: (g.normal(100_000), np.minimum(g.rng.zipf(1.3, 100_000) - 1, 4999).astype(np.int32)))
def scatter_add_few_places_often(u, i):
    return jnp.zeros(5000, u.dtype).at[i].add(u)


@case("indexing", lambda g: (g.normal(150_000), g.ints(0, 7000, 150_000)))
def scatter_max_scalars(u, i):
    return jnp.full(7000, -jnp.inf, u.dtype).at[i].max(u)


@case("indexing", lambda g: (g.ints(0, 1 << 20, 150_000), g.ints(0, 7000, 150_000)))
def scatter_min_i32(u, i):
    return jnp.full(7000, 1 << 30, jnp.int32).at[i].min(u)


@case("indexing", lambda g: (g.normal(60_000, dtype="bf16"), g.ints(0, 2000, 60_000)), tol=0.3, ref="cpu")
def scatter_add_bf16_scalars(u, i):
    return jnp.zeros(2000, u.dtype).at[i].add(u)


@case("indexing", lambda g: (g.rng.standard_normal(80_000), g.ints(0, 5000, 80_000)), x64=True)
def scatter_add_f64_scalars(u, i):
    return jnp.zeros(5000, u.dtype).at[i].add(u)


@case("indexing", lambda g: (g.normal(4000, 3), g.ints(0, 4000, 24_000), g.ints(0, 4000, 24_000)))
def springs_between_points(x, a, b):
    d = x[a] - x[b]
    return jnp.zeros_like(x).at[a].add(-d).at[b].add(d)


@case("indexing", lambda g: (g.normal(2000, 8), g.ints(0, 2000, 30_000), g.ints(0, 2000, 30_000)))
def edge_softmax_8(x, a, b):
    s = (x[a] * x[b]).sum(-1)
    e = jnp.exp(s - jax.ops.segment_max(s, b, 2000)[b])
    return e / jax.ops.segment_sum(e, b, 2000)[b]


@case("indexing", lambda g: (g.normal(12_000), np.sort(g.ints(0, 800, 12_000))))
def segment_standard_deviation(x, i):
    n = jnp.maximum(jax.ops.segment_sum(jnp.ones_like(x), i, 800), 1)
    m = jax.ops.segment_sum(x, i, 800) / n
    return jnp.sqrt(jax.ops.segment_sum(jnp.square(x - m[i]), i, 800) / n)


@case("indexing", lambda g: (g.ints(0, 64, 120, 500),))
def bincount_of_rows(x):
    return jax.vmap(lambda x: jnp.bincount(x, length=64))(x)


@case("indexing", lambda g: (g.normal(40_000), g.normal(40_000)), tol=1e-3)
def histogram2d_20x30(x, y):
    return jnp.histogram2d(x, y, bins=(20, 30), range=((-3.0, 3.0), (-3.0, 3.0)))[0]


@case("indexing", lambda g: (g.normal(30_000), np.linspace(-3, 3, 41).astype(np.float32)))
def digitize_41_bins(x, bins):
    return jnp.digitize(x, bins)


@case("indexing", lambda g: (g.normal(50_000), g.uniform(50_000, lo=0, hi=99)), tol=1e-3)
def deposit_linear_weights(q, x):
    i = jnp.floor(x).astype(jnp.int32)
    f = x - i
    return jnp.zeros(101, q.dtype).at[i].add(q * (1 - f)).at[i + 1].add(q * f)


@case("indexing", lambda g: (g.normal(60, 70, 80), g.ints(0, 60, 40), g.ints(0, 80, 50)))
def gather_first_then_last(x, i, k):
    return x[i][:, :, k]


@case("indexing", lambda g: (g.normal(60, 70, 80), g.ints(0, 60, 40, 1), g.ints(0, 80, 1, 50)))
def gather_first_and_last(x, i, k):
    return x[i, :, k]


@case("indexing", lambda g: (g.normal(30, 40, 50, 8), g.ints(0, 30, 9000), g.ints(0, 40, 9000), g.ints(0, 50, 9000)))
def gather_rows_of_8_by_three(x, i, j, k):
    return x[i, j, k]


@case("indexing", lambda g: (g.ints(0, 100, 400, 300, dtype="i8"), g.ints(0, 300, 400, 90)))
def take_along_last_i8(x, i):
    return jnp.take_along_axis(x, i, axis=1)


@case("indexing", lambda g: (g.normal(300, 700), g.ints(0, 700, 300, 20), g.normal(300, 20)))
def put_along_last(x, i, u):
    return jnp.put_along_axis(x, i, u, axis=1, inplace=False)


@case("indexing", lambda g: (g.normal(900, 800), g.normal(300, 200), np.int32(113), np.int32(201)))
def update_a_block(x, u, i, j):
    return lax.dynamic_update_slice(x, u, (i, j))


@case("indexing", lambda g: (g.normal(800, 48), g.ints(0, 800, 30, 20), g.normal(30, 48)))
def embedding_bag_grad(t, i, dy):
    return jax.vjp(lambda t: t[i].sum(1), t)[1](dy)[0]
