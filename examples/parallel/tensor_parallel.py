"""Tensor parallel: the matrices of a block are cut between the devices, the first by columns, the second by rows.

Each device computes its part of the hidden features from the whole input, and a part of every result from those: one all-reduce a block, forward and backward.
"""

import devices

devices.start(__doc__)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

BATCH, WIDTH, LAYERS = 16, 32, 3
SPECS = {"up": P(None, "model"), "bias": P("model"), "down": P("model", None)}


def loss(blocks, x):
    for block in blocks:
        x = x + jax.nn.gelu(x @ block["up"] + block["bias"]) @ block["down"]
    return jnp.mean(x**2)


value_and_gradient = jax.jit(jax.value_and_grad(loss))

random = np.random.RandomState(0)
blocks = [
    {
        "up": random.randn(WIDTH, 4 * WIDTH).astype(np.float32) * 0.1,
        "bias": random.randn(4 * WIDTH).astype(np.float32) * 0.1,
        "down": random.randn(4 * WIDTH, WIDTH).astype(np.float32) * 0.1,
    }
    for _ in range(LAYERS)
]
x = random.randn(BATCH, WIDTH).astype(np.float32)

mesh = devices.mesh_of(model=-1)
spread = value_and_gradient(devices.place(blocks, mesh, [SPECS] * LAYERS), devices.place(x, mesh, P()))
devices.compare("tensor parallel", spread, value_and_gradient(blocks, x))
