"""Constants, and grids that are smaller than vectors: images less their means by deviations, unit conversions, boards and
lines whose short rows roll in loops, planes of wrapped arrays, parts that are turned and joined. Each stands for a class
that was slower than on XLA:CPU, or slower to compile.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from sxs.registry import Registrar

case = Registrar("held_out")

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)

# constants -----------------------------------------------------------------------------------------


@case("elementwise", lambda g: (g.ints(0, 256, 12, 200, 180, 3, dtype="u8"),))
def images_less_their_means(u):
    return (u.astype(jnp.float32) / 255.0 - MEAN) / STD


@case("elementwise", lambda g: (g.ints(0, 256, 12, 200, 180, 3, dtype="u8"),))
def images_less_their_means_nchw(u):
    return jnp.transpose((u.astype(jnp.float32) / 255.0 - MEAN) / STD, (0, 3, 1, 2))


@case("elementwise", lambda g: (g.normal(700_000) * 100,))
def fahrenheit_to_kelvin(t):
    return (t - 32.0) / 1.8 + 273.15


@case("elementwise", lambda g: (g.normal(300_000), g.uniform(300_000)))
def ratios_of_constants(x, y):
    return x / 3.0 + y / 7.0 - (x / 11.0) / (y / 13.0 + 1.0)


@case("elementwise", lambda g: (g.ints(0, 256, 2_000_000, dtype="u8"),))
def bytes_to_signed_units(u):
    return u.astype(jnp.float32) / 127.5 - 1.0


# short rows in loops -------------------------------------------------------------------------------


def life(board, _):
    shifts = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
    n = sum(jnp.roll(board.astype(jnp.int8), s, (0, 1)) for s in shifts)
    return (n == 3) | (board & (n == 2)), jnp.count_nonzero(board)


@case("control", lambda g: (g.ints(0, 2, 33, 27, dtype="i8").astype(bool),))
def life_33x27(board):
    return lax.scan(life, board, None, length=16)


@case("control", lambda g: (g.ints(0, 2, 26, 52, dtype="i8").astype(bool),))
def life_26x52(board):
    return lax.scan(life, board, None, length=16)


@case("control", lambda g: (g.uniform(50, 11),))
def heat_with_cold_edges_50x11(u):
    def step(_, u):
        p = jnp.pad(u, 1)
        return u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)

    return lax.fori_loop(0, 25, step, u)


@case("control", lambda g: (g.normal(30, 13),))
def waves_on_a_ring_30x13(u):
    def step(state, _):
        u, v = state
        v = v + 0.2 * (jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 2 * u)
        return (u + v, v), None

    return lax.scan(step, (u, jnp.zeros_like(u)), None, length=30)[0]


@case("control", lambda g: (1 + g.uniform(3, 40, 36),))
def planes_with_repeated_edges_3x40x36(q):
    def step(q, _):
        p = jnp.pad(q, ((0, 0), (1, 1), (0, 0)), mode="edge")
        speed = p[1] / p[0]
        flux = p * speed
        return q - 0.01 * (flux[:, 2:] - flux[:, :-2]), q[0].max()

    return lax.scan(step, q, None, length=15)


@case("control", lambda g: (g.uniform(2, 40, 70),))
def two_species_by_depthwise_convolution(s):
    ring = jnp.array([[0.05, 0.2, 0.05], [0.2, -1, 0.2], [0.05, 0.2, 0.05]], jnp.float32)
    kernel = jnp.tile(ring, (2, 1, 1, 1)).astype(s.dtype)

    def step(_, s):
        p = jnp.pad(s[None], ((0, 0), (0, 0), (1, 1), (1, 1)), mode="wrap")
        spread = lax.conv_general_dilated(p, kernel, (1, 1), "VALID", feature_group_count=2)[0]
        r = s[0] * s[1] ** 2
        return s + 0.5 * spread + 0.01 * jnp.stack([-r, r])

    return lax.fori_loop(0, 12, step, s)


@case("control", lambda g: (g.uniform(37, 8), np.cumsum(g.uniform(37, 8), 1)), tol=1e-3)
def rates_of_return_by_newton(flows, years):
    flows = jnp.concatenate([-flows.sum(1, keepdims=True) / 1.5, flows], 1)
    years = jnp.concatenate([jnp.zeros_like(years[:, :1]), years], 1)

    def step(_, r):
        value = (flows * (1 + r[:, None]) ** (-years)).sum(1)
        slope = (-years * flows * (1 + r[:, None]) ** (-years - 1)).sum(1)
        return jnp.clip(r - value / slope, -0.5, 2.0)

    return lax.fori_loop(0, 12, step, jnp.full(flows.shape[:1], 0.1, flows.dtype))


# parts in place ------------------------------------------------------------------------------------


@case("indexing", lambda g: (g.normal(40, 17, 17, 5),))
def eight_orientations_17x17x5(x):
    turns = [jnp.rot90(x, k, (1, 2)) for k in range(4)]
    return jnp.concatenate(turns + [t[:, :, ::-1] for t in turns])


@case("indexing", lambda g: (g.normal(260, 300), g.normal(300, 200), g.normal(150, 200)))
def products_and_rows_joined(a, b, c):
    return jnp.concatenate([a @ b, jnp.sort(c, 0), jnp.tanh(c)])
