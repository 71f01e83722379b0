"""Products of the wide set (cases_held_out.py) whose sides differ much: few rows by weights as PyTorch keeps them,
classifier heads, coordinates, short sums; complex numbers; small products of bf16; convolutions whose windows lie side by
side, which are products, too; eigenvalues and singular values of many small matrices.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from sxs.registry import Registrar

case = Registrar("held_out")


@case("matmul", lambda g: (g.normal(1100, 1030), g.weight(1030, 24)))
def classifier_head_1100x1030x24(x, w):
    return x @ w


@case("matmul", lambda g: (g.normal(5, 2048), g.weight(2000, 2048, fan_in=2048), g.normal(2000)))
def torch_linear_5x2048x2000(x, w, b):
    return x @ w.T + b


@case("matmul", lambda g: (g.normal(9, 1500, dtype="bf16"), g.weight(1100, 1500, fan_in=1500, dtype="bf16")), tol=4e-2)
def torch_linear_bf16_9x1500x1100(x, w):
    return x @ w.T


@case("matmul", lambda g: (g.normal(17, 4096), g.normal(19, 4096)))
def similarities_17x19_of_4096(x, y):
    return x @ y.T


@case("matmul", lambda g: (g.normal(2000, 5), g.normal(5, 700)))
def factors_2000x5x700(u, v):
    return u @ v


@case("matmul", lambda g: (g.normal(200000, 3), g.normal(3)))
def plane_distances_200000x3(points, normal):
    return points @ normal


@case("matmul", lambda g: (g.normal(1000, 4, 4), g.normal(1000, 50, 4)))
def homogeneous_transforms_1000x50(m, points):
    return jnp.einsum("bij,bpj->bpi", m, points)


@case("matmul", lambda g: (g.normal(64, 500, 40), g.normal(64, 40), g.normal(64, 500)))
def batched_matvec_and_vecmat_64x500x40(a, x, y):
    return jnp.einsum("bij,bj->bi", a, x), jnp.einsum("bij,bi->bj", a, y)


@case("matmul", lambda g: (g.normal(33, 70, 90, dtype="bf16"), g.normal(33, 90, 50, dtype="bf16")), tol=4e-2)
def bmm_bf16_33x70x90x50(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(130, 140, dtype="bf16"), g.normal(140, 150, dtype="bf16")), tol=4e-2)
def mm_bf16_130x140x150(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(290, 510, dtype="c64"), g.normal(210, 510, dtype="c64")))
def mm_c64_hermitian_290x510x210(x, y):
    return x @ y.conj().T


@case("matmul", lambda g: (g.normal(50, 24, 24, dtype="c64"), g.normal(50, 24, 24, dtype="c64")))
def bmm_c64_50x24(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(500, dtype="c64"), g.normal(500, 400, dtype="c64"), g.normal(400, dtype="c64")))
def bilinear_c64_500x400(x, a, y):
    return x @ a, a @ y


@case("matmul", lambda g: (g.normal(7, 1500), g.weight(1500, 2100)))
def few_rows_7x1500x2100(x, w):
    return x @ w


@case("matmul", lambda g: (g.normal(1800, 11), g.normal(1800, 1300)))
def gradient_of_few_features_1800x11x1300(x, dy):
    return x.T @ dy, dy.T @ x


@case("matmul", lambda g: (g.normal(30000, 40),))
def gram_30000x40(x):
    return x.T @ x


@case("matmul", lambda g: (g.normal(45, 900, dtype="f64"), g.normal(900, 70, dtype="f64")), x64=True)
def mm_f64_45x900x70(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(2000, 20, 12), g.normal(2000, 12)))
def bmv_short_rows_2000x20x12(a, x):
    return jnp.einsum("bij,bj->bi", a, x)


@case("matmul", lambda g: (g.normal(80, 14, 500, dtype="bf16"), g.normal(500, 14, dtype="bf16")), tol=4e-2)
def bmv_bf16_batch_last_80x14x500(a, x):
    return jnp.einsum("ijb,bj->bi", a, x)


@case("matmul", lambda g: (g.normal(3000, 12, 7), g.normal(7, 3000)))
def bmv_vectors_side_by_side_3000x12x7(a, x):
    return jnp.einsum("bij,jb->ib", a, x)


@case("matmul", lambda g: (g.ints(-128, 128, 500, 60, 9, dtype="i8"), g.ints(-128, 128, 500, 9, dtype="i8")))
def bmv_s8_500x60x9(a, x):
    return jnp.einsum("bij,bj->bi", a, x, preferred_element_type=jnp.int32)


@case("matmul", lambda g: (g.ints(-128, 128, 300, 1500, dtype="i8"), g.ints(-128, 128, 6, 1500, dtype="i8")))
def mm_s8_few_classes_300x1500x6(x, w):
    return lax.dot_general(x, w, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)


@case("matmul", lambda g: (g.normal(700, 18, 14, dtype="c64"), g.normal(700, 14, dtype="c64")))
def bmv_c64_and_energies_700x18x14(a, x):
    y = jnp.einsum("bij,bj->bi", a, x)
    return y, jnp.einsum("bi,bi->b", y.conj(), y)


@case("matmul", lambda g: (g.normal(41, 1200, dtype="c64"), g.normal(1200, 3, dtype="c64")))
def mm_c64_few_columns_41x1200x3(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(200, 90, 8, dtype="bf16"), g.normal(200, 8, 9, dtype="bf16")), tol=4e-2)
def bmm_bf16_short_sums_200x90x8x9(x, y):
    return x @ y


@case("linalg", lambda g: (g.spd(3, 2000),), canon=lambda wv: wv[0], tol=1e-4)
def eigh_batched_3(a):
    return tuple(jnp.linalg.eigh(a))


@case("linalg", lambda g: (g.spd(11, 300),), canon=lambda wv: wv[0], tol=1e-4)
def eigh_batched_11(a):
    return tuple(jnp.linalg.eigh(a))


@case("linalg", lambda g: (g.spd(4, 1500), g.normal(1500, 4)), tol=1e-3)
def inverse_root_by_eigh_4(a, x):
    w, v = jnp.linalg.eigh(a)
    return jnp.einsum("bij,bj->bi", v, jnp.einsum("bij,bi->bj", v, x) / jnp.sqrt(w))


@case("linalg", lambda g: (g.spd(3, 1500) @ g.normal(3, 3),), tol=5e-3)
def procrustes_rotations_3x3(a):
    u, _, vt = jnp.linalg.svd(a)
    return u @ vt


@case("linalg", lambda g: (g.normal(300, 10, 10),))
def singular_values_batched_10(a):
    return jnp.linalg.svd(a, compute_uv=False)


def _patches(x, w, size, layout):
    return lax.conv_general_dilated(x, w, size, "VALID", dimension_numbers=layout)


@case("conv", lambda g: (g.normal(3, 3, 96, 112), g.weight(96, 3, 8, 8, fan_in=192)))
def patch_embedding_nchw_8x8(x, w):
    return _patches(x, w, (8, 8), ("NCHW", "OIHW", "NCHW"))


@case("conv", lambda g: (g.normal(4, 24, 24, 40), g.weight(2, 2, 40, 72), g.normal(4, 12, 12, 72)))
def downsampling_2x2_grads(x, w, dy):
    return jax.vjp(lambda x, w: _patches(x, w, (2, 2), ("NHWC", "HWIO", "NHWC")), x, w)[1](dy)


@case("conv", lambda g: (g.normal(3, 64, 18, 22), g.weight(2, 2, 32, 64, fan_in=64)))
def upsampling_2x2_nchw(x, w):
    return lax.conv_transpose(x, w, (2, 2), "VALID", dimension_numbers=("NCHW", "HWOI", "NCHW"))


@case("matmul", lambda g: (g.normal(3000, 20, 3), g.normal(3000, 3, 3)))
def points_by_rotations_3000x20x3(points, rotations):
    return points @ rotations


@case("matmul", lambda g: (g.normal(900, 6, 33), g.normal(900, 6, 3)))
def bmm_tn_short_sums_900x33x6x3(x, y):
    return jnp.einsum("bkm,bkn->bmn", x, y)


@case("matmul", lambda g: (g.normal(9000, 7, 6), g.normal(9000, 6)))
def bmv_9000x7x6(a, x):
    return jnp.einsum("bij,bj->bi", a, x)


@case("matmul", lambda g: (g.ints(-128, 128, 700, 30, 4, dtype="i8"), g.ints(-128, 128, 700, 4, 3, dtype="i8")))
def bmm_s8_narrow_700x30x4x3(x, y):
    return jnp.matmul(x, y, preferred_element_type=jnp.int32)


@case("matmul", lambda g: (g.weight(12, 18), g.normal(400, 18, 34)))
def vmapped_weights_by_signals_400x12x18x34(w, x):
    return jax.vmap(lambda signal: w @ signal)(x)


@case("matmul", lambda g: (g.normal(900, 30, dtype="bf16"), g.normal(900, 40, dtype="bf16")), tol=4e-2)
def outer_products_bf16_900x30x40(x, y):
    return jnp.einsum("bi,bj->bij", x, y)


@case("conv", lambda g: (g.normal(2, 47, 48), g.weight(300, 1, 48, fan_in=144)))
def frames_to_signal_300_by_100(frames, w):
    return lax.conv_transpose(frames, w, (100,), "VALID", dimension_numbers=("NWC", "WOI", "NWC"))


def _kernel_gradient(layout, stride=(1, 1), dilation=(1, 1), groups=1):
    def gradient(x, w, dy):
        def conv(w):
            return lax.conv_general_dilated(
                x, w, stride, "SAME", rhs_dilation=dilation, dimension_numbers=layout, feature_group_count=groups
            )

        return jax.vjp(conv, w)[1](dy)

    return gradient


_NHWC, _NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def _half(g, *shapes, dtype="bf16"):
    return tuple(g.normal(*shape, dtype=dtype) for shape in shapes)


case("conv", lambda g: _half(g, (3, 26, 30, 20), (3, 3, 20, 36), (3, 26, 30, 36)), tol=4e-2,
     name="kernel_grad_bf16_dilated")(_kernel_gradient(_NHWC, dilation=(2, 2)))  # fmt: skip
case("conv", lambda g: _half(g, (5, 24, 22, 22), (40, 24, 3, 3), (5, 40, 11, 11)), tol=4e-2,
     name="kernel_grad_bf16_nchw_s2")(_kernel_gradient(_NCHW, stride=(2, 2)))  # fmt: skip
case("conv", lambda g: _half(g, (2, 34, 34, 56), (5, 5, 1, 56), (2, 34, 34, 56)), tol=4e-2,
     name="kernel_grad_bf16_depthwise")(_kernel_gradient(_NHWC, groups=56))  # fmt: skip


@case("conv", lambda g: _half(g, (3, 26, 26, 36), (3, 3, 36, 40), dtype="f16"), tol=1e-2)
def conv3x3_f16(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=_NHWC)


@case("conv", lambda g: _half(g, (2, 30, 33, 48), (3, 3, 1, 48)), tol=4e-2)
def depthwise3x3_bf16(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=_NHWC, feature_group_count=48)
