"""Ring attention by shard_map: the sequence is cut between the devices, keys and values go round.

Each device has the queries of its part. In each of as many steps as there are devices it attends to the keys and values that it holds, and hands them to
its neighbour; a running maximum and sum make the softmax exact. No device ever has the whole sequence, nor a matrix of its scores.
"""

import functools

import devices

devices.start(__doc__)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

BATCH, HEADS, LENGTH, FEATURES = 2, 2, 64, 8

mesh = devices.mesh_of(ring=-1)
SPEC = P(None, None, "ring")


@functools.partial(jax.shard_map, mesh=mesh, in_specs=(SPEC,) * 3, out_specs=SPEC, check_vma=False)
def ring_attention(q, k, v):
    size = mesh.size
    part = q.shape[2]
    me = jax.lax.axis_index("ring")
    mine = me * part + jnp.arange(part)
    round_ = [(i, (i + 1) % size) for i in range(size)]

    def step(carry, t):
        k, v, largest, total, result = carry
        theirs = (me - t) % size * part + jnp.arange(part)  # whose keys are here now
        scores = jnp.einsum("bhqf,bhkf->bhqk", q, k) / np.sqrt(FEATURES)
        scores = jnp.where(mine[:, None] >= theirs, scores, -jnp.inf)
        larger = jnp.maximum(largest, scores.max(axis=-1))
        weight = jnp.exp(scores - larger[..., None])
        shrink = jnp.exp(largest - larger)
        total = total * shrink + weight.sum(axis=-1)
        result = result * shrink[..., None] + jnp.einsum("bhqk,bhkf->bhqf", weight, v)
        return (jax.lax.ppermute(k, "ring", round_), jax.lax.ppermute(v, "ring", round_), larger, total, result), None

    # The first step has the device's own keys, so that every query sees one: the maximum is finite from there on.
    start = (k, v, jnp.full(q.shape[:3], -1e30), jnp.zeros(q.shape[:3]), jnp.zeros_like(q))
    (_, _, _, total, result), _ = jax.lax.scan(step, start, jnp.arange(size))
    return result / total[..., None]


def attention(q, k, v):
    scores = jnp.einsum("bhqf,bhkf->bhqk", q, k) / np.sqrt(FEATURES)
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bhkf->bhqf", jax.nn.softmax(scores), v)


def with_gradient(f):
    return jax.jit(jax.value_and_grad(lambda q, k, v: jnp.mean(f(q, k, v) ** 2), argnums=(0, 1, 2)))


random = np.random.RandomState(0)
q, k, v = (random.randn(BATCH, HEADS, LENGTH, FEATURES).astype(np.float32) for _ in range(3))
spread = with_gradient(ring_attention)(*devices.place((q, k, v), mesh, SPEC))
devices.compare("ring attention", spread, with_gradient(attention)(q, k, v))
