"""Vectors and short rows in batches: products of which one side is a vector, bodies that attract each other, and
reductions of middle dimensions whose rows are short (coordinates, colours, states).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")


@case("matmul", lambda g: (g.normal(3500, 18), g.normal(3500, 18)))
def dot_of_each_pair_3500x18(x, y):
    return jnp.einsum("bi,bi->b", x, y)


@case("matmul", lambda g: (g.normal(64, 64), g.normal(64, 2048, 64)))
def queries_by_cache_64x2048x64(q, k):
    return jnp.einsum("bd,bkd->bk", q, k)


@case("matmul", lambda g: (g.normal(100_000, 64), g.normal(64)))
def rows_by_vector_100000x64(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(65_536, 256), g.normal(256)))
def rows_by_vector_65536x256(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(200_000, 100), g.normal(100, 4)))
def rows_by_four_columns_200000x100(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(8, 1024), g.normal(1024, 1024)))
def few_rows_8x1024x1024(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(24, 700), g.normal(700, 2500)))
def few_rows_24x700x2500(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(700, 90), g.normal(700, 90, 3)))
def weighted_points_700x90x3(w, points):
    return jnp.einsum("bi,bik->bk", w, points)


@case("matmul", lambda g: (g.normal(10, 9000), g.normal(10, 9000, 8)))
def weighted_states_10x9000x8(w, states):
    return jnp.einsum("bi,bik->bk", w, states)


@case("matmul", lambda g: (g.normal(2500, 4, 22, dtype="f64"), g.normal(2500, 22, dtype="f64")), x64=True)
def four_rows_by_vectors_f64_2500x4x22(a, x):
    return jnp.einsum("bij,bj->bi", a, x)


@case("elementwise", lambda g: (g.normal(8, 512, 12, 16),))
def heads_of_16_moved_8x512x12(x):
    return x.transpose(0, 2, 1, 3)


@case("elementwise", lambda g: (g.normal(8, 512, 16, 72, dtype="bf16"),))
def heads_of_72_moved_8x512x16_bf16(x):
    return x.transpose(0, 2, 1, 3)


@case("reduction", lambda g: (g.normal(50_000, 15),))
def argmax_of_rows_of_15(x):
    return x.argmax(-1)


@case("reduction", lambda g: (g.normal(57_000, 7),))
def any_of_rows_of_7(x):
    return (x > 2).any(-1)


@case("reduction", lambda g: (g.normal(900, 60, 5),))
def sum_middle_900x60x5(x):
    return x.sum(1)


@case("reduction", lambda g: (g.normal(2600, 25, 7),))
def argmax_middle_2600x25x7(x):
    return jnp.argmax(x, axis=1)


@case("reduction", lambda g: (g.normal(1200, 40, 12, dtype="bf16"),), tol=2e-2)
def mean_and_spread_middle_bf16_1200x40x12(x):
    x = x.astype(jnp.float32)
    return x.mean(1), x.std(1)


@case("reduction", lambda g: (g.normal(1500, 30, 6),))
def softmax_middle_1500x30x6(x):
    return nn.softmax(x, axis=1)


def _attracted(positions, masses):
    apart = positions[None] - positions[:, None]
    squared = (apart**2).sum(-1) + 1e-2
    return jnp.einsum("ij,ijk->ik", masses[None] / (squared * jnp.sqrt(squared)), apart)


def _bodies(steps):
    def run(positions, speeds, masses):
        def step(_, s):
            p, v = s
            v = v + 1e-3 * _attracted(p, masses)
            return p + 1e-3 * v, v

        return lax.fori_loop(0, steps, step, (positions, speeds))

    return run


def _masses(g, n):
    return g.uniform(n, lo=0.5, hi=1.5)


@case("control", lambda g: (g.normal(24, 3), g.normal(24, 3), _masses(g, 24)))
def bodies_by_einsum_24(positions, speeds, masses):
    return _bodies(300)(positions, speeds, masses)


@case("control", lambda g: (g.normal(90, 3), g.normal(90, 3), _masses(g, 90)))
def bodies_by_einsum_90(positions, speeds, masses):
    return _bodies(60)(positions, speeds, masses)


@case("control", lambda g: (g.weight(200, 6, 6, fan_in=6), g.normal(200, 6)))
def states_by_matrices_200x6(a, x):
    def step(s, _):
        return jnp.tanh(jnp.einsum("bij,bj->bi", a, s)), jnp.einsum("bi,bi->b", s, s)

    return lax.scan(step, x, None, length=80)[1]
