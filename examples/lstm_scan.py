"""An LSTM as a lax.scan, forward and backward: it learns to add two marked numbers of a sequence; on Strop and on XLA:CPU."""
import sys

import side_by_side

arguments = side_by_side.arguments(__doc__, ("--steps", dict(type=int, default=60)))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

UNITS, LENGTH, BATCH, RATE = 32, 20, 64, 0.5


def initial_weights():
    random = np.random.RandomState(0)

    def matrix(*shape):
        return (random.randn(*shape) / np.sqrt(shape[0])).astype(np.float32)

    bias = np.zeros(4 * UNITS, np.float32)
    bias[UNITS : 2 * UNITS] = 1  # remember at first
    return {"input": matrix(2, 4 * UNITS), "hidden": matrix(UNITS, 4 * UNITS), "bias": bias, "out": matrix(UNITS, 1)}


def predict(weights, sequence):
    """sequence is [time, batch, 2]"""

    def cell(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ weights["input"] + h @ weights["hidden"] + weights["bias"], 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zero = jnp.zeros((sequence.shape[1], UNITS))
    (h, _), _ = jax.lax.scan(cell, (zero, zero), sequence)
    return (h @ weights["out"])[:, 0]


def loss(weights, sequence, wanted):
    return jnp.mean((predict(weights, sequence) - wanted) ** 2)


def train_step(weights, sequence, wanted):
    value, gradient = jax.value_and_grad(loss)(weights, sequence, wanted)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradient)))
    scale = RATE / jnp.maximum(norm, 1.0)
    return jax.tree.map(lambda w, g: w - scale * g, weights, gradient), value


def batches(steps):
    random = np.random.RandomState(1)
    for _ in range(steps):
        numbers = random.rand(LENGTH, BATCH).astype(np.float32)
        marks = np.zeros((LENGTH, BATCH), np.float32)
        for column in range(BATCH):
            marks[random.choice(LENGTH, 2, replace=False), column] = 1
        yield np.stack([numbers, marks], axis=2), np.sum(numbers * marks, axis=0)


def main():
    checks, runs, losses = side_by_side.Checks(), [], {}
    for platform in arguments.platforms:
        step = side_by_side.Run(platform, train_step, initial_weights(), *next(batches(1)))
        weights, values = step.put(initial_weights()), []
        for batch in batches(arguments.steps):
            weights, value = step(weights, *step.put(batch))
            values.append(float(value))
        losses[platform] = np.array(values)
        runs.append(step)
    checks.runs(runs)
    for platform, values in losses.items():
        checks(f"{side_by_side.NAMES[platform]}: loss falls from {values[0]:.3f} to {values[-1]:.3f}", values[-1] < 0.5 * values[0])
    checks.same("losses of the first 20 steps", {p: v[:20] for p, v in losses.items()}, 1e-3)
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
