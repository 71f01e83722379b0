"""Reductions of any length and of rows that are told apart, and bytes from anywhere, of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from sxs.registry import Registrar

case = Registrar("held_out")

# lengths that few numbers divide --------------------------------------------------------------


@case("reduction", lambda g: (g.normal(373219), g.normal(373219)))
def squared_distance_373219(x, y):
    return ((x - y) ** 2).mean()


@case("reduction", lambda g: (g.normal(1000003), g.normal(1000003)))
def log_loss_1000003(x, y):
    return (jax.nn.softplus(x) - x * (y > 0)).mean()


@case("reduction", lambda g: (g.normal(400009),))
def softmax_of_one_row_400009(x):
    return jax.nn.softmax(x), jax.nn.logsumexp(x)


@case("reduction", lambda g: (g.normal(1031, 1009),))
def norm_of_all_1031x1009(x):
    return jnp.sqrt((x * x).sum()), x.max()


@case("reduction", lambda g: (g.normal(10007, 50), g.normal(10007, 50)))
def weighted_columns_10007x50(x, w):
    return (x * w).sum(0)


@case("reduction", lambda g: (g.normal(100003, 3),))
def centre_of_points_100003(x):
    return x.mean(0)


@case("reduction", lambda g: (g.ints(0, 10, 500009),))
def counts_by_one_hot_500009(k):
    return jax.nn.one_hot(k, 10).sum(0)


@case("matmul", lambda g: (g.normal(373219), g.normal(373219)))
def cosine_of_vectors_373219(x, y):
    return (x @ y) / (jnp.linalg.norm(x) * jnp.linalg.norm(y))


# rows that are told apart ---------------------------------------------------------------------


@case("reduction", lambda g: (g.normal(4, 120, 130, 3),))
def total_variation_of_images(x):
    return jnp.abs(x[:, 1:] - x[:, :-1]).sum() + jnp.abs(x[:, :, 1:] - x[:, :, :-1]).sum()


@case("reduction", lambda g: (g.normal(1031, 370),))
def autocorrelation_by_rolls(x):
    return (x * jnp.roll(x, 1, 1)).sum(), (x * jnp.roll(x, 1, 0)).sum()


@case("reduction", lambda g: (g.normal(1031, 370),))
def squared_laplacian_by_rolls(x):
    around = jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)
    return ((around - 4 * x) ** 2).sum()


@case("reduction", lambda g: (g.normal(1031, 370),))
def triangle_and_crop(x):
    return jnp.triu(x).sum(), (x[3:-3, 3:-3] ** 2).sum()


@case("reduction", lambda g: (g.normal(64, 37, 41), g.normal(64, 41, 37)))
def product_with_transposed(x, y):
    return (x * y.transpose(0, 2, 1)).sum()


@case("reduction", lambda g: (g.normal(68421, 19),))
def greatest_of_rows_of_19(x):
    return x.max(-1)


# bytes and halves from anywhere ---------------------------------------------------------------


@case("indexing", lambda g: (g.normal(2000, 12) > 0, g.ints(0, 12, 20)))
def take_columns_of_masks(x, i):
    return jnp.take(x, i, axis=1)


@case("indexing", lambda g: (g.ints(0, 255, 53, 321, 39).astype("uint8"), g.ints(0, 53, 53, 321, 39)))
def take_along_first_of_bytes(x, i):
    return jnp.take_along_axis(x, i, 0)


@case("indexing", lambda g: (g.normal(142, 24, 274).astype("float16"), g.ints(0, 142, 142, 24, 274)))
def take_along_first_of_halves(x, i):
    return jnp.take_along_axis(x, i, 0)


# a few long rows ------------------------------------------------------------------------------


@case("linalg", lambda g: (g.normal(13, 21600),))
def fft_of_13_rows(x):
    return jnp.abs(jnp.fft.fft(x)), jnp.fft.rfft(x)


@case("elementwise", lambda g: (g.normal(300001),))
def softplus_of_steps(x):
    return jnp.log1p(jnp.exp(x[1:] - x[:-1])), lax.exp(x[:-1])


# columns of short rows, which come from memory ------------------------------------------------


@case("reduction", lambda g: (g.normal(48, 700, 256),))
def mean_square_of_middle_256(x):
    return (x * x).mean(1)


@case("reduction", lambda g: (g.normal(50000, 128),))
def greatest_of_columns_50000x128(x):
    return x.max(0)
