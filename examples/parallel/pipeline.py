"""Pipeline parallel by shard_map: each device has one layer; micro-batches go from device to device.

In step t, device d works on micro-batch t - d, and hands its result to device d + 1. After `micro + devices - 1` steps the last device has seen all.
Differentiating the loop gives the backward pipeline.
"""

import functools

import devices

devices.start(__doc__)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

MICRO, BATCH, WIDTH = 6, 4, 16

mesh = devices.mesh_of(stage=-1)
STAGES = mesh.size


def layer(w, x):
    return x + jnp.tanh(x @ w)


@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P(), check_vma=False)
def pipeline(w, inputs):
    stage = jax.lax.axis_index("stage")
    onwards = [(i, i + 1) for i in range(STAGES - 1)]

    def step(carry, t):
        arriving, outputs = carry
        x = jnp.where(stage == 0, inputs[jnp.minimum(t, MICRO - 1)], arriving)
        y = layer(w[0], x)
        number = t - (STAGES - 1)
        done = (stage == STAGES - 1) & (number >= 0)
        at = jnp.maximum(number, 0)
        outputs = outputs.at[at].set(jnp.where(done, y, outputs[at]))
        return (jax.lax.ppermute(y, "stage", onwards), outputs), None

    start = (jnp.zeros_like(inputs[0]), jnp.zeros_like(inputs))
    (_, outputs), _ = jax.lax.scan(step, start, jnp.arange(MICRO + STAGES - 1))
    return jax.lax.psum(jnp.where(stage == STAGES - 1, outputs, 0), "stage")


def loss_of_pipeline(w, inputs):
    return jnp.mean(pipeline(w, inputs) ** 2)


def loss_of_one(w, inputs):
    x = inputs
    for k in range(STAGES):
        x = layer(w[k], x)
    return jnp.mean(x**2)


random = np.random.RandomState(0)
w = random.randn(STAGES, WIDTH, WIDTH).astype(np.float32) * 0.1
inputs = random.randn(MICRO, BATCH, WIDTH).astype(np.float32)

spread = jax.jit(jax.value_and_grad(loss_of_pipeline))(devices.place(w, mesh, P("stage")), devices.place(inputs, mesh, P()))
devices.compare("pipeline", spread, jax.jit(jax.value_and_grad(loss_of_one))(w, inputs))
