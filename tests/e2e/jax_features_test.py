"""What JAX offers around a program, with Strop as the only platform: devices, donation, dlpack, export, memory kinds, the
compilation cache, what a compiled program tells about itself."""

import importlib.util
import os
import subprocess
import sys
import tempfile

os.environ["JAX_PLATFORMS"] = "strop"

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import export
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def devices():
    (device,) = jax.devices("strop")
    assert jax.default_backend() == "cpu" and jax.devices() == [device], jax.devices()
    assert "Strop" in device.client.platform_version
    assert [m.kind for m in device.addressable_memories()] == ["device", "pinned_host", "unpinned_host"]
    assert device.memory_stats()["bytes_limit"] > 0


def donation():
    f = jax.jit(lambda a: a + 1, donate_argnums=0)
    a = jnp.zeros(1024)
    where = a.unsafe_buffer_pointer()
    b = f(a)
    assert a.is_deleted() and b.unsafe_buffer_pointer() == where
    try:
        a + 1
    except RuntimeError as error:
        assert "deleted" in str(error), error
    else:
        raise AssertionError("a donated array could be used")


def dlpack():
    x = jnp.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
    assert float(jnp.from_dlpack(np.arange(64, dtype=np.float32)).sum()) == 2016
    # What NumPy sees is the buffer itself, and the capsule that hands it over is good for once.
    shared = np.from_dlpack(x)
    assert shared.ctypes.data == x.unsafe_buffer_pointer()

    class Once:
        capsule = x.__dlpack__()

        def __dlpack__(self, **_):
            return self.capsule

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    once = Once()
    taken = np.from_dlpack(once)
    assert taken.ctypes.data == x.unsafe_buffer_pointer()
    for take in (np.from_dlpack, jnp.from_dlpack):
        try:
            take(once)
        except Exception as refusal:  # each library has a type of its own
            assert any(word in str(refusal) for word in ("dltensor", "incorrect name", "consumed")), refusal
        else:
            raise AssertionError(f"{take.__module__} took a capsule that was used before")
    del x
    np.testing.assert_array_equal(taken, np.arange(12.0).reshape(3, 4))  # outlives the array


def exported():
    def f(x):
        return jnp.sin(x) * 2

    def kept(program):
        # jax.export writes its files with flatbuffers, which it does not depend on.
        return export.deserialize(program.serialize()) if importlib.util.find_spec("flatbuffers") else program

    program = kept(export.export(jax.jit(f))(jax.ShapeDtypeStruct((3,), jnp.float32)))
    np.testing.assert_allclose(program.call(jnp.arange(3.0)), np.sin(np.arange(3.0)) * 2, rtol=1e-6)
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("b, 4"), jnp.float32)
    program = kept(export.export(jax.jit(lambda x: x.sum(0)))(shape))
    np.testing.assert_array_equal(program.call(jnp.ones((5, 4))), [5, 5, 5, 5])


def memory_kinds():
    there = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    x = jax.device_put(jnp.arange(4.0), there)
    assert x.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(x, [0, 1, 2, 3])


def compiled_programs():
    compiled = jax.jit(lambda a: jnp.tanh(a @ a)).lower(jnp.ones((64, 64))).compile()
    assert compiled.cost_analysis()["flops"] >= 2 * 64**3
    assert compiled.memory_analysis().argument_size_in_bytes == 64 * 64 * 4
    assert compiled.as_text().startswith("HloModule")
    lowered = jax.jit(lambda a, b: -((a @ b) * 0.125)).lower(jnp.ones((64, 32), jnp.int8), jnp.ones((32, 8), jnp.bfloat16))
    for op in ("convert(", "dot(", "broadcast(", "multiply(", "negate("):
        assert op in lowered.as_text(dialect="hlo"), op
    assert "stablehlo.dot_general" in str(lowered.compiler_ir())
    assert "digraph" in lowered.compiler_ir(dialect="hlo").as_hlo_dot_graph()
    optimized = lowered.compile().as_text()
    assert "is_scheduled=true" in optimized and " fusion(" in optimized, optimized


def stack_frames():
    """jaxlib warns of frames that are their own parents when it reads the optimised program."""
    program = "import jax, jax.numpy as jnp; print(jax.jit(lambda x: jnp.sin(x).sum()).lower(jnp.ones(4)).compile().as_text())"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0 and "stack_frame" not in result.stderr, result.stderr


def compilation_cache():
    program = """
import sys, jax, jax.numpy as jnp
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("/cache_hits") else None)
print(float(jax.jit(lambda x: jnp.sin(x @ x).sum())(jnp.ones((8, 8)))), len(hits))
"""
    with tempfile.TemporaryDirectory() as folder:
        first, second = (
            subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=True).stdout.split()
            for _ in range(2)
        )
    assert first[0] == second[0] and int(first[1]) == 0 and int(second[1]) > 0, (first, second)


def threads():
    program = "import jax, jax.numpy as jnp; print(float((jnp.ones((256, 256)) @ jnp.ones((256, 256)))[0, 0]))"
    environment = dict(os.environ, STROP_NUM_THREADS="1")
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert result.stdout.strip() == "256.0", result.stdout


for case in (
    devices, donation, dlpack, exported, memory_kinds, compiled_programs, stack_frames, compilation_cache, threads
):
    case()
    print("ok", case.__name__)
