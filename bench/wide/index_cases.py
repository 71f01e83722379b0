"""Single operations, second part: sorting, gathering and scattering, random numbers, transforms, dense linear algebra of the wide set; see op_cases.py."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")


# sorting, gathering, scattering -----------------------------------------------------


@case("indexing", lambda g: (g.ints(-(1 << 30), 1 << 30, 200_000),))
def sort_i32_200k(x):
    return jnp.sort(x)


@case("indexing", lambda g: (g.normal(100_000),))
def sort_descending_100k(x):
    return jnp.sort(x, descending=True)


@case("indexing", lambda g: (g.normal(700, 300),))
def sort_columns_700x300(x):
    return jnp.sort(x, axis=0)


@case("indexing", lambda g: (g.normal(5000, 20),))
def sort_short_rows_20(x):
    return jnp.sort(x, axis=-1)


@case("indexing", lambda g: (g.ints(0, 300, 50_000), g.normal(50_000), np.arange(50_000, dtype=np.int32)))
def sort_three_operands(a, b, c):
    return lax.sort((a, b, c), num_keys=2)


@case("indexing", lambda g: (g.ints(0, 50, 40_000), g.ints(0, 50, 40_000)))
def lexsort_40k(a, b):
    return jnp.lexsort((a, b))


@case("indexing", lambda g: (g.normal(300, 500),))
def argsort_rows_and_ranks(x):
    order = jnp.argsort(x, axis=1)
    return order, jnp.argsort(order, axis=1)


@case("indexing", lambda g: (g.normal(100, 3001),))
def topk_rows_40(x):
    return lax.top_k(x, 40)


@case("indexing", lambda g: (g.normal(8, 32_000),))
def topk_filter_logits(x):
    return jnp.where(x < lax.top_k(x, 50)[0][:, -1:], -jnp.inf, x)


@case("indexing", lambda g: (g.normal(4000, 64),))
def topk_router_2(x):
    w, i = lax.top_k(nn.softmax(x), 2)
    return w / w.sum(1, keepdims=True), i


@case("indexing", lambda g: (g.ints(0, 700, 30_000),))
def unique_sized_inverse(x):
    return jnp.unique(x, size=800, fill_value=-1, return_inverse=True, return_counts=True)


@case("indexing", lambda g: (g.ints(0, 1000, 300_000),))
def bincount_300k(x):
    return jnp.bincount(x, length=1000)


@case("indexing", lambda g: (g.normal(100_000),), tol=1e-3)
def histogram_64(x):
    return jnp.histogram(x, bins=64, range=(-4.0, 4.0))


@case("indexing", lambda g: (g.normal(300_000),))
def nonzero_sized(x):
    return jnp.nonzero(x > 1.5, size=30_000, fill_value=-1)[0]


@case("indexing", lambda g: (np.sort(g.normal(1000)), g.normal(1000), g.normal(200_000)))
def interp_200k(xp, fp, x):
    return jnp.interp(x, xp, fp)


@case("indexing", lambda g: (g.normal(501, 1001), g.normal(20_001)))
def median_and_quantiles(x, y):
    return jnp.median(x, axis=1), jnp.quantile(y, jnp.asarray([0.1, 0.5, 0.95], y.dtype))


@case("indexing", lambda g: (g.normal(900, 1100), g.ints(0, 1100, 700)))
def gather_columns(x, i):
    return x[:, i]


@case("indexing", lambda g: (g.normal(700, 800), g.ints(0, 700, 200_000), g.ints(0, 800, 200_000)))
def gather_pairs_200k(x, i, j):
    return x[i, j]


@case("indexing", lambda g: (g.normal(20, 300, 96), g.ints(0, 300, 20, 170)))
def gather_batched_rows(x, i):
    return jax.vmap(lambda x, i: x[i])(x, i)


@case("indexing", lambda g: (g.normal(1000, 50), g.ints(-300, 1300, 20_000)))
def take_clip_and_fill(x, i):
    return jnp.take(x, i, axis=0, mode="clip"), jnp.take(x, i, axis=0, mode="fill", fill_value=0)


@case("indexing", lambda g: (g.normal(32, 64, 64, 3), g.ints(0, 17, 32, 2)))
def random_crops_vmap(x, start):
    crop = lambda x, s: lax.dynamic_slice(x, (s[0], s[1], jnp.zeros_like(s[0])), (48, 48, 3))  # noqa: E731
    return jax.vmap(crop)(x, start)


@case("indexing", lambda g: (g.normal(90, 100, 80), g.ints(0, 100, 90, 1, 80)))
def take_along_middle(x, i):
    return jnp.take_along_axis(x, i, axis=1)


@case("indexing", lambda g: (g.normal(6, 50, 60, 8), g.uniform(6, 3000, lo=0, hi=48), g.uniform(6, 3000, lo=0, hi=58)),
      tol=1e-3)  # fmt: skip
def bilinear_sample(image, y, x):
    def one(image, y, x):
        y0, x0 = jnp.floor(y).astype(jnp.int32), jnp.floor(x).astype(jnp.int32)
        fy, fx = (y - y0)[:, None], (x - x0)[:, None]
        top = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
        return top * (1 - fy) + (image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx) * fy

    return jax.vmap(one)(image, y, x)


@case("indexing", lambda g: (g.normal(8, 100, 90, 3),))
def resize_bilinear_nearest(x):
    return jax.image.resize(x, (8, 150, 60, 3), "linear"), jax.image.resize(x, (8, 200, 180, 3), "nearest")


@case("indexing", lambda g: (g.normal(100_000), g.perm(100_000), g.normal(100_000)))
def scatter_set_permutation(x, i, u):
    return x.at[i].set(u)


@case("indexing", lambda g: (g.normal(500, 600), g.ints(0, 500, 150_000), g.ints(0, 600, 150_000), g.normal(150_000)))
def scatter_add_pairs(x, i, j, u):
    return x.at[i, j].add(u)


@case("indexing", lambda g: (g.normal(3000, 40), g.ints(0, 3000, 9000), g.normal(9000, 40)))
def scatter_max_min_rows(x, i, u):
    return x.at[i].max(u), x.at[i].min(u)


@case("indexing", lambda g: (g.normal(2000), g.ints(0, 2000, 30_000), g.uniform(30_000, lo=0.9, hi=1.1)))
def scatter_multiply(x, i, u):
    return x.at[i].mul(u)


@case("indexing", lambda g: (g.normal(800, 500), g.perm(500)[:200].copy(), g.normal(800, 200)))
def scatter_set_columns(x, i, u):
    return x.at[:, i].set(u)


@case("indexing", lambda g: (g.normal(700, 700), g.normal(700)))
def diagonal_set_and_borders(x, d):
    i = jnp.arange(700)
    return x.at[i, i].set(d).at[0].set(0).at[:, -1].add(1.0)


@case("indexing", lambda g: (g.normal(30_000, 12), np.sort(g.ints(0, 4000, 30_000))))
def segment_max_mean(x, i):
    total = jax.ops.segment_sum(x, i, 4000)
    count = jax.ops.segment_sum(jnp.ones(x.shape[0], x.dtype), i, 4000)
    return jax.ops.segment_max(x, i, 4000), total / jnp.maximum(count, 1)[:, None]


@case("indexing", lambda g: (g.normal(3000, 30), g.ints(0, 2900, 400)))
def dynamic_slices_scan(x, starts):
    def step(total, s):
        rows = lax.dynamic_slice_in_dim(x, s, 50)
        return total + rows, rows[0]

    return lax.scan(step, jnp.zeros((50, 30), x.dtype), starts)


@case("indexing", lambda g: (g.normal(100, 300), g.normal(100)))
def columns_update_loop(x, v):
    return lax.fori_loop(1, 300, lambda j, x: x.at[:, j].set(x[:, j - 1] * 0.5 + v), x)


@case("indexing", lambda g: (g.ints(0, 37, 60, 700), g.normal(3000), g.ints(0, 2, 3000, dtype="bool")))
def onehot_and_compaction(i, x, mask):
    place = jnp.where(mask, jnp.cumsum(mask) - 1, 3000)
    return nn.one_hot(i, 37), jnp.zeros_like(x).at[place].set(x, mode="drop")


@case("indexing", lambda g: (np.sort(g.normal(10007)), g.normal(65, 1001)))
def searchsorted_matrix_right(a, queries):
    return jnp.searchsorted(a, queries, side="right")


@case("indexing", lambda g: (g.normal(65536), g.normal(65536)))
def lexsort_floats_65536(x, y):
    return jnp.lexsort((y, x))


@case("indexing", lambda g: (g.ints(0, 9, 5000, 4),))
def unique_rows_of_four(x):
    return jnp.unique(x, axis=0, size=4000)


@case("indexing", lambda g: (g.ints(0, 50, 30001), g.normal(30001), g.ints(0, 9, 30001)))
def sort_within_groups(group, x, tag):
    return lax.sort((group, -x, tag), num_keys=2)


@case("indexing", lambda g: (g.normal(300, 1000),))
def approx_max_k_values_10(x):
    return lax.approx_max_k(x, 10)[0]


@case("indexing", lambda g: (g.normal(120, 2003),))
def topk_values_threshold(x):
    return jnp.where(x < lax.top_k(x, 20)[0][:, -1:], 0, x)


# random numbers ---------------------------------------------------------------------


def random_case(name, f, **options):
    case("random", lambda g: (g.key(),), name=name, ref="cpu", **options)(f)


random_case("normal_bf16_700k", lambda k: jax.random.normal(k, (700_000,), jnp.bfloat16))
random_case("randint_1m", lambda k: jax.random.randint(k, (1_000_000,), 3, 1003))
random_case("bits_u8_2m", lambda k: jax.random.bits(k, (2_000_000,), jnp.uint8))
random_case("truncated_normal_300k", lambda k: jax.random.truncated_normal(k, -2.0, 2.0, (300_000,)))
random_case("gumbel_exponential_400k",
            lambda k: jax.random.gumbel(k, (400_000,)) + jax.random.exponential(k, (400_000,)))  # fmt: skip
random_case("gamma_5k", lambda k: jax.random.gamma(k, 2.5, (5000,)), tol=1e-3)
random_case("poisson_20k", lambda k: jax.random.poisson(k, 4.0, (20_000,)), tol=1e-3)
random_case("choice_without_replacement", lambda k: jax.random.choice(k, 30_000, (1000,), replace=False))
random_case("split_and_fold_500", lambda k: jax.vmap(lambda k, i: jax.random.normal(jax.random.fold_in(k, i), (33,)))(
    jax.random.split(k, 500), jnp.arange(500)))  # fmt: skip
random_case("he_initialisers", lambda k: [nn.initializers.he_normal()(k, (3, 3, 96, 130)),
                                          nn.initializers.glorot_uniform()(k, (500, 301))])  # fmt: skip


@case("random", lambda g: (g.key(), g.normal(300, 700)), ref="cpu")
def shuffle_rows_and_noise(key, x):
    a, b = jax.random.split(key)
    return jax.random.permutation(a, x, axis=0) + 0.1 * jax.random.normal(b, x.shape, x.dtype)


@case("random", lambda g: (g.key(), g.normal(64)), ref="cpu", tol=2e-2)
def random_walk_metropolis(key, x):
    def step(state, key):
        x, energy = state
        a, b = jax.random.split(key)
        y = x + 0.3 * jax.random.normal(a, x.shape, x.dtype)
        new = 0.5 * jnp.square(y)
        accept = jnp.log(jax.random.uniform(b, x.shape)) < energy - new
        return (jnp.where(accept, y, x), jnp.where(accept, new, energy)), accept.mean()

    return lax.scan(step, (x, 0.5 * jnp.square(x)), jax.random.split(key, 300))


# transforms and dense linear algebra -----------------------------------------------


@case("linalg", lambda g: (g.normal(40, 1000, dtype="c64"),))
def fft_rows_1000(x):
    return jnp.fft.fft(x)


@case("linalg", lambda g: (g.normal(60, 997, dtype="c64"),))
def fft_rows_prime_997(x):
    return jnp.fft.ifft(x)


@case("linalg", lambda g: (g.normal(768, 50, dtype="c64"),))
def fft_axis0_768(x):
    return jnp.fft.fft(x, axis=0)


@case("linalg", lambda g: (g.normal(30, 1501, dtype="c64"),))
def irfft_rows_3000(x):
    return jnp.fft.irfft(x, n=3000)


@case("linalg", lambda g: (g.normal(10, 96, 120),))
def rfft2_shift_spectrum(x):
    return jnp.abs(jnp.fft.fftshift(jnp.fft.rfft2(x), axes=1))


@case("linalg", lambda g: (g.normal(20, 3000), g.normal(400)))
def fft_convolution(x, k):
    n = 3400
    return jnp.fft.irfft(jnp.fft.rfft(x, n) * jnp.fft.rfft(k, n), n)


@case("linalg", lambda g: (g.normal(40_000),))
def stft_hann_400(x):
    frames = x[jnp.arange(0, 39_600, 160)[:, None] + jnp.arange(400)]
    return jnp.abs(jnp.fft.rfft(frames * jnp.hanning(400)))


@case("linalg", lambda g: (g.normal(200, 300),))
def dct_rows_300(x):
    return jax.scipy.fft.dct(x, norm="ortho")


@case("linalg", lambda g: (g.spd(100),))
def cholesky_100(a):
    return jnp.linalg.cholesky(a)


@case("linalg", lambda g: (g.spd(33, 60),))
def cholesky_batched_33(a):
    return jnp.linalg.cholesky(a)


@case("linalg", lambda g: (g.spd(150), g.normal(150)), tol=1e-3)
def cho_solve_logdet_150(a, y):
    low = jnp.linalg.cholesky(a)
    x = jax.scipy.linalg.cho_solve((low, True), y)
    return y @ x + 2 * jnp.log(jnp.diagonal(low)).sum(), x


@case("linalg", lambda g: (g.spd(70), g.normal(70, 70)), tol=1e-3)
def cholesky_logdet_grad(a, b):
    return jax.grad(lambda a: jnp.log(jnp.diagonal(jnp.linalg.cholesky(a))).sum() + (jnp.linalg.inv(a) * b).sum())(a)


@case("linalg", lambda g: (g.normal(5000, 3, 3) + 3 * np.eye(3, dtype=np.float32),), tol=2e-3)
def det_inv_batched_3(a):
    return jnp.linalg.det(a), jnp.linalg.inv(a)


@case("linalg", lambda g: (g.normal(800, 4, 4) + 4 * np.eye(4, dtype=np.float32), g.normal(800, 4, 2)), tol=2e-3)
def solve_batched_4(a, b):
    return jnp.linalg.solve(a, b)


@case("linalg", lambda g: (g.normal(220, 220) + 15 * np.eye(220, dtype=np.float32), g.normal(220)), tol=2e-3)
def solve_general_220(a, b):
    return jnp.linalg.solve(a, b)


@case("linalg", lambda g: (g.normal(90, 90, dtype="c64") + 12 * np.eye(90, dtype=np.complex64),
                           g.normal(90, 5, dtype="c64")), tol=2e-3)  # fmt: skip
def solve_complex_90(a, b):
    return jnp.linalg.solve(a, b)


@case("linalg", lambda g: (g.normal(250, 250),), tol=5e-3, canon=lambda out: (out[0], out[2]))
def lu_250(a):
    return lax.linalg.lu(a)


@case("linalg", lambda g: (g.normal(100, 20, 20) + 6 * np.eye(20, dtype=np.float32),), tol=2e-3)
def slogdet_batched_20(a):
    return tuple(jnp.linalg.slogdet(a))


def _same_signs(qr):
    q, r = qr
    sign = np.sign(np.diagonal(r, axis1=-2, axis2=-1))
    return q * sign[..., None, :], r * sign[..., :, None]


@case("linalg", lambda g: (g.normal(2000, 30),), canon=_same_signs, tol=1e-3)
def qr_tall_2000x30(a):
    return tuple(jnp.linalg.qr(a))


@case("linalg", lambda g: (g.normal(120, 18, 11),), canon=_same_signs, tol=2e-3)
def qr_batched_18x11(a):
    return tuple(jnp.linalg.qr(a))


@case("linalg", lambda g: (g.normal(150, 90),), tol=2e-3)
def singular_values_150x90(a):
    return jnp.linalg.svd(a, compute_uv=False)


@case("linalg", lambda g: (g.spd(12, 150),), tol=2e-3, canon=lambda wv: wv[0])
def eigh_batched_12(a):
    return tuple(jnp.linalg.eigh(a))


@case("linalg", lambda g: (g.normal(400, 35), g.normal(400, 3)), tol=2e-3)
def lstsq_400x35(a, b):
    return jnp.linalg.lstsq(a, b)[0]


@case("linalg", lambda g: (g.normal(110, 60),), tol=5e-3)
def pinv_110x60(a):
    return jnp.linalg.pinv(a)


@case("linalg", lambda g: (g.weight(70, 70), g.weight(140, 140)), tol=1e-3)
def expm_70_power_140(a, b):
    return jax.scipy.linalg.expm(a), jnp.linalg.matrix_power(b, 7)


@case("linalg", lambda g: (np.triu(g.spd(260)), g.normal(90, 260)), tol=1e-3)
def triangular_solve_right_upper(a, b):
    return lax.linalg.triangular_solve(a, b, left_side=False, lower=False)


@case("linalg", lambda g: (np.tril(g.spd(40, 30)), g.normal(30, 40, 9)), tol=1e-3)
def triangular_solve_batched_transposed(a, b):
    return jax.vmap(lambda a, b: jax.scipy.linalg.solve_triangular(a, b, trans=1, lower=True))(a, b)


@case("linalg", lambda g: (g.uniform(500), g.uniform(500, lo=3, hi=4), g.uniform(500), g.normal(500, 20)), tol=1e-3)
def tridiagonal_solve_500(low, middle, high, b):
    low, high = low.at[0].set(0), high.at[-1].set(0)
    return lax.linalg.tridiagonal_solve(low, middle, high, b)
