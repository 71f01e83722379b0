"""One of several processes: worker.py SCENARIO COORDINATOR RANK SIZE. RANK may be mpi: what MPI's launcher says."""

import json
import os
import signal
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import gpt


def mesh_of(data, model):
    return jax.make_mesh((data, model), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def report(**values):
    with open(os.path.join(os.environ["REPORTS"], str(os.getpid())), "a") as file:
        file.write(json.dumps(values) + "\n")


def train(rank):
    count = len(jax.devices())
    report(data=gpt.train(mesh_of(count, 1)), tensor=gpt.train(mesh_of(1, count)), both=gpt.train(mesh_of(2, count // 2)))


def alone(rank):
    report(alone=gpt.train(mesh_of(1, 1)))


def arrays(rank):
    """Places, arrays of which this process has a part, and what multihost_utils does with them."""
    size, here = jax.process_count(), jax.local_device_count()
    assert jax.process_index() == rank and len(jax.devices()) == size * here
    assert [d.id for d in jax.devices()] == list(range(size * here))
    assert all(d.process_index == rank for d in jax.local_devices())
    mesh = mesh_of(size * here, 1)
    whole = np.arange(size * here * 3, dtype=np.float32).reshape(-1, 3)
    mine = whole[rank * here : (rank + 1) * here]
    x = multihost_utils.host_local_array_to_global_array(mine, mesh, P("data"))
    assert not x.is_fully_addressable and x.shape == whole.shape
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, whole[shard.index])
    np.testing.assert_array_equal(multihost_utils.process_allgather(x, tiled=True), whole)
    np.testing.assert_array_equal(multihost_utils.process_allgather(mine[:1]), whole.reshape(size, here, 3)[:, :1])
    np.testing.assert_array_equal(multihost_utils.broadcast_one_to_all(mine), whole[:here])
    multihost_utils.sync_global_devices("all are here")
    multihost_utils.assert_equal(whole, "everybody has the same")
    np.testing.assert_array_equal(jax.jit(lambda x: (x * x).sum(0), out_shardings=NamedSharding(mesh, P()))(x), (whole**2).sum(0))
    y = jax.device_put(whole, NamedSharding(mesh, P("data")))
    np.testing.assert_array_equal(multihost_utils.global_array_to_host_local_array(y, mesh, P("data")), mine)
    z = jax.jit(lambda x: x, out_shardings=NamedSharding(mesh, P(None, None)))(y)
    np.testing.assert_array_equal(z, whole)
    # From the devices of one process to those of another, and back.
    one, other = (jax.sharding.Mesh(np.array(jax.devices()[k * here : (k + 1) * here]), ("x",)) for k in (0, 1))
    a = jax.device_put(whole[: 2 * here], NamedSharding(one, P("x")))
    b = jax.device_put(a, NamedSharding(other, P("x")))
    c = jax.device_put(b, NamedSharding(one, P("x")))
    for there in (a, b, c):
        for shard in there.addressable_shards:
            np.testing.assert_array_equal(shard.data, whole[: 2 * here][shard.index])
    # A program on this process's devices alone is nobody else's business.
    np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(whole) if rank == 0 else whole + 1, whole + 1)


def collectives(rank):
    n = len(jax.devices())
    mesh = jax.make_mesh((n,), ("i",), axis_types=(AxisType.Auto,))
    x = np.random.RandomState(3).randint(-50, 50, (n, n, 5)).astype(np.int32)

    def run(f, dtype=np.int32):
        placed = gpt.place(x.astype(dtype), mesh, P("i"))
        out = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))(placed)
        return multihost_utils.process_allgather(out, tiled=True)

    ring = [(i, (i + 1) % n) for i in range(n)]
    pairs = [list(group) for group in np.arange(n).reshape(2, -1).T.tolist()]  # across processes
    for dtype in (np.int32, np.float32, jnp.bfloat16):
        np.testing.assert_array_equal(run(lambda v: jax.lax.psum(v, "i"), dtype), np.broadcast_to(x.sum(0), x.shape).astype(dtype))
    np.testing.assert_array_equal(run(lambda v: jax.lax.pmax(v, "i")), np.broadcast_to(x.max(0), x.shape))
    np.testing.assert_array_equal(run(lambda v: jax.lax.ppermute(v, "i", ring)), np.roll(x, 1, axis=0))
    np.testing.assert_array_equal(run(lambda v: jax.lax.ppermute(v, "i", ring[:1])), np.where(np.arange(n)[:, None, None] == 1, x[0], 0))
    np.testing.assert_array_equal(run(lambda v: jax.lax.all_gather(v, "i", axis=1, tiled=True)), np.broadcast_to(x.reshape(1, n * n, 5), (n, n * n, 5)))
    np.testing.assert_array_equal(run(lambda v: jax.lax.all_to_all(v, "i", 1, 0)).reshape(x.shape), x.swapaxes(0, 1))
    np.testing.assert_array_equal(run(lambda v: jax.lax.psum_scatter(v, "i", scatter_dimension=1, tiled=True))[:, 0], x.sum(0))
    sums = run(lambda v: jax.lax.psum(v, "i", axis_index_groups=pairs))
    for group in pairs:
        np.testing.assert_array_equal(sums[group], np.broadcast_to(x[group].sum(0), (len(group), n, 5)))

    def loop(v):  # a collective in a loop, and large enough to go in shares among many
        return jax.lax.fori_loop(0, 5, lambda i, s: jax.lax.psum(s, "i") % 1000003, v)

    expected = x
    for _ in range(5):
        expected = np.broadcast_to(expected.sum(0) % 1000003, x.shape)
    np.testing.assert_array_equal(run(loop), expected)
    large = gpt.place(np.tile(np.arange(n, dtype=np.float32)[:, None], (1, 1 << 20)), mesh, P("i"))
    total = jax.jit(jax.shard_map(lambda v: jax.lax.psum(v, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))(large)
    assert np.asarray(total).min() == np.asarray(total).max() == n * (n - 1) / 2
    # Many launches on the way at the same time.
    step = jax.jit(jax.shard_map(lambda v: jax.lax.psum(v, "i") // n, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
    v = gpt.place(np.full((n, 7), 6, np.int32), mesh, P("i"))
    for _ in range(100):
        v = step(v)
    assert (multihost_utils.process_allgather(v, tiled=True) == 6).all()


def endless_sums():
    n = len(jax.devices())
    mesh = jax.make_mesh((n,), ("i",), axis_types=(AxisType.Auto,))
    step = jax.jit(jax.shard_map(lambda v: jax.lax.psum(v, "i") / n, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
    v = gpt.place(np.ones((n, 1000), np.float32), mesh, P("i"))
    while True:
        v = step(v)
        v.block_until_ready()
        yield


def fail_when_the_other(does):
    """Rank 1 `does` something after some steps; the others say what they hear of it, and when."""

    def scenario(rank):
        try:
            for step, _ in enumerate(endless_sums()):
                start = time.time()
                if rank == 1 and step == 5:
                    report(about_to=os.getpid())
                    does()
        except Exception as error:  # noqa: BLE001: whatever it is, it is what the test wants to see
            report(error=str(error), seconds=time.time() - start)
        try:  # nor does anything hang from now on
            next(endless_sums())
        except Exception as error:  # noqa: BLE001
            report(again=str(error)[:200])
        sys.stdout.flush()
        os._exit(0)  # jax.distributed would wait for the lost process

    return scenario



def everything(rank):
    arrays(rank)
    collectives(rank)
    train(rank)


SCENARIOS = {
    "alone": alone,
    "arrays": arrays,
    "collectives": collectives,
    "train": train,
    "everything": everything,
    "killed": fail_when_the_other(lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "stalled": fail_when_the_other(lambda: os.kill(os.getpid(), signal.SIGSTOP)),
}


def main():
    scenario, coordinator, rank, size = sys.argv[1:5]
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"] if rank == "mpi" else rank)
    if int(size) > 1:
        jax.distributed.initialize(coordinator, int(size), rank)
    SCENARIOS[scenario](rank)
    report(done=scenario)


if __name__ == "__main__":
    main()
