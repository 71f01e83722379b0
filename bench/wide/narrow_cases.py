"""Narrow products, choices among few, and reductions of what is computed on the way, of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")

# choices among few -----------------------------------------------------------------------


@case("reduction", lambda g: (g.normal(55000, 10),))
def argmax_of_10_classes(x):
    return x.argmax(-1)


@case("reduction", lambda g: (g.normal(40000, 13), g.ints(0, 13, 40000)))
def accuracy_of_13_classes(x, y):
    return (x.argmax(-1) == y).mean()


@case("reduction", lambda g: (g.normal(30000, 24, dtype="bf16"),))
def argmin_of_24_bf16(x):
    return x.argmin(-1)


@case("reduction", lambda g: (g.normal(50000, 11),))
def max_and_argmax_of_11(x):
    return x.max(-1), x.argmax(-1)


@case("reduction", lambda g: (g.normal(50000, 9),))
def spread_of_rows_of_9(x):
    return jnp.ptp(x, -1)


# whole arrays, of what is computed -------------------------------------------------------


@case("reduction", lambda g: (g.normal(3000000),))
def norm_of_3m(x):
    return jnp.linalg.norm(x)


@case("reduction", lambda g: (g.normal(1500, 1400), g.normal(1500, 1400)))
def mean_squared_difference_2m(x, y):
    return jnp.square(x - y).mean()


@case("reduction", lambda g: (g.normal(4000000, dtype="bf16"),))
def sum_of_4m_bf16(x):
    return x.sum()


@case("reduction", lambda g: (g.normal(900, 900), g.normal(900, 400), g.normal(900)))
def global_norm_of_three(a, b, c):
    return jnp.sqrt(sum(jnp.square(x).sum() for x in (a, b, c)))


@case("reduction", lambda g: (g.ints(0, 255, 900, 900, 3, dtype="u8"),))
def mean_of_image_bytes(x):
    return x.astype(jnp.float32).mean()


# tall by narrow --------------------------------------------------------------------------


@case("matmul", lambda g: (g.normal(20000, 20), g.normal(20, 20)))
def nt_20000x20x20(x, w):
    return x @ w.T


@case("matmul", lambda g: (g.normal(12000, 90), g.normal(7, 90)))
def nt_12000x90x7(x, w):
    return x @ w.T


@case("matmul", lambda g: (g.normal(1800, 900), g.normal(1800, 18)))
def tn_900x1800x18(x, y):
    return x.T @ y


@case("matmul", lambda g: (g.normal(1700, 1900), g.normal(1900, 16)))
def nn_1700x1900x16(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(30000, 60, dtype="bf16"), g.normal(60, 9, dtype="bf16")))
def nn_bf16_30000x60x9(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(25000, 4, dtype="f16"), g.normal(4, 50, dtype="f16")))
def nn_f16_25000x4x50(x, y):
    return x @ y


@case("model", lambda g: (g.normal(30000, 3, dtype="bf16"), g.normal(3, 64, dtype="bf16"), g.normal(64, dtype="bf16"),
                          g.normal(64, 6, dtype="bf16")))  # fmt: skip
def point_mlp_bf16(v, a, b, c):
    return jnp.tanh(v @ a + b) @ c


@case("matmul", lambda g: (g.normal(36, 100, 48, dtype="bf16"), g.normal(36, 110, 48, dtype="bf16")))
def bmm_nt_bf16_36x100x48x110(x, y):
    return jnp.einsum("bik,bjk->bij", x, y)


@case("matmul", lambda g: (g.ints(0, 50, 9000, dtype="u8"), g.ints(0, 50, 9000, 66, dtype="u8")))
def vector_by_matrix_of_bytes(v, m):
    return v @ m


@case("matmul", lambda g: (g.ints(-9, 9, 7, 6000, dtype="i8"), g.ints(-9, 9, 7, 6000, 6, dtype="i8")))
def batched_vectors_by_matrices_of_bytes(v, m):
    return jnp.einsum("bi,bij->bj", v, m)


# rows ------------------------------------------------------------------------------------


@case("attention", lambda g: (g.normal(1100, 900, dtype="bf16"),))
def softmax_of_bf16_rows(x):
    return nn.softmax(x)


@case("indexing", lambda g: (g.normal(1000, 1024),))
def rolled_and_transposed(x):
    return jnp.roll(x, -1, 1).T


@case("reduction", lambda g: (g.normal(110, 260),))
def second_derivative_of_products(x):
    def f(a):
        return (jnp.prod(1 + 0.01 * a, 1) ** 2).sum()

    return jax.jvp(jax.grad(f), (x,), (jnp.cos(x),))[1]


@case("conv", lambda g: (g.normal(24, 30, 30, 4), g.normal(3, 3, 4, 32)))
def conv3x3_of_4_to_32(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
