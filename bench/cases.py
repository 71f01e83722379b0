"""The benchmark's cases: name -> (function, arguments made by numpy). Shapes are those of real nets, small enough for two cores."""
import jax
import jax.numpy as jnp
import numpy as np


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(dtype)


def integers(high, *shape, seed=0):
    return np.random.RandomState(seed).randint(0, high, shape).astype(np.int32)


def bfloat16(x):
    return x.astype(jnp.bfloat16)


def convolve(stride=1, groups=1, padding="SAME"):
    def run(x, w):
        return jax.lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)
    return run


def layer_norm(x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain + bias


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


def recurrent(w, x):
    def cell(h, step):
        h = jnp.tanh(h @ w + step)
        return h, h
    return jax.lax.scan(cell, jnp.zeros(x.shape[1:]), x)[1]


def mlp_gradient(weights, x, y):
    def loss(weights):
        h = x
        for w in weights[:-1]:
            h = jax.nn.relu(h @ w)
        return jnp.mean((h @ weights[-1] - y) ** 2)
    return jax.grad(loss)(weights)


def counting_loop(x):
    return jax.lax.while_loop(lambda s: s[0] < 1000, lambda s: (s[0] + 1, s[1] * 0.999 + 0.5), (0, x))


CASES = {
    "matmul 512": (jnp.matmul, lambda: (normal(512, 512), normal(512, 512, seed=1))),
    "matmul 1024 bf16": (jnp.matmul, lambda: (bfloat16(normal(1024, 1024)), bfloat16(normal(1024, 1024, seed=1)))),
    "matmul 1x4096x1024": (jnp.matmul, lambda: (normal(1, 4096), normal(4096, 1024, seed=1))),
    "matmul batch 64x128": (jnp.matmul, lambda: (normal(64, 128, 128), normal(64, 128, 128, seed=1))),
    "conv 3x3 64": (convolve(), lambda: (normal(4, 56, 56, 64), normal(3, 3, 64, 64, seed=1))),
    "conv 1x1 256": (convolve(), lambda: (normal(4, 28, 28, 256), normal(1, 1, 256, 64, seed=1))),
    "conv 7x7 stride 2": (convolve(2), lambda: (normal(2, 224, 224, 3), normal(7, 7, 3, 64, seed=1))),
    "conv depthwise 3x3": (convolve(groups=64), lambda: (normal(4, 56, 56, 64), normal(3, 3, 1, 64, seed=1))),
    "add 4M": (jnp.add, lambda: (normal(2048, 2048), normal(2048, 2048, seed=1))),
    "gelu 1M": (jax.nn.gelu, lambda: (normal(1024, 1024),)),
    "exp of tanh 1M": (lambda x: jnp.exp(jnp.tanh(x)), lambda: (normal(1024, 1024),)),
    "sum rows 4M": (lambda x: x.sum(1), lambda: (normal(2048, 2048),)),
    "sum columns 4M": (lambda x: x.sum(0), lambda: (normal(2048, 2048),)),
    "argmax 1M": (lambda x: jnp.argmax(x, -1), lambda: (normal(1024, 1024),)),
    "softmax 1M": (jax.nn.softmax, lambda: (normal(1024, 1024),)),
    "layer norm 1M": (layer_norm, lambda: (normal(1024, 1024), normal(1024), normal(1024))),
    "transpose 4M": (lambda x: x.T + 0, lambda: (normal(2048, 2048),)),
    "cumsum 1M": (lambda x: jnp.cumsum(x, 1), lambda: (normal(1024, 1024),)),
    "sort 1M": (lambda x: jnp.sort(x, -1), lambda: (normal(1024, 1024),)),
    "top 8 of 1M": (lambda x: jax.lax.top_k(x, 8), lambda: (normal(1024, 1024),)),
    "gather rows": (lambda x, i: x[i], lambda: (normal(10000, 256), integers(10000, 4096))),
    "scatter add rows": (lambda x, i, u: x.at[i].add(u), lambda: (normal(10000, 256), integers(10000, 4096), normal(4096, 256))),
    "max pool 2x2": (lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), lambda: (normal(8, 112, 112, 64),)),
    "random normal 1M": (lambda k: jax.random.normal(k, (1024, 1024)), lambda: (np.array([0, 1], np.uint32),)),
    "attention 8x512x64": (attention, lambda: tuple(normal(1, 8, 512, 64, seed=s) for s in range(3))),
    "scan of 256 small cells": (recurrent, lambda: (normal(32, 32), normal(256, 8, 32))),
    "while of 1000 scalar trips": (counting_loop, lambda: (np.float32(1),)),
    "MLP gradient": (mlp_gradient, lambda: ([normal(256, 512), normal(512, 512), normal(512, 10)], normal(128, 256), normal(128, 10))),
}
