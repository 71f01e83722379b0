"""Computed tables that are looked up, groups of channels, words read as bytes, stacks that are joined, small integer
products, sums over labelled pixels, adjoints of interpolation. Each stands for a class that was slower than on XLA:CPU.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")

# tables that are computed --------------------------------------------------------------------------


def multiplied(p, q):
    """The product of quaternions"""
    w, x, y, z = (p[..., i] for i in range(4))
    a, b, c, d = (q[..., i] for i in range(4))
    return jnp.stack(
        [w * a - x * b - y * c - z * d, w * b + x * a + y * d - z * c, w * c - x * d + y * a + z * b, w * d + x * c - y * b + z * a], -1
    )


@case("indexing", lambda g: (g.normal(30, 4), g.normal(30, 3), g.ints(0, 30, 3000, 4), g.uniform(3000, 4), g.normal(3000, 3)))
def skinning_by_dual_quaternions(turns, shifts, bones, weights, points):
    turns = turns / jnp.linalg.norm(turns, axis=-1, keepdims=True)
    moves = 0.5 * multiplied(jnp.pad(shifts, ((0, 0), (1, 0))), turns)
    mixed = jnp.einsum("vk,vkd->vd", weights, jnp.concatenate([turns, moves], -1)[bones])
    mixed = mixed / jnp.linalg.norm(mixed[:, :4], axis=-1, keepdims=True)
    r, d = mixed[:, :4], mixed[:, 4:]
    u = r[:, 1:]
    uv = jnp.cross(u, points)
    shift = 2 * multiplied(d, r * jnp.array([1, -1, -1, -1], r.dtype))[:, 1:]
    return points + 2 * (r[:, :1] * uv + jnp.cross(u, uv)) + shift


@case("indexing", lambda g: (g.normal(200, 6), g.ints(0, 200, 40_000)))
def rows_of_a_table_of_features(table, index):
    features = jnp.concatenate([jnp.sin(table), table * table, jnp.maximum(table, 0)], -1)
    return features[index].sum(-1)


# groups of channels --------------------------------------------------------------------------------


@case("reduction", lambda g: (g.normal(3, 40, 40, 96), g.normal(96), g.normal(96)))
def group_norm_silu_nhwc(x, scale, shift):
    groups = x.reshape(x.shape[0], -1, 12, 8)
    mean = groups.mean((1, 3), keepdims=True)
    variance = (groups * groups).mean((1, 3), keepdims=True) - mean**2
    y = ((groups - mean) / jnp.sqrt(variance + 1e-5)).reshape(x.shape) * scale + shift
    return y * nn.sigmoid(y)


@case("reduction", lambda g: (g.ints(0, 17, 3, 200, 190, dtype="u8"),))
def areas_and_centres_of_classes(labels):
    hot = nn.one_hot(labels, 17, dtype=jnp.float32)
    area = hot.sum((1, 2)) + 1
    y = jnp.einsum("nhwk,h->nk", hot, jnp.arange(200, dtype=jnp.float32) / 199)
    x = jnp.einsum("nhwk,w->nk", hot, jnp.arange(190, dtype=jnp.float32) / 189)
    return area, y / area, x / area


# words and integers --------------------------------------------------------------------------------


@case("control", lambda g: (g.ints(0, 1 << 30, 16, dtype="u32"), g.ints(0, 256, 64 * 150, dtype="u8")))
def keystream_of_quarter_rounds(state, text):
    blocks = text.shape[0] // 64
    rows = [jnp.broadcast_to(word, (blocks,)) for word in state]
    rows[12] = rows[12] + jnp.arange(blocks, dtype=jnp.uint32)

    def turned(x, n):
        return (x << n) | (x >> (32 - n))

    def quarter(s, a, b, c, d):
        s[a] = s[a] + s[b]
        s[d] = turned(s[d] ^ s[a], 16)
        s[c] = s[c] + s[d]
        s[b] = turned(s[b] ^ s[c], 12)

    def rounds(_, s):
        s = list(s)
        for i in range(4):
            quarter(s, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        return tuple(s)

    stream = jnp.stack([x + y for x, y in zip(lax.fori_loop(0, 6, rounds, tuple(rows)), rows)], 1)
    return text ^ lax.bitcast_convert_type(stream, jnp.uint8).reshape(-1)


@case("matmul", lambda g: (g.ints(-128, 128, 1500, 4, 4),))
def integer_transforms_of_4x4(x):
    c = jnp.array([[1, 1, 1, 1], [2, 1, -1, -2], [1, -1, -1, 1], [1, -2, 2, -1]], jnp.int32)
    w = jnp.einsum("ij,bjk,lk->bil", c, x, c)
    z = jnp.sign(w) * ((jnp.abs(w) * 3277 + (1 << 13)) >> 15)
    return z.astype(jnp.int16), (z != 0).sum((1, 2))


# joined stacks, adjoints ---------------------------------------------------------------------------


@case("indexing", lambda g: (g.normal(400, 3, 3),))
def triangles_subdivided(t):
    for _ in range(2):
        a, b, c = t[:, 0], t[:, 1], t[:, 2]
        ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
        corners = ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))
        t = jnp.concatenate([jnp.stack(x, 1) for x in corners])
    return t / jnp.sqrt((t * t).sum(-1, keepdims=True) + 0.01)


@case("indexing", lambda g: (g.uniform(40, 36), g.uniform(8, lo=0.0, hi=3.0)), tol=1e-3)
def projections_and_their_adjoint(image, angles):
    y, x = (v - c for v, c in zip(jnp.meshgrid(jnp.arange(40.0), jnp.arange(36.0), indexing="ij"), (19.5, 17.5)))

    def project(image, angle):
        at = [jnp.cos(angle) * y - jnp.sin(angle) * x + 19.5, jnp.sin(angle) * y + jnp.cos(angle) * x + 17.5]
        return jax.scipy.ndimage.map_coordinates(image, at, order=1, mode="constant").sum(0)

    lines, back = jax.vjp(lambda image: jax.vmap(project, (None, 0))(image, angles), image)
    return lines, back(lines)[0]
