"""Data parallel: every device has all weights and a part of the batch; the gradients are summed over the devices.

Only the placement of the arguments says so. The program is that of one device, and the partitioner adds one all-reduce a weight.
"""

import devices

devices.start(__doc__)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

RATE, STEPS, BATCH, WIDTH = 0.1, 20, 64, 32


def loss(weights, x, y):
    hidden = jnp.tanh(x @ weights["in"])
    return jnp.mean((hidden @ weights["out"] - y) ** 2)


@jax.jit
def step(weights, x, y):
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    return jax.tree.map(lambda w, g: w - RATE * g, weights, gradient), value


def train(weights, x, y):
    losses = []
    for _ in range(STEPS):
        weights, value = step(weights, x, y)
        losses.append(value)
    return weights, losses


random = np.random.RandomState(0)
weights = {"in": random.randn(WIDTH, 64).astype(np.float32) * 0.2, "out": random.randn(64, 4).astype(np.float32) * 0.2}
x = random.randn(BATCH, WIDTH).astype(np.float32)
y = np.sin(x[:, :4])

mesh = devices.mesh_of(data=-1)
spread = train(devices.place(weights, mesh, P()), *devices.place((x, y), mesh, P("data")))
devices.compare("data parallel", spread, train(weights, x, y))
