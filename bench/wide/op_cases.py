"""Our own wide set of single-operation programs, to stand for the class that a benchmark samples.

They are in the groups of the public cases but share none of their programs or shapes: odd and
uneven sizes, other dtypes and layouts, and the idioms that users of JAX write. They say where
the compiler is weak in general, so nothing may be tuned to one of them alone. The harness knows
this module under the name of its other split.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")


def wide(x):
    return jnp.promote_types(x.dtype, jnp.float32)


# matmul -------------------------------------------------------------------------


def matmul(x, y):
    return x @ y


for m, k, n in ((20, 20, 20), (257, 257, 257), (768, 768, 768), (7, 3000, 513), (1000, 10, 1000),
                (50000, 3, 3), (4, 2048, 1500)):  # fmt: skip
    case("matmul", lambda g, m=m, k=k, n=n: (g.normal(m, k), g.normal(k, n)), name=f"mm_odd_{m}x{k}x{n}")(matmul)
for dtype, m, k, n in (("bf16", 384, 700, 640), ("bf16", 1, 2048, 3000), ("f16", 321, 321, 321)):
    case("matmul", lambda g, m=m, k=k, n=n, dtype=dtype: (g.normal(m, k, dtype=dtype), g.normal(k, n, dtype=dtype)),
         name=f"mm_{dtype}_{m}x{k}x{n}")(matmul)  # fmt: skip


@case("matmul", lambda g: (g.normal(300, 1000, dtype="bf16"), g.normal(200, 1000, dtype="bf16")), tol=1e-4)
def mm_bf16_to_f32_nt(x, y):
    return lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=wide(x))


@case("matmul", lambda g: (g.ints(-128, 128, 300, 770, dtype="i8"), g.ints(-128, 128, 200, 770, dtype="i8")))
def mm_i8_nt_300x770x200(x, y):
    return lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)


@case("matmul", lambda g: (g.ints(-1000, 1000, 150, 210), g.ints(-1000, 1000, 210, 90)))
def mm_i32_150x210x90(x, y):
    return x @ y


@case("matmul", lambda g: (g.rng.standard_normal((300, 250)), g.rng.standard_normal((250, 270))), x64=True)
def mm_f64_300x250x270(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(160, 200, dtype="c64"), g.normal(200, 180, dtype="c64")))
def mm_c64_160x200x180(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(1500, 2500), g.normal(1500)))
def matvec_transposed_1500(a, x):
    return a.T @ x


@case("matmul", lambda g: (g.normal(350, 400), g.normal(450, 350)))
def mm_tt_400(x, y):
    return x.T @ y.T


@case("matmul", lambda g: (g.normal(20000, 48),))
def gram_20000x48(x):
    return x.T @ x / x.shape[0]


@case("matmul", lambda g: (g.normal(37, 50, 75), g.normal(37, 75, 29)))
def bmm_37x50x75x29(x, y):
    return x @ y


@case("matmul", lambda g: (g.normal(3000, 3, 3), g.normal(3000, 20, 3)))
def bmm_rotations_3x3(r, p):
    return jnp.einsum("nij,npj->npi", r, p)


@case("matmul", lambda g: (g.normal(6, 90, 10, 40), g.normal(6, 75, 10, 40)))
def einsum_bqhd_bkhd(q, k):
    return jnp.einsum("bqhd,bkhd->bhqk", q, k)


@case("matmul", lambda g: (g.normal(200, 360), g.weight(360, 1000), g.weight(360, 1000), g.weight(1000, 360)))
def mm_swiglu_360x1000(x, gate, up, down):
    return (nn.silu(x @ gate) * (x @ up)) @ down


@case("matmul", lambda g: (g.normal(130, 500), g.weight(500, 300), g.normal(130, 300)))
def mm_dense_grads(x, w, dy):
    f = lambda x, w, b: jnp.tanh(x @ w + b)  # noqa: E731
    return jax.vjp(f, x, w, jnp.zeros(300, x.dtype))[1](dy)


@case("matmul", lambda g: (g.normal(12, 900), g.ints(-127, 128, 900, 1100, dtype="i8"), g.uniform(1100, lo=0.01)))
def mm_dequantised_weights(x, w, scale):
    return x @ (w.astype(x.dtype) * scale)


@case("matmul", lambda g: (g.normal(1000, 50), g.normal(700, 50)))
def pairwise_squared_distances(x, y):
    return jnp.square(x).sum(1)[:, None] - 2 * x @ y.T + jnp.square(y).sum(1)[None]


# elementwise and data movement ----------------------------------------------------

def plain(f):
    """`f` as a function whose source the harness can read: NumPy-like functions are objects."""
    return lambda *x: f(*x)


MATH = {
    "sin": (jnp.sin, -20, 20, 1_500_000), "cos_tan": (lambda x: (jnp.cos(x), jnp.tan(x)), -1.4, 1.4, 1_000_000),
    "arctan": (jnp.arctan, -4, 4, 1_200_000), "sinh_cosh": (lambda x: (jnp.sinh(x), jnp.cosh(x)), -4, 4, 1_000_000),
    "arcsin_arccos": (lambda x: (jnp.arcsin(x), jnp.arccos(x)), -0.99, 0.99, 1_000_000),
    "arcsinh_arctanh": (lambda x: (jnp.arcsinh(9 * x), jnp.arctanh(x)), -0.99, 0.99, 1_000_000),
    "expm1": (jnp.expm1, -3, 3, 2_000_000), "log1p": (jnp.log1p, -0.9, 5, 2_000_000),
    "log2": (jnp.log2, 0.01, 9, 2_000_000), "exp2": (jnp.exp2, -9, 9, 2_000_000),
    "sqrt": (jnp.sqrt, 0, 9, 3_000_000), "rsqrt": (lax.rsqrt, 0.01, 9, 3_000_000),
    "cbrt": (jnp.cbrt, -9, 9, 1_000_000), "sigmoid": (nn.sigmoid, -9, 9, 3_000_000),
    "softplus": (nn.softplus, -9, 9, 2_000_000), "mish": (nn.mish, -5, 5, 1_000_000),
    "elu_hard_swish": (lambda x: nn.elu(x) + nn.hard_swish(x), -4, 4, 2_000_000),
    "erfc": (jax.scipy.special.erfc, -3, 3, 1_000_000), "erf_inv": (lax.erf_inv, -0.99, 0.99, 1_000_000),
    "lgamma_digamma": (lambda x: (lax.lgamma(x), lax.digamma(x)), 0.1, 20, 400_000),
    "round": (jnp.round, -99, 99, 3_000_000),
}
for fname, (f, lo, hi, n) in MATH.items():
    case("elementwise", lambda g, lo=lo, hi=hi, n=n: (g.uniform(n, lo=lo, hi=hi),), name=f"{fname}_{n // 1000}k")(plain(f))

MATH2 = {
    "arctan2": jnp.arctan2, "logaddexp": jnp.logaddexp, "fmod": jnp.fmod, "divide": jnp.divide,
    "hypot_copysign": lambda x, y: jnp.copysign(jnp.hypot(x, y), y),
    "floor_mod": lambda x, y: jnp.mod(x, jnp.abs(y) + 1),
}  # fmt: skip
for fname, f in MATH2.items():
    case("elementwise", lambda g: (g.normal(1300, 1001), g.normal(1300, 1001)), name=f"{fname}_1300x1001")(plain(f))


@case("elementwise", lambda g: (g.normal(100),))
def scale_100(x):
    return x * 1.5


@case("elementwise", lambda g: (g.normal(33, 77), g.normal(77)))
def bias_relu_33x77(x, b):
    return nn.relu(x + b)


@case("elementwise", lambda g: (g.ints(0, 1 << 32, 2_000_000, dtype="u32"),))
def hash_u32_2m(x):
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


@case("elementwise", lambda g: (g.ints(0, 1 << 31, 1_500_000), g.ints(0, 1 << 31, 1_500_000)))
def popcount_clz_i32(x, y):
    return lax.population_count(x & y) + lax.clz(x | y)


@case("elementwise", lambda g: (g.ints(-100000, 100000, 1_500_000), g.ints(1, 1000, 1_500_000)))
def divmod_i32(x, y):
    return x // y, x % y


@case("elementwise", lambda g: (g.ints(-100000, 100000, 2_000_000),))
def i32_multiply_constant_mod(x):
    return (x * 7 + 3) % 12 - (x >> 3)


@case("elementwise", lambda g: (g.ints(0, 256, 3_000_000, dtype="u8"), g.ints(0, 256, 3_000_000, dtype="u8")))
def blend_u8_3m(x, y):
    return ((x.astype(jnp.uint16) * 3 + y.astype(jnp.uint16) + 2) >> 2).astype(jnp.uint8)


@case("elementwise", lambda g: (g.normal(1000, 1500),), tol=2e-3)
def quantise_i8(x):
    return jnp.clip(jnp.round(x * 40.0), -127, 127).astype(jnp.int8)


@case("elementwise", lambda g: (g.normal(2_000_000), g.normal(2_000_000)))
def compare_to_bool(x, y):
    return (x > y) & (jnp.abs(x) < 1.0) | (y <= -1.0)


@case("elementwise", lambda g: (g.normal(1_500_000),))
def select_piecewise(x):
    conditions = [x < -1, x < 0, x < 1]
    return jnp.select(conditions, [x * x, -x, 2 * x], jnp.sqrt(jnp.abs(x)))


@case("elementwise", lambda g: (np.where(g.uniform(1_500_000) < 0.1, np.nan, g.normal(1_500_000)),))
def nan_to_num_1500k(x):
    return jnp.nan_to_num(x, nan=0.5), jnp.isfinite(x)


@case("elementwise", lambda g: (g.normal(700_000, dtype="c64"), g.normal(700_000, dtype="c64")))
def complex_multiply_abs(x, y):
    return x * jnp.conj(y), jnp.abs(x)


@case("elementwise", lambda g: (g.normal(300_000, dtype="c64"),))
def complex_exp_angle(x):
    return jnp.exp(x), jnp.angle(x)


@case("elementwise", lambda g: (g.uniform(1_500_000, lo=-9e4, hi=9e4),), ref="cpu")
def cast_f32_i32_f16(x):
    return x.astype(jnp.int32), (x * 0.5).astype(jnp.float16)


@case("elementwise", lambda g: (g.normal(1_000_000),), ref="cpu")
def bitcast_exponent(x):
    return (lax.bitcast_convert_type(x, jnp.int32) >> 23) & 0xFF


@case("elementwise", lambda g: (g.normal(1000, 1100, dtype="f16"),), tol=1e-2)
def gelu_f16(x):
    return nn.gelu(x)


@case("elementwise", lambda g: (g.normal(1000, 1500, dtype="bf16"), g.normal(1500, dtype="bf16")))
def bf16_scale_bias_tanh(x, b):
    return jnp.tanh(x * b + b)


@case("elementwise", lambda g: (g.rng.standard_normal(700_000),), x64=True)
def exp_sin_f64(x):
    return jnp.exp(-x * x) * jnp.sin(3 * x)


@case("elementwise", lambda g: (g.normal(40, 1, 300), g.normal(1, 150, 300), g.normal(40, 150, 1)))
def bcast_three_ways(x, y, z):
    return x * y + z


@case("elementwise", lambda g: (g.normal(6, 48, 57, 57), g.normal(48), g.normal(48)))
def bcast_channels_nchw(x, scale, bias):
    return nn.relu(x * scale[:, None, None] + bias[:, None, None])


@case("elementwise", lambda g: (*(g.normal(700, 900) for _ in range(3)), g.uniform(700, 900)))
def adam_update(p, grad, m, v):
    m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad * grad
    return p - 1e-3 * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-8), m, v


@case("elementwise", lambda g: (g.normal(4, 200, 12, 40), g.normal(200, 20), g.normal(200, 20)))
def rope_interleaved(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    cos, sin = cos[:, None], sin[:, None]
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)


@case("elementwise", lambda g: (g.normal(1001, 1503),))
def transpose_1001x1503(x):
    return x.T


@case("elementwise", lambda g: (g.normal(100, 120, 130),))
def transpose_3d_reversed(x):
    return x.transpose(2, 1, 0)


@case("elementwise", lambda g: (g.normal(600, 500, 7),))
def transpose_102_minor_7(x):
    return x.swapaxes(0, 1)


@case("elementwise", lambda g: (g.ints(0, 256, 9, 200, 210, 3, dtype="u8"),))
def transpose_u8_nhwc_nchw(x):
    return x.transpose(0, 3, 1, 2)


@case("elementwise", lambda g: (g.normal(6, 30, 40, 4, 50, dtype="bf16"),))
def transpose_5d_bf16(x):
    return x.transpose(0, 3, 1, 4, 2)


@case("elementwise", lambda g: (g.normal(5, 60, 60, 36),))
def pixel_shuffle_x2(x):
    n, h, w, c = x.shape
    return x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5).reshape(n, 2 * h, 2 * w, c // 4)


@case("elementwise", lambda g: (g.normal(1000, 1203),))
def roll_two_axes(x):
    return jnp.roll(x, (17, -250), (0, 1))


@case("elementwise", lambda g: (g.normal(70, 90), g.normal(300, 500)))
def tile_and_repeat(x, y):
    return jnp.tile(x, (9, 11)), jnp.repeat(y, 3, axis=1), jnp.repeat(y, 2, axis=0)


@case("elementwise", lambda g: tuple(g.normal(400, 1000) for _ in range(3)))
def stack_last_of_three(x, y, z):
    return jnp.stack([x, y + 1, z], -1)


@case("elementwise", lambda g: (g.normal(16, 125, 125, 5), g.normal(900, 800)))
def pad_reflect_and_interior(x, y):
    return jnp.pad(x, ((0, 0), (2, 1), (1, 2), (0, 0)), mode="reflect"), lax.pad(y, y[0, 0], ((1, -3, 1), (2, 0, 0)))


@case("elementwise", lambda g: (g.normal(50, 150, 160),))
def flip_two_axes(x):
    return jnp.flip(x, (0, 2))


@case("elementwise", lambda g: (g.normal(30, 211, 301),))
def strided_slice_3d(x):
    return x[1:, 5::4, ::3] + x[:-1, :-5:4, ::3]


@case("elementwise", lambda g: (g.normal(333, 700), g.normal(410, 700), g.normal(333, 55), g.normal(410, 55)))
def concat_two_axes(a, b, c, d):
    return jnp.concatenate([jnp.concatenate([a, b], 0), jnp.concatenate([c, d], 0) * 2], 1)


@case("elementwise", lambda g: (g.normal(8, 330, 330),))
def tril_mask_fill(x):
    return jnp.where(jnp.tril(jnp.ones(x.shape[1:], bool)), x, -1e9) - jnp.triu(x, 1)


# reductions -----------------------------------------------------------------------


def reductions(shape, table, **options):
    for name, f in table.items():
        case("reduction", lambda g: (g.normal(*shape),), name=name, **options)(f)


reductions((200, 99, 101), {
    "sum_leading_of_3d": lambda x: x.sum(0), "max_middle_of_3d": lambda x: x.max(1),
    "prod_last_of_3d": lambda x: (1 + 0.01 * x).prod(2), "argmax_middle_of_3d": lambda x: x.argmax(1),
    "logsumexp_middle_of_3d": lambda x: nn.logsumexp(x, axis=1),
})  # fmt: skip
reductions((1500, 1333), {
    "argmin_columns": lambda x: x.argmin(0), "std_columns": lambda x: x.std(0, ddof=1),
    "min_max_all": lambda x: (x.min(), x.max()),
    "any_rows_all_columns": lambda x: ((x > 3.5).any(1), (x > -3.0).all(0)),
    "count_positive_columns": lambda x: (x > 0).sum(0), "norm_l1_columns": lambda x: jnp.abs(x).sum(0),
    "softmax_columns": lambda x: nn.softmax(x, axis=0), "log_softmax_rows": lambda x: nn.log_softmax(x, axis=1),
    "cumsum_columns": lambda x: jnp.cumsum(x, 0), "cummin_columns": lambda x: lax.cummin(x, axis=0),
    "l2_normalise_rows": lambda x: x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), 1e-6),
})  # fmt: skip
reductions((150_000, 7), {
    "sum_last_7": lambda x: x.sum(1), "argmax_last_7": lambda x: x.argmax(1),
    "softmax_last_7": lambda x: nn.softmax(x, axis=-1),
    "mean_std_first_150k": lambda x: (x.mean(0), x.std(0)),
})  # fmt: skip
reductions((10, 50, 50, 48), {
    "channel_sums_nhwc": lambda x: x.sum((0, 1, 2)), "global_max_pool_nhwc": lambda x: x.max((1, 2)),
    "channel_moments_nchw": lambda x: (x.mean((0, 2, 3)), x.var((0, 2, 3))),
    "softmax_axis1_of_4d": lambda x: nn.softmax(x, axis=1),
    "maxpool_3x3s2_valid": lambda x: pool(x, -jnp.inf, lax.max, (3, 3), (2, 2), "VALID"),
    "minpool_2x3_same": lambda x: -pool(-x, -jnp.inf, lax.max, (2, 3), (1, 1), "SAME"),
    "avgpool_counted_3x3s2": lambda x: pool(x, 0.0, lax.add, (3, 3), (2, 2), "SAME")
    / pool(jnp.ones((1, *x.shape[1:3], 1), x.dtype), 0.0, lax.add, (3, 3), (2, 2), "SAME"),
    "maxpool_2x2_grad": jax.grad(lambda x: jnp.square(pool(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")).sum()),
    "avgpool_5x5s5_grad": jax.grad(lambda x: jnp.square(pool(x, 0.0, lax.add, (5, 5), (5, 5), "VALID")).sum()),
})  # fmt: skip


def pool(x, init, op, window, strides, pad):
    return lax.reduce_window(x, init, op, (1, *window, 1), (1, *strides, 1), pad)


@case("reduction", lambda g: (g.normal(400, 1500, dtype="bf16"),))
def sum_softmax_bf16(x):
    return x.sum(0), nn.softmax(x, axis=-1)


@case("reduction", lambda g: (g.ints(-1000, 1000, 1100, 900),))
def sum_max_i32(x):
    return x.sum(1), x.max(0), x.argmin(1)


@case("reduction", lambda g: (g.ints(0, 256, 16, 200, 199, 3, dtype="u8"),))
def sum_u8_images(x):
    return x.astype(jnp.int32).sum((1, 2)), x.max((1, 2))


@case("reduction", lambda g: (g.ints(0, 1 << 31, 1000, 1001),))
def xor_and_reduce_i32(x):
    return lax.reduce(x, jnp.int32(0), lax.bitwise_xor, (1,)), lax.reduce(x, jnp.int32(-1), lax.bitwise_and, (0,))


@case("reduction", lambda g: (g.rng.standard_normal((900, 800)),), x64=True)
def mean_var_f64(x):
    return x.mean(0), x.var(1), x.sum()


@case("reduction", lambda g: (g.normal(8, 28, 28, 96), g.normal(96), g.normal(96)))
def group_norm_8(x, scale, bias):
    y = x.reshape(*x.shape[:3], 8, 12)
    mean, variance = y.mean((1, 2, 4), keepdims=True), y.var((1, 2, 4), keepdims=True)
    return ((y - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape) * scale + bias


@case("reduction", lambda g: (g.normal(12, 30, 31, 60), g.normal(60), g.normal(60)))
def batch_norm_train_nhwc(x, scale, bias):
    mean = x.mean((0, 1, 2))
    variance = jnp.square(x).mean((0, 1, 2)) - jnp.square(mean)
    return (x - mean) * (lax.rsqrt(variance + 1e-5) * scale) + bias, mean, variance


@case("reduction", lambda g: (g.normal(6, 40, 45, 47),))
def instance_norm_nchw(x):
    return (x - x.mean((2, 3), keepdims=True)) / jnp.sqrt(x.var((2, 3), keepdims=True) + 1e-5)


@case("reduction", lambda g: (g.normal(700, 600), g.normal(600), g.normal(700, 600)))
def layernorm_grads(x, scale, dy):
    def f(x, scale, bias):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias

    return jax.vjp(f, x, scale, jnp.zeros_like(scale))[1](dy)


@case("reduction", lambda g: (g.normal(60, 77, 90), g.ints(0, 2, 60, 1, 90, dtype="bool")))
def softmax_masked_77x90(x, mask):
    return nn.softmax(x, axis=-1, where=mask)


@case("reduction", lambda g: (g.normal(30, 200, 70),), tol=1e-3)
def cumsum_middle_reverse(x):
    return lax.cumsum(x, axis=1, reverse=True)


@case("reduction", lambda g: (g.ints(0, 10, 700_001),))
def cumsum_i32_700k(x):
    return jnp.cumsum(x)


@case("reduction", lambda g: (g.normal(300, 500),), tol=1e-3)
def cumlogsumexp_rows(x):
    return lax.cumlogsumexp(x, axis=1)


@case("reduction", lambda g: (g.uniform(70, 300, 50, lo=0.98, hi=1.02),))
def cumprod_middle(x):
    return jnp.cumprod(x, axis=1)


@case("reduction", lambda g: (g.normal(3, 12, 40, 40, 20),))
def maxpool_3d(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 3, 3, 1), (1, 2, 2, 2, 1), "SAME")


@case("reduction", lambda g: (g.normal(20, 3001),))
def window_max_1d_dilated(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 7), (1, 1), ((0, 0), (9, 9)), None, (1, 3))


@case("reduction", lambda g: (g.normal(2003, 301, dtype="f16"),))
def cumsum_f16_columns(x):
    return jnp.cumsum(x, 0)


@case("reduction", lambda g: (g.uniform(200, 1999, dtype="bf16"),), tol=2e-2)
def cumsum_bf16_rows(x):
    return jnp.cumsum(x, 1)


# convolution ------------------------------------------------------------------------

NHWC = ("NHWC", "HWIO", "NHWC")


def conv(x, w, stride=(1, 1), pad="SAME", groups=1, dilation=(1, 1), layout=NHWC):
    return lax.conv_general_dilated(x, w, stride, pad, rhs_dilation=dilation, dimension_numbers=layout,
                                    feature_group_count=groups)  # fmt: skip


def conv_case(name, x, w, dtype="f32", **options):
    fan = int(np.prod(w[:-1]))
    case("conv", lambda g: (g.normal(*x, dtype=dtype), g.weight(*w, fan_in=fan, dtype=dtype)), name=name)(
        lambda x, w: conv(x, w, **options)
    )


conv_case("conv3x3s2_27x31", (6, 27, 31, 40), (3, 3, 40, 72), stride=(2, 2))
conv_case("conv1x7_valid", (4, 30, 45, 36), (1, 7, 36, 50), pad="VALID")
conv_case("conv3x3_explicit_pad", (3, 40, 37, 20), (3, 3, 20, 30), pad=((2, 0), (1, 3)))
conv_case("conv3x3_gray_batch1", (1, 250, 333, 1), (3, 3, 1, 8))
conv_case("conv5x5s2_rgb_bf16", (2, 97, 97, 3), (5, 5, 3, 40), dtype="bf16", stride=(2, 2))
conv_case("conv3x3_bf16", (3, 24, 24, 80), (3, 3, 80, 90), dtype="bf16")
conv_case("conv3x3_batch1_7x7", (1, 7, 7, 400), (3, 3, 400, 300))
conv_case("conv16x16s16_patches", (2, 160, 192, 3), (16, 16, 3, 120), stride=(16, 16), pad="VALID")
conv_case("depthwise5x5_x2", (4, 30, 30, 72), (5, 5, 1, 144), groups=72)
conv_case("depthwise3x3s2", (6, 41, 41, 96), (3, 3, 1, 96), groups=96, stride=(2, 2))
conv_case("depthwise7x7", (2, 28, 28, 120), (7, 7, 1, 120), groups=120)
conv_case("grouped3x3s2_5groups", (4, 31, 31, 100), (3, 3, 20, 75), groups=5, stride=(2, 2))
conv_case("dilated3x3_1x3", (3, 40, 40, 40), (3, 3, 40, 48), dilation=(1, 3))
conv_case("conv3x3_nchw_19x23", (4, 50, 19, 23), (3, 3, 50, 60), layout=("NCHW", "HWIO", "NCHW"))
conv_case("conv5x5s2_nchw_oihw", (4, 12, 60, 60), (30, 12, 5, 5), stride=(2, 2), layout=("NCHW", "OIHW", "NCHW"))


@case("conv", lambda g: (g.normal(6, 700, 48), g.weight(3, 48, 80)))
def conv1d_causal_dilated(x, w):
    return lax.conv_general_dilated(x, w, (1,), [(8, 0)], rhs_dilation=(4,), dimension_numbers=("NWC", "WIO", "NWC"))


@case("conv", lambda g: (g.normal(4, 500, 300), g.normal(4, 1, 300)))
def conv1d_depthwise_causal(x, w):
    return lax.conv_general_dilated(x, w, (1,), [(3, 0)], dimension_numbers=("NWC", "WIO", "NWC"),
                                    feature_group_count=300)  # fmt: skip


@case("conv", lambda g: (g.normal(2, 1, 20_000), g.weight(40, 1, 80, fan_in=80)))
def conv1d_ncw_waveform(x, w):
    return lax.conv_general_dilated(x, w, (5,), "VALID")


@case("conv", lambda g: (g.normal(60_000), g.normal(101)))
def convolve_signal(x, k):
    return jnp.convolve(x, k, mode="same")


@case("conv", lambda g: (g.normal(2, 10, 25, 25, 12), g.weight(3, 3, 3, 12, 24)))
def conv3d_strided(x, w):
    return lax.conv_general_dilated(x, w, (1, 2, 2), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC"))


@case("conv", lambda g: (g.normal(3, 17, 19, 60), g.weight(3, 3, 60, 40)))
def conv_transpose_3x3_x2(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC)


@case("conv", lambda g: (g.normal(4, 30, 30, 36), g.weight(3, 3, 36, 48), g.normal(48)))
def conv3x3_bias_relu_pool(x, w, b):
    y = nn.relu(conv(x, w) + b)
    return pool(y, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")


@case("conv", lambda g: (g.normal(4, 24, 24, 64), g.weight(3, 3, 1, 64, fan_in=9), g.weight(1, 1, 64, 100)))
def separable_block(x, depthwise, pointwise):
    return nn.relu6(conv(nn.relu6(conv(x, depthwise, groups=64)), pointwise))


def conv_grads_case(name, x, w, **options):
    shape = jax.eval_shape(lambda x, w: conv(x, w, **options), *(jax.ShapeDtypeStruct(s, np.float32) for s in (x, w)))
    fan = int(np.prod(w[:-1]))
    case("conv", lambda g: (g.normal(*x), g.weight(*w, fan_in=fan), g.normal(*shape.shape)), name=name)(
        lambda x, w, dy: jax.vjp(lambda x, w: conv(x, w, **options), x, w)[1](dy)
    )


conv_grads_case("conv3x3s2_grads", (5, 29, 29, 32), (3, 3, 32, 56), stride=(2, 2))
conv_grads_case("conv1x1_grads", (6, 20, 21, 90), (1, 1, 90, 70))
conv_grads_case("conv1x1s2_grads", (6, 20, 22, 60), (1, 1, 60, 120), stride=(2, 2))
conv_grads_case("depthwise3x3_grads", (3, 22, 22, 50), (3, 3, 1, 50), groups=50)
conv_grads_case("conv5x5_rgb_grads", (4, 40, 40, 3), (5, 5, 3, 24))
