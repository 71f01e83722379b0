"""What the examples share: devices before JAX is imported, a mesh over them, values placed on it, and the comparison with one device."""

import argparse
import os
import sys


def start(description):
    """Asks for eight devices in all, unless the environment says how many, and joins the other processes if there are any.

    mpirun tells its processes who they are, and JAX reads it.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0, help="the number of this one")
    parser.add_argument("--coordinator", default="127.0.0.1:5555", help="where process 0 can be reached")
    arguments = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "strop")
    by_mpirun = int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))
    os.environ.setdefault("STROP_NUM_DEVICES", str(8 // max(by_mpirun, arguments.processes)))
    import jax

    if by_mpirun > 1:
        jax.distributed.initialize()
    elif arguments.processes > 1:
        jax.distributed.initialize(arguments.coordinator, arguments.processes, arguments.process)


def mesh_of(**axes):
    """A mesh with these axes over all devices; one axis may be -1, for what is left."""
    import jax
    from jax.sharding import AxisType

    sizes = list(axes.values())
    if -1 in sizes:
        known = 1
        for size in sizes:
            known *= size if size > 0 else 1
        sizes[sizes.index(-1)] = len(jax.devices()) // known
    return jax.make_mesh(tuple(sizes), tuple(axes), axis_types=(AxisType.Auto,) * len(sizes))


def place(tree, mesh, specs):
    """The same host values in every process as arrays over the mesh; `specs` is one PartitionSpec, or a tree of them."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    if isinstance(specs, PartitionSpec):
        specs = jax.tree.map(lambda _: specs, tree)
    return jax.tree.map(lambda value, spec: jax.device_put(value, NamedSharding(mesh, spec)), tree, specs)


def on_host(value):
    """A whole array, also where other processes have parts of it."""
    import numpy as np
    from jax.experimental import multihost_utils

    if value.is_fully_addressable or value.is_fully_replicated:
        return np.asarray(value)
    return multihost_utils.process_allgather(value, tiled=True)


def compare(what, got, expected, tolerance=1e-5):
    """Ends the program: 0 if all values of two trees agree within the tolerance of the largest."""
    import jax
    import numpy as np

    worst = 0.0
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        mine, theirs = on_host(mine), np.asarray(theirs)
        worst = max(worst, float(np.abs(mine - theirs).max() / max(1.0, np.abs(theirs).max())))
    devices = f"{len(jax.devices())} devices" + (f" of {jax.process_count()} processes" if jax.process_count() > 1 else "")
    print(f"{what} on {devices}: differs from one device by {worst:.1e}")
    sys.exit(0 if worst <= tolerance else f"more than {tolerance}")
