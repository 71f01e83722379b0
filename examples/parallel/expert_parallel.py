"""Expert parallel by shard_map: each device has one expert and a part of the tokens; tokens travel to the expert that a router chose, and back.

Both ways are one all-to-all. A device keeps a place for each of its tokens at every expert, so that none is dropped.
"""

import functools

import devices

devices.start(__doc__)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

TOKENS, WIDTH = 64, 16

mesh = devices.mesh_of(expert=-1)
EXPERTS = mesh.size


def expert(w, x):
    return jax.nn.gelu(x @ w)


@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("expert"), P(), P("expert")), out_specs=P("expert"), check_vma=False)
def spread_out(w, router, x):
    probability = jax.nn.softmax(x @ router)
    choice = jnp.argmax(probability, axis=-1)
    chosen = jax.nn.one_hot(choice, EXPERTS, dtype=x.dtype)  # [token, expert]
    sent = jnp.einsum("te,tw->etw", chosen, x)  # for each expert, this device's tokens at their places
    there = jax.lax.all_to_all(sent, "expert", 0, 0, tiled=True)  # from each device
    back = jax.lax.all_to_all(expert(w[0], there), "expert", 0, 0, tiled=True)
    return jnp.einsum("te,te,etw->tw", chosen, probability, back)


def on_one(w, router, x):
    probability = jax.nn.softmax(x @ router)
    choice = jnp.argmax(probability, axis=-1)
    results = jnp.stack([expert(w[e], x) for e in range(EXPERTS)], axis=1)
    return jnp.take_along_axis(results * probability[..., None], choice[:, None, None], axis=1)[:, 0]


def loss_of(model):
    return jax.jit(jax.value_and_grad(lambda w, router, x: jnp.mean(model(w, router, x) ** 2), argnums=(0, 1)))


random = np.random.RandomState(0)
w = random.randn(EXPERTS, WIDTH, WIDTH).astype(np.float32) * 0.3
router = random.randn(WIDTH, EXPERTS).astype(np.float32)
x = random.randn(TOKENS, WIDTH).astype(np.float32)

placed = devices.place((w, router, x), mesh, (P("expert"), P(), P("expert")))
devices.compare("expert parallel", loss_of(spread_out)(*placed), loss_of(on_one)(w, router, x))
