"""Data movement: transposes that keep a few elements together, of bytes, of small matrices; padding between elements."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from sxs.registry import Registrar

case = Registrar("held_out")


@case("elementwise", lambda g: (g.normal(300, 410, 12),))
def transpose_102_minor_12(x):
    return x.swapaxes(0, 1)


@case("elementwise", lambda g: (g.ints(0, 256, 500, 610, 3, dtype="u8"),))
def transpose_image_u8(x):
    return x.swapaxes(0, 1)


@case("elementwise", lambda g: (g.ints(0, 256, 2900, 2100, dtype="u8"),))
def transpose_u8_2900x2100(x):
    return x.T


@case("elementwise", lambda g: (g.normal(4, 330, 10, 64, dtype="bf16"),))
def transpose_heads_bf16(x):
    return x.transpose(0, 2, 1, 3)


@case("elementwise", lambda g: (g.normal(40_000, 3, 3),))
def transpose_rotations_3x3(x):
    return x.swapaxes(1, 2)


@case("elementwise", lambda g: (g.normal(11, 210, 230, 3),))
def transpose_planes_of_rgb(x):
    return x.transpose(0, 3, 1, 2)


@case("elementwise", lambda g: (g.normal(90, 5, 110, 8),))
def transpose_4d_short_minor(x):
    return x.transpose(2, 1, 3, 0)


@case("elementwise", lambda g: (g.normal(500, 710), g.normal(8, 30, 31, 20)))
def pad_between_elements(x, y):
    zero = jnp.float32(0)
    return lax.pad(x, zero, [(0, 0, 0), (0, 0, 1)]), lax.pad(y, zero, [(0, 0, 0), (1, 1, 1), (1, 1, 1), (0, 0, 0)])


@case("elementwise", lambda g: (g.ints(0, 256, 16, 120, 90, 4, dtype="u8"),))
def transpose_images_u8_rgba(x):
    return x.swapaxes(1, 2)


@case("elementwise", lambda g: (g.normal(430, 610, 3, dtype="bf16"),))
def transpose_image_bf16(x):
    return x.swapaxes(0, 1)


@case("elementwise", lambda g: (g.normal(210, 330, 20, dtype="bf16"),))
def transpose_102_minor_20_bf16(x):
    return x.swapaxes(0, 1)


@case("elementwise", lambda g: (g.normal(530, 24, 240),))
def split_heads_of_24(x):
    return x.reshape(530, 24, 10, 24).transpose(0, 2, 1, 3)


@case("elementwise", lambda g: (g.normal(1700, 1900, 3),))
def transpose_points_39mb(x):
    return x.swapaxes(0, 1)


@case("elementwise", lambda g: (g.ints(0, 256, 7, 190, 230, 3, dtype="u8"),))
def rotate_images_to_float(x):
    return jnp.rot90(x, axes=(1, 2)).astype(jnp.float32) / 255


@case("elementwise", lambda g: (g.normal(6, 7, 130, 90, 5),))
def transpose_5d_pairs_of_axes(x):
    return x.transpose(0, 3, 2, 1, 4)


# Elements picked along the last axis, the same ones in all rows -----------------


@case("indexing", lambda g: (g.normal(1300, 3100), g.ints(0, 3100, 1100)))
def pick_columns_16mb(x, i):
    return x[:, i]


@case("indexing", lambda g: (g.normal(70, 900), g.ints(0, 900, 350)))
def pick_columns_small(x, i):
    return jnp.take(x, i, axis=-1, mode="clip")


@case("indexing", lambda g: (g.normal(900, 2300, dtype="bf16"), g.perm(2300)))
def permute_columns_bf16(x, i):
    return x[:, i]


@case("indexing", lambda g: (g.normal(350, 1100, dtype="c64"), g.ints(0, 1100, 700)))
def pick_columns_c64(x, i):
    return x[..., i]


@case("indexing", lambda g: (g.normal(23, 31, 640), g.ints(-640, 640, 9, 25)))
def take_last_by_table(x, i):
    return jnp.take(x, i, axis=-1)


@case("indexing", lambda g: (g.normal(800, 1700), g.ints(0, 1700, 800, 900)))
def take_along_last_of_800(x, i):
    return jnp.take_along_axis(x, i, axis=-1)


@case("indexing", lambda g: (g.normal(256), g.ints(0, 256, 480, 640, dtype="u8")))
def lookup_table_of_u8(table, image):
    return table[image]


@case("indexing", lambda g: (g.normal(6, 4000, 3), g.ints(0, 4000, 7000, 3)))
def gather_batched_vertices_of_faces(x, faces):
    return x[:, faces]


# Borders and enlargements -------------------------------------------------------


@case("elementwise", lambda g: (g.normal(6, 110, 130, 3), g.ints(0, 256, 900, 1300, dtype="u8")))
def pad_reflect_and_symmetric(x, y):
    return jnp.pad(x, ((0, 0), (3, 3), (3, 3), (0, 0)), mode="reflect"), jnp.pad(y, 2, mode="symmetric")


@case("elementwise", lambda g: (g.normal(800, 1000, dtype="bf16"), g.normal(5, 12, 70, 90)))
def pad_edge_and_wrap(x, y):
    return jnp.pad(x, 1, mode="edge"), jnp.pad(y, ((0, 0), (0, 0), (2, 1), (1, 2)), mode="wrap")


@case("elementwise", lambda g: (g.normal(5, 14, 52, 44), g.ints(0, 256, 3, 120, 130, 3, dtype="u8")))
def enlarge_by_repetition(x, y):
    up = jnp.broadcast_to(x[:, :, :, None, :, None], (5, 14, 52, 2, 44, 2)).reshape(5, 14, 104, 88)
    return up, jnp.repeat(jnp.repeat(y, 3, axis=1), 3, axis=2)
