"""Run by `./dev collectives soak` with JAX and the plugin: programs of collectives on 8 devices, again and again, on small values and on large ones.

Every run must give the bits of the first. A run that hangs is given up by option collectives-timeout, and told as an error."""
import os
import sys
import time

DEVICES, SMALL, LARGE = 8, 5, 1 << 16  # values a device: one message, and shares among many
os.environ.update(JAX_PLATFORMS="strop", STROP_NUM_DEVICES=str(DEVICES))
os.environ.setdefault("STROP_COLLECTIVES_TIMEOUT", "60")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

RING = [(k, (k + 1) % DEVICES) for k in range(DEVICES)]
PAIRS = [[k, k + DEVICES // 2] for k in range(DEVICES // 2)]


def looped(v):
    return jax.lax.fori_loop(0, 5, lambda i, s: jnp.sin(jax.lax.psum(s, "i")), v)


PROGRAMS = {
    "all-reduce": lambda v: jax.lax.psum(v, "i"),
    "all-reduce of pairs": lambda v: jax.lax.psum(v, "i", axis_index_groups=PAIRS),
    "all-gather": lambda v: jax.lax.all_gather(v, "i").sum(0),
    "reduce-scatter": lambda v: jnp.tile(jax.lax.psum_scatter(v[0], "i", scatter_dimension=0, tiled=True), (1, DEVICES, 1)),
    "all-to-all": lambda v: jax.lax.all_to_all(v, "i", 1, 1, tiled=True),
    "collective-permute": lambda v: jax.lax.ppermute(v, "i", RING),
    "a loop": looped,
}


def main():
    small_runs, large_runs = int(sys.argv[1]), int(sys.argv[2])
    mesh = Mesh(np.array(jax.devices()), ("i",))
    runs, begun = 0, time.time()
    for name, f in PROGRAMS.items():
        program = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
        for size, repeats in ((SMALL, small_runs), (LARGE, large_runs)):
            values = np.random.default_rng(0).standard_normal((DEVICES, DEVICES, size)).astype(np.float32)
            x = jax.device_put(values, NamedSharding(mesh, P("i")))
            first = np.asarray(program(x)).tobytes()
            for run in range(repeats):
                again = np.asarray(program(x)).tobytes()
                if again != first:
                    print(f"{name} of {size} values: run {run} differs from the first")
                    return 1
            runs += repeats
    print(f"{runs} runs of {len(PROGRAMS)} programs on {DEVICES} devices: no hang, the same bits every time; {time.time() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
