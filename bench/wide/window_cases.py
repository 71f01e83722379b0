"""Gradients of windows in loops, loops over members, and rows that are cut otherwise, of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")

# gradients of what loops read by dynamic slices ------------------------------------------


@case("control", lambda g: (g.normal(20000),))
def windows_of_30_in_a_scan_grad(x):
    def f(x):
        def body(c, i):
            return c + jnp.sin(lax.dynamic_slice(x, (i * 20,), (30,))).sum(), None

        return lax.scan(body, 0.0, jnp.arange(900))[0]

    return jax.grad(f)(x)


@case("control", lambda g: (g.normal(300, 40), g.normal(40, 40, scale=0.15)))
def rnn_on_rows_by_index_grad(x, w):
    def f(x, w):
        def body(h, i):
            h = jnp.tanh(h @ w + x[i])
            return h, h.sum()

        return lax.scan(body, jnp.zeros(40), jnp.arange(300))[1].sum()

    return jax.grad(f, (0, 1))(x, w)


@case("control", lambda g: (g.normal(1500),))
def recurrence_written_in_place_grad(x):
    def f(x):
        def body(i, y):
            return y.at[i].set(0.5 * y[i - 1] + jnp.sin(y[i]))

        return lax.fori_loop(1, 1500, body, x).sum()

    return jax.grad(f)(x)


@case("indexing", lambda g: (g.normal(2000, 64), (g.uniform(6) * 1500).astype(np.int32)))
def six_dynamic_slices_grad(x, starts):
    def f(x):
        return sum((lax.dynamic_slice(x, (s, 0), (300, 64)) ** 2).sum() for s in starts)

    return jax.grad(f)(x)


@case("control", lambda g: (g.normal(300, 64), g.normal(64), g.normal(100, 64)))
def gates_of_a_closed_over_table_grad(table, h, inputs):
    def f(table):
        def body(h, v):
            return jnp.tanh(h * table[0] + v * table[1] + table[7]), None

        return lax.scan(body, h, inputs)[0].sum()

    return jax.grad(f)(table)


@case("control", lambda g: (g.normal(2000, 8), (g.uniform(50, 30) * 1900).astype(np.int32)))
def vmapped_walks_through_a_table_grad(x, steps):
    def walk(x, steps):
        return lax.scan(lambda c, i: (c + jnp.sin(x[i]), None), jnp.zeros(8), steps)[0]

    return jax.grad(lambda x: jax.vmap(walk, (None, 0))(x, steps).sum())(x)


# loops whose members end for themselves --------------------------------------------------


@case("control", lambda g: (g.uniform(9000, lo=0.1, hi=20), g.uniform(9000, lo=0.1, hi=30)))
def gammainc_9000(a, x):
    return jax.scipy.special.gammainc(a, x)


@case("control", lambda g: (g.uniform(9000, lo=0.1, hi=20), g.uniform(9000, lo=0.1, hi=30)))
def gammaincc_9000(a, x):
    return jax.scipy.special.gammaincc(a, x)


@case("control", lambda g: (g.uniform(9000, lo=1, hi=1000),))
def newton_cube_roots_vmapped_9000(a):
    def root(a):
        def goes_on(s):
            x, n = s
            return (jnp.abs(x * x * x - a) > 1e-3 * a) & (n < 50)

        def step(s):
            x, n = s
            return x - (x * x * x - a) / (3 * x * x), n + 1

        return lax.while_loop(goes_on, step, (1.0 + a, 0))[0]

    return jax.vmap(root)(a)


@case("control", lambda g: ((g.uniform(6000) * 1000).astype(np.int32) + 1,))
def collatz_lengths_6000(n):
    def length(n):
        def step(s):
            n, k = s
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

        return lax.while_loop(lambda s: s[0] > 1, step, (n, 0))[1]

    return jax.vmap(length)(n)


@case("control", lambda g: (g.uniform(90, 100) > 0.2,))
def erode_until_empty_90x100(c):
    def step(c):
        return c & jnp.roll(c, 1, 0) & jnp.roll(c, -1, 1)

    return lax.while_loop(lambda s: jnp.any(s[0]) & (s[1] < 60), lambda s: (step(s[0]), s[1] + 1), (c, 0))


@case("control", lambda g: (g.uniform(9000) > 0.5, g.uniform(100, 9000) > 0.9))
def any_of_9000_in_a_loop(mask, others):
    return lax.fori_loop(0, 100, lambda i, c: c + jnp.any(mask & others[i]), 0)


# rows that are cut otherwise before they are reduced --------------------------------------


@case("attention", lambda g: (g.normal(1, 4, 300, 300),))
def relative_shift_softmax_300(scores):
    shifted = jnp.pad(scores, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(1, 4, 301, 300)
    return nn.softmax(shifted[:, :, 1:])


@case("attention", lambda g: (g.normal(4, 196, 196), g.normal(4, 196, 14), g.normal(4, 196, 14)))
def decomposed_relative_positions_14x14(scores, rows, columns):
    biased = scores.reshape(4, 196, 14, 14) + rows[..., None] + columns[:, :, None]
    return nn.softmax(biased.reshape(4, 196, 196))


@case("reduction", lambda g: (g.normal(30, 10, 10, 24), g.normal(24)))
def layer_norm_of_flattened_channels(x, scale):
    y = (x * scale).reshape(30, -1)
    return (y - y.mean(-1, keepdims=True)) / jnp.sqrt(y.var(-1, keepdims=True) + 1e-5)


@case("reduction", lambda g: (g.normal(663, 696),))
def softmax_of_regrouped_transpose(x):
    return nn.softmax(x.T.reshape(754, 612))


@case("reduction", lambda g: (g.normal(288, 41, 38), g.normal(288, 41, 38)))
def maximum_of_flipped_concatenation(x, y):
    return jnp.flip(jnp.concatenate([x, y], 2), 2).max((0, 2))


@case("elementwise", lambda g: (g.normal(400, 500),))
def total_variation_step(u):
    def divergence(p):
        return jnp.diff(p[0], axis=0, prepend=0) + jnp.diff(p[1], axis=1, prepend=0)

    def step(_, p):
        d = divergence(p) - u / 0.1
        g = jnp.stack([jnp.diff(d, axis=0, append=d[-1:]), jnp.diff(d, axis=1, append=d[:, -1:])])
        return (p + 0.25 * g) / (1 + 0.25 * jnp.sqrt((g * g).sum(0)))

    return u - 0.1 * divergence(lax.fori_loop(0, 5, step, jnp.zeros((2, 400, 500))))


# large transposes whose rows are no whole lines --------------------------------------------


@case("indexing", lambda g: (g.normal(294, 45, 225),))
def transpose_021_rows_of_45(x):
    return x.transpose(0, 2, 1)


@case("indexing", lambda g: (g.normal(300, 88, 224, dtype="bf16"),))
def transpose_021_rows_of_88_bf16(x):
    return x.transpose(0, 2, 1)


@case("indexing", lambda g: (g.normal(12, 12, 224, 24, 5),))
def transpose_five_dimensions_rows_of_12(x):
    return x.transpose(4, 2, 3, 1, 0)


@case("indexing", lambda g: (g.normal(40, 333, 300),))
def transpose_021_rows_of_333(x):
    return x.transpose(0, 2, 1)


@case("indexing", lambda g: (g.normal(5001, 900),))
def transpose_5001x900(x):
    return x.T


@case("conv", lambda g: (g.normal(30, 1, 256, 22), g.normal(128, 256, 3, 3, scale=0.03)))
def conv3x3_of_rows_apart(x, w):
    return lax.conv_general_dilated(x.transpose(1, 2, 3, 0), w, (1, 1), "SAME")
