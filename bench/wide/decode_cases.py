"""Steps of decoding with caches of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")


def rms(x, scale):
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * scale


def attend(q, keys, values, mask):
    """q [batch, groups, heads of a group, dim], keys and values [batch, time, groups, dim], mask [batch, time]."""
    s = jnp.einsum("bghd,btgd->bght", q, keys).astype(jnp.float32) * q.shape[-1] ** -0.5
    s = jnp.where(mask[:, None, None], s, -1e30)
    return jnp.einsum("bght,btgd->bghd", nn.softmax(s, -1).astype(values.dtype), values)


def layers(g, n, d, kv, f, dtype="f32"):
    w = lambda i, o: g.weight(n, i, o, fan_in=i, dtype=dtype)  # noqa: E731
    return {"n1": g.ones(n, d, dtype=dtype), "n2": g.ones(n, d, dtype=dtype), "q": w(d, d), "k": w(d, kv),
            "v": w(d, kv), "o": w(d, d), "up": w(d, f), "down": w(f, d)}  # fmt: skip


def feed_forward(p, x):
    return x + nn.gelu(rms(x, p["n2"]) @ p["up"]) @ p["down"]


def positioned(groups, dim, put):
    """A layer that puts a token's key and value where `put` says, and looks at all up to `at`."""

    def layer(x, p, keys, values, at):
        y = rms(x, p["n1"])
        b = x.shape[0]
        keys = put(keys, (y @ p["k"]).reshape(b, groups, dim), at)
        values = put(values, (y @ p["v"]).reshape(b, groups, dim), at)
        seen = jnp.arange(keys.shape[1])[None] <= jnp.broadcast_to(at, (b,))[:, None]
        y = attend((y @ p["q"]).reshape(b, groups, -1, dim), keys, values, seen)
        return feed_forward(p, x + y.reshape(b, -1) @ p["o"]), keys, values

    return layer


def put_rows(cache, rows, at):
    return cache.at[jnp.arange(cache.shape[0]), at].set(rows)


def put_each(cache, rows, at):
    return jax.vmap(lambda c, r, i: lax.dynamic_update_index_in_dim(c, r, i, 0))(cache, rows, at)


def put_all(cache, rows, at):
    return lax.dynamic_update_index_in_dim(cache, rows, at, 1)


def scanned(layer):
    def step(caches, p, x, at):
        def body(x, inputs):
            p, keys, values = inputs
            x, keys, values = layer(x, p, keys, values, at)
            return x, [keys, values]

        x, caches = lax.scan(body, x, (p, *caches))
        return caches, x

    return step


def caches(g, n, b, t, groups, dim, dtype="f32"):
    return [g.normal(n, b, t, groups, dim, dtype=dtype) for _ in range(2)]


@case("model", lambda g: (caches(g, 6, 4, 384, 2, 48), layers(g, 6, 384, 96, 1024), g.normal(4, 384), g.ints(100, 384, 4)),
      carry=1, donate=(0,))  # fmt: skip
def decode_4_sequences_at_their_own_places(caches, p, x, at):
    return scanned(positioned(2, 48, put_rows))(caches, p, x, at)


@case("model", lambda g: (caches(g, 5, 3, 500, 4, 32, "bf16"), layers(g, 5, 256, 128, 768, "bf16"),
                          g.normal(3, 256, dtype="bf16"), g.ints(100, 500, 3)), carry=1, donate=(0,), tol=0.1)  # fmt: skip
def decode_bf16_vmapped_updates(caches, p, x, at):
    return scanned(positioned(4, 32, put_each))(caches, p, x, at)


@case("model", lambda g: (caches(g, 8, 1, 1500, 2, 64), layers(g, 8, 512, 128, 1400), g.normal(1, 512), np.int32(999)))
def decode_8_layers_without_donation(caches, p, x, at):
    return scanned(positioned(2, 64, put_all))(caches, p, x, at)


@case("model", lambda g: (caches(g, 6, 2, 700, 3, 64), layers(g, 6, 384, 192, 1100), g.normal(2, 384), np.int32(650)),
      carry=1, donate=(0,))  # fmt: skip
def decode_caches_carried_by_the_loop(caches, p, x, at):
    layer = positioned(3, 64, put_all)

    def body(i, state):
        x, keys, values = state
        at_layer = jax.tree.map(lambda w: w[i], p)
        x, k, v = layer(x, at_layer, keys[i], values[i], at)
        return x, keys.at[i].set(k), values.at[i].set(v)

    x, keys, values = lax.fori_loop(0, 6, body, (x, *caches))
    return [keys, values], x


@case("model", lambda g: ([caches(g, 1, 2, 640, 4, 48) for _ in range(4)],
                          [layers(g, 1, 192, 192, 768) for _ in range(4)], g.normal(2, 192), np.int32(333)),
      carry=1, donate=(0,))  # fmt: skip
def decode_list_of_layers(caches, ps, x, at):
    layer, new = positioned(4, 48, put_all), []
    for p, (keys, values) in zip(ps, caches):
        x, keys, values = layer(x, jax.tree.map(lambda w: w[0], p), keys[0], values[0], at)
        new.append([keys[None], values[None]])
    return new, x


@case("model", lambda g: (caches(g, 4, 2, 256, 2, 64), layers(g, 4, 256, 128, 700), g.normal(2, 256), np.int32(300)),
      carry=1, donate=(0,))  # fmt: skip
def decode_window_of_256_as_a_ring(caches, p, x, at):
    """Of the last 256 tokens; all places of the ring are taken."""

    def layer(x, p, keys, values, at):
        y = rms(x, p["n1"])
        keys = put_all(keys, (y @ p["k"]).reshape(2, 2, 64), at % 256)
        values = put_all(values, (y @ p["v"]).reshape(2, 2, 64), at % 256)
        y = attend((y @ p["q"]).reshape(2, 2, -1, 64), keys, values, jnp.ones((2, 256), bool))
        return feed_forward(p, x + y.reshape(2, -1) @ p["o"]), keys, values

    return scanned(layer)(caches, p, x, at)


@case("model", lambda g: (caches(g, 4, 2, 600, 2, 64), layers(g, 4, 256, 128, 700), g.normal(2, 256), np.int32(200)),
      carry=1, donate=(0,))  # fmt: skip
def decode_16_greedy_tokens(caches, p, x, at):
    """Tokens one after the other, each through all layers: a loop in a loop."""
    step = scanned(positioned(2, 64, put_all))

    def token(state, i):
        caches, x = state
        caches, y = step(caches, p, x, at + i)
        return (caches, x + 0.1 * y / (1 + jnp.abs(y).max())), y.argmax(-1)

    (caches, x), tokens = lax.scan(token, (caches, x), jnp.arange(16))
    return caches, (x, tokens)
