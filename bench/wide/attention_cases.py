"""Attention of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")

# attention ------------------------------------------------------------------------------


def attend(q, k, v, mask=None, bias=None):
    """[batch, time, heads, dim], as flax and jax.nn lay it out."""
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(q.dtype)
    s = s.astype(jnp.promote_types(s.dtype, jnp.float32))
    if bias is not None:
        s = s + bias
    if mask is not None:
        s = jnp.where(mask, s, jnp.finfo(s.dtype).min)
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(s).astype(v.dtype), v)


def bshd(b, sq, sk, h, d, kv=None, dtype="f32"):
    return lambda g: (g.normal(b, sq, h, d, dtype=dtype), g.normal(b, sk, kv or h, d, dtype=dtype),
                      g.normal(b, sk, kv or h, d, dtype=dtype))  # fmt: skip


@case("attention", lambda g: (g.normal(3, 8, 4, 128), g.normal(3, 777, 8, 128), g.normal(3, 777, 8, 128),
                              g.ints(100, 777, 3)))  # fmt: skip
def gqa_decode_ragged_777_d128(q, k, v, lengths):
    s = jnp.einsum("bgnd,btgd->bgnt", q, k) * 128**-0.5
    s = jnp.where((jnp.arange(777)[None] < lengths[:, None])[:, None, None], s, -1e30)
    return jnp.einsum("bgnt,btgd->bgnd", nn.softmax(s, -1), v)


@case("attention", lambda g: (g.normal(5, 12, 80, dtype="bf16"), g.normal(5, 1000, 80, dtype="bf16"),
                              g.normal(5, 1000, 80, dtype="bf16")), tol=4e-2)  # fmt: skip
def mqa_decode_bf16_1000_d80(q, k, v):
    s = jnp.einsum("bhd,btd->bht", q, k, preferred_element_type=jnp.float32) * 80**-0.5
    return jnp.einsum("bht,btd->bhd", nn.softmax(s).astype(v.dtype), v)


@case("attention", bshd(2, 210, 210, 12, 32, kv=3))
def gqa_prefill_repeat_210_d32(q, k, v):
    k, v = jnp.repeat(k, 4, axis=2), jnp.repeat(v, 4, axis=2)
    return attend(q, k, v, jnp.tril(jnp.ones((210, 210), bool)))


@case("attention", bshd(1, 600, 600, 6, 64))
def sliding_window_600_w128(q, k, v):
    i, j = jnp.arange(600)[:, None], jnp.arange(600)[None]
    return attend(q, k, v, (j <= i) & (i - j < 128))


@case("attention", lambda g: tuple(g.normal(1, 10, 448, 64) for _ in range(4)))
def causal_backward_448_d64(q, k, v, dy):
    def f(q, k, v):
        s = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
        mask = jnp.tril(jnp.ones((448, 448), bool))
        return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(jnp.where(mask, s, -jnp.inf)), v)

    return jax.vjp(f, q, k, v)[1](dy)


@case("attention", lambda g: (g.normal(2, 700, 12, 48), g.normal(2, 700, 4, 48), g.normal(2, 700, 4, 48),
                              g.normal(2, 700, 12, 48)))  # fmt: skip
def gqa_backward_700_d48(q, k, v, dy):
    def f(q, k, v):
        s = jnp.einsum("bqgnd,bkgd->bgnqk", q.reshape(2, 700, 4, 3, 48), k) / np.sqrt(np.float32(48))
        return jnp.einsum("bgnqk,bkgd->bqgnd", nn.softmax(s), v).reshape(q.shape)

    return jax.vjp(f, q, k, v)[1](dy)


@case("attention", lambda g: tuple(g.normal(2, 512, 8, 64, dtype="bf16") for _ in range(4)), tol=6e-2)
def bf16_backward_512_d64(q, k, v, dy):
    return jax.vjp(lambda q, k, v: attend(q, k, v, jnp.tril(jnp.ones((512, 512), bool))), q, k, v)[1](dy)


@case("attention", bshd(1, 300, 300, 8, 40))
def alibi_causal_300(q, k, v):
    d = jnp.arange(300)[None] - jnp.arange(300)[:, None]
    slopes = 2.0 ** -jnp.arange(1, 9, dtype=q.dtype)
    return attend(q, k, v, d <= 0, slopes[:, None, None] * d)


case("attention", bshd(1, 1024, 77, 8, 40), name="cross_attention_1024x77_d40")(attend)
case("attention", bshd(7, 100, 100, 16, 8), name="small_heads_100_d8")(attend)


@case("attention", bshd(1, 384, 384, 5, 128, dtype="bf16"), tol=4e-2)
def bf16_causal_384_d128(q, k, v):
    return attend(q, k, v, jnp.tril(jnp.ones((384, 384), bool)))


@case("attention", lambda g: (g.normal(4, 500, 64), g.normal(4, 960, 64), g.normal(4, 960, 64)))
def flash_scan_blocks_500x960(q, k, v):
    blocks = lambda x: x.reshape(4, 10, 96, 64).swapaxes(0, 1)  # noqa: E731

    def step(s, kv):
        m, l, o = s  # noqa: E741
        score = jnp.einsum("hqd,hkd->hqk", q, kv[0]) / 8
        new = jnp.maximum(m, score.max(-1))
        p, fix = jnp.exp(score - new[..., None]), jnp.exp(m - new)
        return (new, l * fix + p.sum(-1), o * fix[..., None] + jnp.einsum("hqk,hkd->hqd", p, kv[1])), None

    start = (jnp.full(q.shape[:2], -1e30, q.dtype), jnp.zeros(q.shape[:2], q.dtype), jnp.zeros_like(q))
    _, l, o = lax.scan(step, start, (blocks(k), blocks(v)))[0]  # noqa: E741
    return o / l[..., None]


@case("attention", bshd(2, 700, 700, 4, 48))
def linear_attention_700(q, k, v):
    q, k = nn.elu(q) + 1, nn.elu(k) + 1
    state = jnp.einsum("bkhd,bkhe->bhde", k, v)
    return jnp.einsum("bqhd,bhde->bqhe", q, state) / jnp.einsum("bqhd,bhd->bqh", q, k.sum(1))[..., None]


@case("attention", lambda g: tuple(g.normal(9, 50, 6, 32) for _ in range(3)))
def linear_attention_causal_chunks_50(q, k, v):
    """[chunks, time, heads, dim]: a scan carries the state from chunk to chunk."""
    mask = jnp.tril(jnp.ones((50, 50), q.dtype))

    def step(state, qkv):
        q, k, v = qkv
        inside = jnp.einsum("qhd,khd->hqk", q, k) * mask
        out = jnp.einsum("hqk,khe->qhe", inside, v) + jnp.einsum("qhd,hde->qhe", q, state)
        return state * 0.9 + jnp.einsum("khd,khe->hde", k, v), out

    return lax.scan(step, jnp.zeros((6, 32, 32), q.dtype), (q, k, v))[1]


@case("attention", lambda g: (*bshd(2, 150, 150, 6, 64)(g), g.normal(32, 6)))
def t5_relative_bias_150(q, k, v, table):
    d = np.arange(150)[None] - np.arange(150)[:, None]
    n = np.abs(d)
    far = 8 + (np.log(np.maximum(n, 1) / 8) / np.log(128 / 8) * 8).astype(np.int32)
    bucket = 16 * (d > 0) + np.where(n < 8, n, np.minimum(far, 15))
    return attend(q, k, v, bias=table[bucket].transpose(2, 0, 1)[None])


@case("attention", lambda g: (*bshd(2, 161, 161, 5, 80)(g), g.normal(2, 161, 5, 80)))
def causal_backward_161_d80(q, k, v, dy):
    mask = jnp.tril(jnp.ones((161, 161), bool))
    return jax.vjp(lambda *a: attend(*a, mask), q, k, v)[1](dy)


@case("attention", lambda g: (*bshd(6, 96, 96, 4, 32)(g), g.ints(20, 97, 6)))
def padding_mask_backward_96(q, k, v, lengths):
    live = jnp.arange(96)[None] < lengths[:, None]

    def loss(q, k, v):
        return (jnp.square(attend(q, k, v, live[:, None, None])) * live[..., None, None]).mean()

    return jax.grad(loss, (0, 1, 2))(q, k, v)


@case("attention", lambda g: ([g.normal(4, 512, 6, 64), g.normal(4, 512, 6, 64)], g.normal(4, 6, 64),
                              g.normal(4, 6, 64), g.normal(4, 6, 64), np.array([500, 17, 255, 300], np.int32)),
      carry=1, donate=(0,))  # fmt: skip
def decode_scatter_cache_512(cache, q, k, v, at):
    put = lambda c, x: jax.vmap(lambda c, x, i: c.at[i].set(x))(c, x, at)  # noqa: E731
    keys, values = put(cache[0], k), put(cache[1], v)
    s = jnp.einsum("bhd,bthd->bht", q, keys) / 8
    s = jnp.where((jnp.arange(512) <= at[:, None])[:, None], s, -1e9)
    return [keys, values], jnp.einsum("bht,bthd->bhd", nn.softmax(s), values)


@case("attention", bshd(2, 250, 250, 8, 32, kv=2))
def jax_nn_attention_causal_gqa_250(q, k, v):
    return nn.dot_product_attention(q, k, v, is_causal=True)


@case("attention", lambda g: (g.normal(56, 56, 96), g.weight(96, 288), g.weight(96, 96), g.normal(49, 49, 3)))
def swin_shifted_windows_56(x, w, out, bias):
    y = jnp.roll(x, (-3, -3), (0, 1)).reshape(8, 7, 8, 7, 96).swapaxes(1, 2).reshape(64, 49, 96)
    q, k, v = (y @ w).reshape(64, 49, 3, 3, 32).transpose(2, 0, 1, 3, 4)
    y = attend(q, k, v, bias=bias.transpose(2, 0, 1)).reshape(64, 49, 96) @ out
    y = y.reshape(8, 8, 7, 7, 96).swapaxes(1, 2).reshape(56, 56, 96)
    return x + jnp.roll(y, (3, 3), (0, 1))


@case("attention", lambda g: (g.normal(10, 64), g.normal(10, 90, 64), g.weight(64, 48), g.weight(64, 48),
                              g.normal(48)))  # fmt: skip
def additive_attention_grad_10x90(query, keys, wq, wk, u):
    def loss(wq, wk, u):
        s = jnp.tanh((query @ wq)[:, None] + keys @ wk) @ u
        return jnp.square(jnp.einsum("bt,btd->bd", nn.softmax(s), keys)).mean()

    return jax.grad(loss, (0, 1, 2))(wq, wk, u)


def rope(x, base=10000.0):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[-3], dtype=x.dtype)[:, None] * base ** (-jnp.arange(half, dtype=x.dtype) / half)
    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
    a, b = x[..., 0::2], x[..., 1::2]
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)


@case("attention", bshd(1, 180, 180, 10, 64), tol=1e-3)
def rope_qk_norm_softcap_180(q, k, v):
    unit = lambda x: x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6)  # noqa: E731
    s = jnp.einsum("bqhd,bkhd->bhqk", rope(unit(q)), rope(unit(k))) / 8
    s = 30.0 * jnp.tanh(s / 30.0)
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(jnp.where(jnp.tri(180, dtype=bool), s, -1e9)), v)


@case("attention", lambda g: tuple(g.normal(3, 4, 130, 24, dtype="f16") for _ in range(3)), tol=1e-2)
def double_vmap_single_head_f16(q, k, v):
    head = lambda q, k, v: nn.softmax(q @ k.T * 24**-0.5) @ v  # noqa: E731
    return jax.vmap(jax.vmap(head))(q, k, v)
