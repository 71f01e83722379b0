"""A small GPT that learns to spell its own source code: embedding, causal attention, layer norm, GELU, Adam; on Strop and on XLA:CPU."""
import sys
from pathlib import Path

import side_by_side

arguments = side_by_side.arguments(__doc__, ("--steps", dict(type=int, default=40)))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

WIDTH, HEADS, LAYERS, LENGTH, BATCH, VOCABULARY = 64, 4, 2, 64, 8, 128
RATE, BETA1, BETA2, EPSILON = 3e-3, 0.9, 0.99, 1e-8


def initial_weights():
    random = np.random.RandomState(0)

    def matrix(*shape, scale=0.02):
        return (random.randn(*shape) * scale).astype(np.float32)

    def norm():
        return {"gain": np.ones(WIDTH, np.float32), "bias": np.zeros(WIDTH, np.float32)}

    blocks = [{"norm1": norm(), "qkv": matrix(WIDTH, 3 * WIDTH), "out": matrix(WIDTH, WIDTH), "norm2": norm(),
               "up": matrix(WIDTH, 4 * WIDTH), "down": matrix(4 * WIDTH, WIDTH)} for _ in range(LAYERS)]
    return {"token": matrix(VOCABULARY, WIDTH), "position": matrix(LENGTH, WIDTH), "blocks": blocks, "norm": norm()}


def layer_norm(x, p):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["gain"] + p["bias"]


def attention(x, block):
    batch, length, _ = x.shape
    q, k, v = jnp.split((x @ block["qkv"]).reshape(batch, length, 3 * HEADS, WIDTH // HEADS), 3, axis=2)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(WIDTH // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return mixed.reshape(batch, length, WIDTH) @ block["out"]


def loss(weights, text):
    inputs, targets = text[:, :-1], text[:, 1:]
    x = weights["token"][inputs] + weights["position"][: inputs.shape[1]]
    for block in weights["blocks"]:
        x = x + attention(layer_norm(x, block["norm1"]), block)
        x = x + jax.nn.gelu(layer_norm(x, block["norm2"]) @ block["up"]) @ block["down"]
    log_p = jax.nn.log_softmax(layer_norm(x, weights["norm"]) @ weights["token"].T)
    return -jnp.mean(jnp.take_along_axis(log_p, targets[..., None], axis=-1))


def train_step(state, text):
    weights, first, second, count = state
    value, gradient = jax.value_and_grad(loss)(weights, text)
    count = count + 1
    first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, first, gradient)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, second, gradient)
    rate = RATE * jnp.sqrt(1 - BETA2**count) / (1 - BETA1**count)
    weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + EPSILON), weights, first, second)
    return (weights, first, second, count), value


def initial_state():
    weights = initial_weights()
    return weights, jax.tree.map(np.zeros_like, weights), jax.tree.map(np.zeros_like, weights), np.float32(0)


def batches(steps):
    """The same random windows of this file's text for every platform"""
    text = np.frombuffer(Path(__file__).read_bytes(), np.uint8).astype(np.int32) % VOCABULARY
    random = np.random.RandomState(1)
    for _ in range(steps):
        begins = random.randint(0, len(text) - LENGTH - 1, BATCH)
        yield np.stack([text[b : b + LENGTH + 1] for b in begins])


def main():
    checks, runs, losses = side_by_side.Checks(), [], {}
    for platform in arguments.platforms:
        step = side_by_side.Run(platform, train_step, initial_state(), next(batches(1)))
        state, values = step.put(initial_state()), []
        for text in batches(arguments.steps):
            state, value = step(state, step.put(text))
            values.append(float(value))
        losses[platform] = np.array(values)
        runs.append(step)
    checks.runs(runs)
    for platform, values in losses.items():
        checks(f"{side_by_side.NAMES[platform]}: loss falls from {values[0]:.3f} to {values[-1]:.3f}", values[-1] < 0.75 * values[0])
    checks.same("losses of all steps", losses, 1e-3)
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
