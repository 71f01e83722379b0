"""A very small GPT in plain JAX, trained for some steps on a mesh with the axes "data" and "model"; returns the losses."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

WIDTH, HEADS, LAYERS, LENGTH, BATCH, VOCABULARY = 32, 4, 2, 16, 8, 48
RATE = 0.1

# Heads and hidden features are cut along "model", as everybody does it; the rest is on every device.
SPECS = {
    "token": P(),
    "position": P(),
    "blocks": {"qkv": P(None, None, "model", None), "out": P("model", None, None), "up": P(None, "model"), "down": P("model", None)},
}


def initial_weights():
    random = np.random.RandomState(0)

    def matrix(*shape):
        return (random.randn(*shape) * 0.1).astype(np.float32)

    features = WIDTH // HEADS
    blocks = [
        {"qkv": matrix(WIDTH, 3, HEADS, features), "out": matrix(HEADS, features, WIDTH), "up": matrix(WIDTH, 4 * WIDTH), "down": matrix(4 * WIDTH, WIDTH)}
        for _ in range(LAYERS)
    ]
    return {"token": matrix(VOCABULARY, WIDTH), "position": matrix(LENGTH, WIDTH), "blocks": blocks}


def texts(steps):
    return np.random.RandomState(1).randint(0, VOCABULARY, (steps, BATCH, LENGTH + 1)).astype(np.int32) // 3


def normalized(x):
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def loss(weights, text):
    inputs, targets = text[:, :-1], text[:, 1:]
    x = weights["token"][inputs] + weights["position"]
    for block in weights["blocks"]:
        q, k, v = jnp.einsum("btw,wchf->cbthf", normalized(x), block["qkv"])
        scores = jnp.einsum("bqhf,bkhf->bhqk", q, k) / np.sqrt(WIDTH // HEADS)
        scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhf->bqhf", jax.nn.softmax(scores), v)
        x = x + jnp.einsum("bqhf,hfw->bqw", mixed, block["out"])
        x = x + jax.nn.gelu(normalized(x) @ block["up"]) @ block["down"]
    log_p = jax.nn.log_softmax(normalized(x) @ weights["token"].T)
    return -jnp.mean(jnp.take_along_axis(log_p, targets[..., None], axis=-1))


def place(value, mesh, spec):
    """The same host value in all processes as one array over the mesh."""
    sharding = NamedSharding(mesh, spec)
    return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])


def train(mesh, steps=20):
    def put(tree, specs):
        if isinstance(tree, dict):
            return {key: put(value, specs[key]) for key, value in tree.items()}
        if isinstance(tree, list):
            return [put(value, specs) for value in tree]
        return place(tree, mesh, specs)

    weights = put(initial_weights(), SPECS)

    @jax.jit
    def step(weights, text):
        value, gradient = jax.value_and_grad(loss)(weights, text)
        return jax.tree.map(lambda w, g: w - RATE * g, weights, gradient), value

    losses = []
    for text in texts(steps):
        weights, value = step(weights, place(text, mesh, P("data")))
        losses.append(value)
    return [float(value) for value in losses]
