"""Programs whose results share what they read, in the wide set (cases_held_out.py): statistics of rows, optimizers,
losses with their gradients, pairs of functions. And exponentials that are subnormal.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import nn

from sxs.registry import Registrar

case = Registrar("held_out")


@case("reduction", lambda g: (g.normal(3000, 1500),))
def mean_deviation_extremes(x):
    return x.mean(1), x.std(1), x.max(1), x.min(1)


@case("reduction", lambda g: (g.normal(6000, 640), g.normal(640), g.normal(640)))
def layer_norm_with_statistics(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    deviation = jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x - mean) * deviation * scale + shift, mean, deviation


@case("reduction", lambda g: (g.normal(3000, 1200),))
def softmax_and_its_logarithm(x):
    return nn.softmax(x, -1), nn.log_softmax(x, -1)


@case("elementwise", lambda g: (g.normal(3, 1 << 20), g.normal(3, 1 << 20), g.uniform(3, 1 << 20), g.uniform(3, 1 << 20)))
def adamw_step_3m(p, gradient, mean, square):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient * gradient
    return p - 1e-3 * (mean / (jnp.sqrt(square) + 1e-8) + 0.01 * p), mean, square


@case("elementwise", lambda g: (g.normal(3000, 1100), g.normal(3000, 1100)))
def silu_with_gradient(x, dy):
    y, pull = jax.vjp(nn.silu, x)
    return y, pull(dy)[0]


def _cross_entropy(logits, labels):
    return -jnp.take_along_axis(nn.log_softmax(logits, -1), labels[:, None], 1).mean()


@case("reduction", lambda g: (g.normal(700, 8000), g.ints(0, 8000, 700)))
def cross_entropy_with_gradient(logits, labels):
    return jax.value_and_grad(_cross_entropy)(logits, labels)


@case("indexing", lambda g: (g.normal(1500, 3000), g.ints(0, 3000, 1500)))
def gradient_of_picked_by_counted_rows(x, i):
    return jax.grad(lambda x: (nn.log_softmax(x, -1)[jnp.arange(1500), i] ** 2).sum())(x)


@case("elementwise", lambda g: (8 * g.normal(700, 1300),))
def normal_density_of_far_points(x):
    return jnp.exp(-0.5 * x * x)


@case("elementwise", lambda g: (g.normal(400, 90), g.normal(500, 90)))
def gaussian_kernel_90(x, y):
    return jnp.exp(-0.5 * ((x[:, None] - y[None]) ** 2).sum(-1))
