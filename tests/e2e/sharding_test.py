"""Programs on several devices, with Strop as the only platform: sharded jit, manual regions, pmap, callbacks, donation, layouts."""

import os
import sys

os.environ["JAX_PLATFORMS"] = "strop"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import jax.experimental
    import jax.experimental.custom_partitioning
    from jax.experimental.layout import Format, Layout
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
HOST = np.arange(64.0, dtype=np.float32).reshape(8, 8)


def split(*axes):
    return NamedSharding(MESH, P(*axes))


def sharded_arguments_and_results():
    assert len(jax.devices()) == 8
    for spec in (("x", "y"), ("y", "x"), (("x", "y"),), (None, "x"), ()):
        x = jax.device_put(HOST, split(*spec))
        product = jax.jit(lambda a: a @ a.T + 1, out_shardings=split("y", None))(x)
        np.testing.assert_array_equal(product, HOST @ HOST.T + 1)
        assert product.sharding.shard_shape(product.shape) == (4, 8), product.sharding
        constrained = jax.jit(lambda a: jax.lax.with_sharding_constraint(a * 2, split("x")).T)(x)
        np.testing.assert_array_equal(constrained, HOST.T * 2)
    # A result of which nothing is said is cut as what it is made of.
    x = jax.device_put(HOST, split("x", "y"))
    turned = jax.jit(lambda a: jnp.abs(a).T + 1)(x)
    np.testing.assert_array_equal(turned, HOST.T + 1)
    assert turned.sharding == split("y", "x"), turned.sharding


def manual_regions():
    x = jax.device_put(HOST, split("x", "y"))

    def shard(a):
        total = jax.lax.psum(a, "x") + jax.lax.axis_index("y").astype(a.dtype)
        return total, jax.lax.all_gather(a, "y", axis=1, tiled=True), jax.lax.ppermute(a, "x", [(i, (i + 1) % 4) for i in range(4)])

    f = jax.jit(jax.shard_map(shard, mesh=MESH, in_specs=P("x", "y"), out_specs=(P(None, "y"), P("x", None), P("x", "y")), check_vma=False))
    total, gathered, moved = f(x)
    sums = HOST.reshape(4, 2, 8).sum(0)
    sums[:, 4:] += 1
    np.testing.assert_array_equal(total, sums)
    np.testing.assert_array_equal(gathered, HOST)
    np.testing.assert_array_equal(moved, np.roll(HOST, 2, axis=0))
    # Manual over one axis only; the other is left to the compiler.
    g = jax.jit(jax.shard_map(lambda a: a.sum(0, keepdims=True), mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))
    np.testing.assert_array_equal(g(x), HOST.reshape(4, 2, 8).sum(1))


def mapped():
    f = jax.pmap(lambda a: jax.lax.psum(a, "i") * jax.lax.axis_index("i"), axis_name="i")
    np.testing.assert_array_equal(f(HOST), HOST.sum(0) * np.arange(8, dtype=np.float32)[:, None])


def one_call_for_all_devices():
    """A host callback outside of manual regions is made once, on whole values; its result reaches every device."""
    seen = []

    def double(a):
        seen.append(np.shape(a))
        return np.asarray(a) * 2

    def f(a):
        return jax.pure_callback(double, jax.ShapeDtypeStruct(a.shape, a.dtype), a) + 1

    result = jax.jit(f, out_shardings=split("x"))(jax.device_put(HOST, split("x", "y")))
    np.testing.assert_array_equal(result, HOST * 2 + 1)
    assert seen == [(8, 8)], seen


def effects_are_waited_for():
    seen = []

    def f(a):
        jax.experimental.io_callback(lambda v: seen.append(int(v.sum())), None, a)
        return a + 1

    f = jax.jit(f, in_shardings=split("x"), out_shardings=split())
    x = np.arange(8)
    for _ in range(50):
        seen.clear()
        f(x)
        f(x + 1)
        jax.effects_barrier()
        assert sorted(seen) == [28, 36], seen


def donated_shards():
    x = jax.device_put(HOST, split())
    np.testing.assert_array_equal(jax.jit(lambda a: a * 2, donate_argnums=0)(x), HOST * 2)
    assert x.is_deleted()


def layouts():
    columns = jax.device_put(HOST, Format(Layout((1, 0)), split("x")))
    assert columns.format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(columns, HOST)
    f = jax.jit(lambda a: a + 1, in_shardings=Format(Layout((1, 0)), split("x")), out_shardings=Format(Layout((0, 1)), split("x")))
    result = f(columns)
    assert result.format.layout.major_to_minor == (0, 1)
    np.testing.assert_array_equal(result, HOST + 1)


# What the user knows of an op: its dimensions, and what a device does with its shards.
def custom_partitioning():
    def partition(mesh, arguments, result):
        def lower(a):
            return a / jax.lax.psum(a.sum(0), "x")

        rows = NamedSharding(mesh, P("x", "y"))
        return mesh, lower, rows, (rows,)

    @jax.experimental.custom_partitioning.custom_partitioning
    def columns_to_one(a):
        return a / a.sum(0)

    columns_to_one.def_partition(partition, sharding_rule="i j -> i j")
    x = jax.device_put(HOST + 1, split("x", "y"))
    compiled = jax.jit(lambda a: columns_to_one(a * 2)).lower(x).compile()
    result = compiled(x)
    np.testing.assert_allclose(result, (HOST + 1) / (HOST + 1).sum(0), rtol=1e-6)
    assert result.sharding == split("x", "y"), result.sharding
    assert "all-gather" not in compiled.as_text()


def inspected_shardings():
    seen = []

    def f(a):
        jax.debug.inspect_array_sharding(a.T + 1, callback=seen.append)
        return a

    jax.jit(f)(jax.device_put(HOST, split("x", "y")))
    assert [s.spec for s in seen] == [P("y", "x")], seen


# LAPACK's calls of batches are made on shards.
def batches_of_factorisations():
    x = np.eye(3, dtype=np.float32) * 4 + np.arange(8, dtype=np.float32)[:, None, None] / 10
    sharded = jax.device_put(x, split("x"))
    compiled = jax.jit(jax.vmap(jax.scipy.linalg.lu)).lower(sharded).compile()
    for got, want in zip(compiled(sharded), jax.vmap(jax.scipy.linalg.lu)(x)):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    assert "all-gather" not in compiled.as_text()


# Each device calls back with what it has.
def callbacks_of_shards():
    seen = []
    x = jax.device_put(np.arange(8), split("x"))
    jax.jit(lambda a: jax.debug.callback(lambda v: seen.append(np.asarray(v).tolist()), a, partitioned=True))(x)
    jax.effects_barrier()
    assert sorted(seen) == [[0, 1]] * 2 + [[2, 3]] * 2 + [[4, 5]] * 2 + [[6, 7]] * 2, seen


for case in (sharded_arguments_and_results, manual_regions, mapped, one_call_for_all_devices, effects_are_waited_for, donated_shards, layouts,
             custom_partitioning, inspected_shardings, batches_of_factorisations, callbacks_of_shards):
    case()
    print("ok", case.__name__)
