"""Rows shorter than a vector, columns of long rows, and updates of rows and columns, of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from sxs.registry import Registrar

case = Registrar("held_out")

# rows of less than a vector -------------------------------------------------------------------


def u8(g, *shape):
    return g.ints(0, 255, *shape).astype("uint8")


def mask(g, *shape):
    return g.normal(*shape) > 0


@case("indexing", lambda g: (u8(g, 3000, 37),))
def pad_u8_rows_of_37(x):
    return jnp.pad(x, ((1, 0), (0, 3)))


@case("indexing", lambda g: (u8(g, 3000, 25),))
def roll_u8_rows_of_25(x):
    return jnp.roll(x, 2, 1), x[:, 1:-1]


@case("indexing", lambda g: (g.normal(200, 20, 20).astype("float16"),))
def pad_f16_all_around(x):
    return jnp.pad(x, 1)


@case("indexing", lambda g: (g.normal(400, 50, 7),))
def pad_f32_rows_of_7(x):
    return jnp.pad(x, ((0, 0), (1, 1), (2, 0)))


@case("elementwise", lambda g: (mask(g, 3000, 25), mask(g, 3000, 1), mask(g, 25)))
def masks_of_25_by_rows_and_columns(x, rows, columns):
    return x & rows, x | columns


@case("elementwise", lambda g: (u8(g, 500, 30, 22), u8(g, 22)))
def bias_u8_of_22(x, b):
    return x * b + b


@case("indexing", lambda g: (g.normal(13, 131, 53, 13).astype("float16"),))
def tile_f16_rows_of_13(x):
    return jnp.tile(x, (2, 1, 1, 1))


@case("indexing", lambda g: (u8(g, 500, 12), g.normal(500, 12).astype("float16"), g.ints(0, 500, 3000)))
def gather_narrow_rows_of_12(x, y, i):
    return x[i], y[i]


@case("indexing", lambda g: (g.normal(19, 45, 11), g.ints(0, 45, 58)))
def take_middle_rows_of_11(x, i):
    return jnp.take(x, i, axis=1)


# columns --------------------------------------------------------------------------------------


@case("indexing", lambda g: (g.normal(300, 2123), g.ints(-99, 99, 300, 1501).astype("int16")))
def columns_of_long_rows(x, y):
    return x[:, 1061] * x[:, 1060], y[:, 700] + 1


@case("reduction", lambda g: (g.normal(48, 2123),))
def median_of_rows_2123(x):
    return jnp.median(x, 1)


@case("indexing", lambda g: (g.normal(290, 402), g.ints(0, 402, 100), g.normal(290, 100)))
def set_and_add_columns(x, j, u):
    return x.at[:, j].set(1.0), x.at[:, j].add(u)


# updates of rows ------------------------------------------------------------------------------


@case("indexing", lambda g: (g.normal(3000, 64), g.ints(0, 3000, 9000), g.normal(9000, 64)))
def scatter_add_rows_of_64(x, i, u):
    return x.at[i].add(u)


@case("indexing", lambda g: (g.normal(10000, 72), g.ints(0, 500, 10000)))
def segment_sum_rows_of_72(x, i):
    return jax.ops.segment_sum(x, i, num_segments=500)


@case("indexing", lambda g: (g.normal(5000, 36), g.ints(0, 5000, 8192), g.normal(8192, 36)))
def embedding_grad_of_36(t, i, dy):
    return jax.vjp(lambda t: t[i], t)[1](dy)[0]


@case("indexing", lambda g: (g.normal(500, 500),))
def set_a_row_of_a_megabyte(x):
    return x.at[3].set(0.0)


@case("indexing", lambda g: (g.normal(5000), g.ints(0, 4600, 1000), g.normal(1000, 400)))
def gradient_of_overlapping_frames(x, starts, dy):
    frames = lambda x: jax.vmap(lambda s: lax.dynamic_slice(x, (s,), (400,)))(starts)  # noqa: E731
    return jax.vjp(frames, x)[1](dy)[0]


@case("indexing", lambda g: (g.normal(200, 40), g.ints(0, 40, 3000, 2), g.normal(3000, 100, 1)))
def gradient_of_overlapping_columns(x, starts, dy):
    pieces = lambda x: jax.vmap(lambda s: lax.dynamic_slice(x, (s[0], s[1]), (100, 1)))(starts)  # noqa: E731
    return jax.vjp(pieces, x)[1](dy)[0]


# gradients of kernels; angles -----------------------------------------------------------------


def kernel_gradient(x, dy, kernel, layout):
    conv = lambda w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)  # noqa: E731
    return jax.vjp(conv, jnp.zeros(kernel))[1](dy)[0]


@case("conv", lambda g: (g.normal(8, 3, 48, 48), g.normal(8, 32, 48, 48)))
def kernel_grad_1x1_of_rgb_planes(x, dy):
    return kernel_gradient(x, dy, (32, 3, 1, 1), ("NCHW", "OIHW", "NCHW"))


@case("conv", lambda g: (g.normal(16, 14, 14, 256), g.normal(16, 14, 14, 64)))
def kernel_grad_1x1_256_to_64(x, dy):
    return kernel_gradient(x, dy, (1, 1, 256, 64), ("NHWC", "HWIO", "NHWC"))


@case("elementwise", lambda g: (g.normal(1000003, scale=5.0),))
def sine_plus_cosine(x):
    return jnp.sin(x) + jnp.cos(x), jnp.exp(1j * x)


# windows of short rows ------------------------------------------------------------------------


@case("indexing", lambda g: (u8(g, 3000, 60), u8(g, 2000, 100)))
def clear_blocks_of_bytes(x, y):
    return x.at[100:-100, 5:45].set(0), y.at[:, 5:14].set(1)


@case("indexing", lambda g: (g.normal(2000, 30).astype("float16"), g.normal(1000, 11).astype("float16")))
def set_block_of_halves(x, y):
    return x.at[100:1100, 5:16].set(y), x.at[:1000, 2:13].add(y)


@case("indexing", lambda g: (u8(g, 166, 69, 51),))
def repeated_edges_of_bytes(x):
    return jnp.pad(x, ((0, 3), (1, 1), (3, 2)), mode="edge")
