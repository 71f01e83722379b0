"""How people write it: small matrices by stacks of stacks, tables of places made with NumPy before the program, powers of
halves, walks with a key a step, parts joined and then summed. Each stands for a class that was slower than on XLA:CPU.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")

# small matrices of each point ----------------------------------------------------------------------


def columns(*rows):
    """The matrices whose columns these are"""
    return jnp.stack([jnp.stack(row, -1) for row in rows], -1)


@case("elementwise", lambda g: (g.normal(20_000),))
def rotations_by_columns_20000(t):
    c, s = jnp.cos(t), jnp.sin(t)
    one, zero = jnp.ones_like(t), jnp.zeros_like(t)
    return columns((c, s, zero), (-s, c, zero), (zero, zero, one))


@case("elementwise", lambda g: (g.normal(9000, 4),))
def quaternions_to_columns_9000(q):
    w, x, y, z = q.T
    return columns(
        (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)),
        (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)),
        (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)),
    )


@case("elementwise", lambda g: (g.normal(15_000, 6),))
def frames_of_two_vectors_15000(x):
    a, b = x[:, :3], x[:, 3:]
    e = a / jnp.linalg.norm(a, axis=-1, keepdims=True)
    u = b - jnp.sum(e * b, -1, keepdims=True) * e
    f = u / jnp.linalg.norm(u, axis=-1, keepdims=True)
    return jnp.stack([e, f, jnp.cross(e, f)], -1)


@case("elementwise", lambda g: (g.normal(12_000), g.normal(12_000, 3)))
def poses_by_concatenates_12000(t, p):
    c, s, z = jnp.cos(t), jnp.sin(t), jnp.zeros_like(t)
    r = columns((c, s, z), (-s, c, z), (z, z, z + 1))
    last = jnp.broadcast_to(jnp.array([0, 0, 0, 1], t.dtype), (t.shape[0], 1, 4))
    return jnp.concatenate([jnp.concatenate([r, p[:, :, None]], -1), last], 1)


@case("linalg", lambda g: (g.normal(12_000, 3, 3),), tol=1e-3)
def inverses_by_cross_products_12000(m):
    a, b, c = m[:, 0], m[:, 1], m[:, 2]
    x = jnp.stack([jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)], -1)
    det = jnp.sum(a * x[..., 0], -1)
    return x / (det + jnp.sign(det))[:, None, None]


# tables of places ----------------------------------------------------------------------------------


@case("indexing", lambda g: (g.normal(40_000),))
def frames_by_a_table_of_places(x):
    at = np.arange(400)[None] + 150 * np.arange(264)[:, None]
    return x[at] * np.hanning(400).astype(np.float32)


@case("indexing", lambda g: (g.normal(30_000),))
def frames_of_reflected_signal(x):
    at = np.arange(256)[None] + 100 * np.arange(300)[:, None]
    return jnp.pad(x, 128, mode="reflect")[at]


@case("indexing", lambda g: (g.normal(3000),))
def greatest_of_windows_by_a_table(x):
    return x[np.arange(2950)[:, None] + np.arange(50)[None]].max(1)


@case("indexing", lambda g: (g.normal(100, 110),))
def patches_by_tables_of_places(x):
    at, within = 4 * np.arange(23), np.arange(8)
    return x[at[:, None, None, None] + within[:, None], at[None, :, None, None] + within]


@case("attention", lambda g: (g.normal(2, 5, 130, 20), g.normal(2, 5, 130, 20), g.normal(31, 5)))
def scores_with_biases_by_distance(q, k, table):
    d = np.clip(np.arange(130)[None] - np.arange(130)[:, None], -15, 15) + 15
    return nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k) + table[d].transpose(2, 0, 1))


# powers --------------------------------------------------------------------------------------------


@case("elementwise", lambda g: (g.uniform(700_000, lo=0.1, hi=5.0),))
def power_of_one_half(x):
    return x**0.5


@case("elementwise", lambda g: (g.normal(260, 3),))
def forces_by_power_of_minus_three_halves(p):
    d = p[:, None] - p[None]
    return (d * ((d * d).sum(-1) + 0.01)[..., None] ** -1.5).sum(1)


# steps that take their own -------------------------------------------------------------------------


@case("control", lambda g: (g.key(), g.normal()), ref="cpu")
def walk_with_a_key_a_step_1500(key, x):
    def step(x, key):
        x = x + 0.02 * (1 - x) + 0.1 * jax.random.normal(key)
        return x, x

    return lax.scan(step, x, jax.random.split(key, 1500))[1]


@case("control", lambda g: (g.key(), g.normal(3)), ref="cpu")
def walk_with_folded_keys_900(key, x):
    def step(x, i):
        x = 0.9 * x + jax.random.uniform(jax.random.fold_in(key, i), (3,))
        return x, x.sum()

    return lax.scan(step, x, jnp.arange(900))[1]


@case("control", lambda g: (g.normal(4000),))
def decay_with_squashed_inputs_4000(x):
    return lax.scan(lambda c, v: (0.9 * c + jnp.tanh(v), c * jnp.exp(-v * v)), jnp.zeros((), x.dtype), x)


@case("control", lambda g: (g.normal(12_000), g.ints(0, 4, 12_000)))
def one_of_four_instructions_12000(x, op):
    ops = [lambda a, v: 0.9 * a + v, lambda a, v: jnp.maximum(a, v), lambda a, v: a - 0.1 * jnp.sign(v), lambda a, v: 0.5 * a]

    def step(a, t):
        a = lax.switch(t[1], ops, a, t[0])
        return a, a

    return lax.scan(step, jnp.zeros((), x.dtype), (x, op))[1]


# parts ---------------------------------------------------------------------------------------------


@case("reduction", lambda g: (g.normal(4, 120, 120, 3),))
def pixels_by_four_less_their_means(x):
    a = jnp.concatenate([x[:, ::2, ::2], x[:, 1::2, ::2], x[:, ::2, 1::2], x[:, 1::2, 1::2]], -1)
    return a - a.mean((1, 2), keepdims=True)


@case("reduction", lambda g: (g.normal(180, 210),))
def structure_tensor_5x5(x):
    def box(z):
        return lax.reduce_window(z, jnp.zeros((), z.dtype), lax.add, (5, 5), (1, 1), "SAME")

    a, b = jnp.gradient(x)
    return box(a * a), box(a * b), box(b * b)


@case("indexing", lambda g: (g.ints(0, 256, 10, 48, 48, 3, dtype="u8"),))
def turned_and_mirrored_images_u8(x):
    turned = [jnp.rot90(x, k, axes=(1, 2)) for k in range(4)]
    return jnp.concatenate(turned + [jnp.flip(t, 2) for t in turned])


@case("reduction", lambda g: (g.ints(0, 3, 2500, 6, 7),))
def boards_with_four_in_a_row(b):
    def wins(m):
        across = m[:, :, :-3] & m[:, :, 1:-2] & m[:, :, 2:-1] & m[:, :, 3:]
        down = m[:, :-3] & m[:, 1:-2] & m[:, 2:-1] & m[:, 3:]
        return across.any((1, 2)) | down.any((1, 2))

    return wins(b == 1), wins(b == 2)


@case("reduction", lambda g: (g.normal(400_000, dtype="c64"),))
def sums_so_far_of_complex_numbers(x):
    return jnp.cumsum(x)
