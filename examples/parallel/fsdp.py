"""Fully sharded data parallel: the batch is cut, and so are all weights and what the optimiser keeps of them.

A weight is gathered where it is used, and its gradient goes back in parts (reduce-scatter): a device never keeps more than its share between steps.
"""

import devices

devices.start(__doc__)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

RATE, MOMENTUM, STEPS, BATCH, WIDTH, LAYERS = 0.05, 0.9, 10, 64, 32, 3


def loss(weights, x, y):
    for w in weights:
        x = jnp.tanh(x @ w)
    return jnp.mean((x - y) ** 2)


def train(weights, x, y, sharding=None):
    def kept(tree):
        """What leaves a step stays in parts."""
        return jax.tree.map(lambda w: jax.lax.with_sharding_constraint(w, sharding), tree) if sharding else tree

    @jax.jit
    def step(weights, moments, x, y):
        value, gradient = jax.value_and_grad(loss)(weights, x, y)
        moments = jax.tree.map(lambda m, g: MOMENTUM * m + g, moments, gradient)
        return kept(jax.tree.map(lambda w, m: w - RATE * m, weights, moments)), kept(moments), value

    moments, losses = jax.tree.map(lambda w: w * 0, weights), []
    for _ in range(STEPS):
        weights, moments, value = step(weights, moments, x, y)
        losses.append(value)
    return weights, moments, losses


random = np.random.RandomState(0)
weights = [random.randn(WIDTH, WIDTH).astype(np.float32) * 0.2 for _ in range(LAYERS)]
x = random.randn(BATCH, WIDTH).astype(np.float32)
y = np.sin(x)

mesh = devices.mesh_of(data=-1)
spread = train(
    devices.place(weights, mesh, P("data", None)), *devices.place((x, y), mesh, P("data")), NamedSharding(mesh, P("data", None))
)
for weight in jax.tree.leaves(spread[:2]):
    share = weight.addressable_shards[0].data.nbytes
    assert share * mesh.size == weight.nbytes, f"a device keeps {share} bytes of {weight.nbytes}"
devices.compare("fully sharded data parallel", spread, train(weights, x, y))
