"""What a JAX user reads when something goes wrong: each message names what, how much, the line of this file, and what to do."""

import os
import sys

os.environ["JAX_PLATFORMS"] = "strop"

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax.extend.core import Primitive
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

THREE = jax.ShapeDtypeStruct((3,), np.float32)
HERE = "errors_test.py:"


def large_output():
    return jax.jit(lambda: jnp.zeros((1 << 20, 1 << 20)))()


def large_temporary():
    return jax.jit(lambda x: jnp.sort(x[:, None] * x[None, :], axis=0)[5])(jnp.ones(1 << 18))


def callback_raises():
    def fail(_):
        raise ValueError("the tank is empty")

    return jax.jit(lambda x: jax.pure_callback(fail, THREE, x))(np.ones(3, np.float32))


def callback_returns_another_shape():
    return jax.jit(lambda x: jax.pure_callback(lambda _: np.ones(4, np.float32), THREE, x))(np.ones(3, np.float32))


def unknown_ffi_target():
    return jax.jit(lambda x: jax.ffi.ffi_call("no_such_target", THREE)(x, gamma=1.5))(np.ones(3, np.float32))


def unknown_custom_call():
    mystery = Primitive("mystery")
    mystery.def_abstract_eval(lambda x: x)
    mlir.register_lowering(
        mystery, lambda _, x: mlir.custom_call("my_mystery_call", result_types=[x.type], operands=[x]).results)
    return jax.jit(lambda x: mystery.bind(x) * 2)(jnp.ones(3))


def with_option(name, value):
    return lambda: jax.jit(lambda x: x + 1).lower(1.0).compile(compiler_options={name: value})


def deleted():
    x = jnp.ones(3)
    x.delete()
    return x + 1


def donated():
    x = jnp.ones(3)
    step = jax.jit(lambda v: v + 1, donate_argnums=0)
    step(x)
    return step(x)


def donated_twice():
    x = jnp.ones(3)
    return jax.jit(lambda a, b: (a + 1, b + 2), donate_argnums=(0, 1))(x, x)


def executable():
    return jax.jit(lambda x: x + 1).lower(jnp.ones(3)).compile().runtime_executable()


def unknown_size():
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse("""module @m { func.func public @main(%a: tensor<?xf32>) -> tensor<?xf32> {
            return %a : tensor<?xf32> } }""")
        device = jax.devices()[0]
        return device.client.compile_and_load(module, xla_client.DeviceList((device,)), xla_client.CompileOptions())


CASES = [
    (large_output, ["RESOURCE_EXHAUSTED", "(4 TiB)", "limit", "output 0 of jit__lambda, f32[1048576,1048576]", HERE]),
    (large_temporary, ["RESOURCE_EXHAUSTED", "temporary values of jit__lambda", "MiB f32[262144,262144] of sort", HERE]),
    (callback_raises, ["the tank is empty", HERE]),
    (callback_returns_another_shape, ["Expected: (3,), Actual: (4,)", HERE]),
    (unknown_ffi_target, ['no custom call target "no_such_target"', "jax.ffi.register_ffi_target", HERE]),
    (unknown_custom_call, ['no custom call target "my_mystery_call"', HERE]),
    (with_option("xla_dmp_to", "x"), ["'xla_dmp_to'; did you mean 'xla_dump_to'?"]),
    (with_option("xla_embed_ir_in_executable", "x"), ["xla_embed_ir_in_executable: 'x' is not a valid bool value."]),
    (with_option("strop_num_thread", "2"), ["'strop_num_thread'; did you mean 'num_threads'?"]),
    (with_option("num_threads", "many"), ["num_threads: 'many' is not accepted: expected a whole number from 0 to 4096"]),
    (deleted, ["Array has been deleted with shape=float32[3]"]),
    (donated, ["buffer has been donated", "argument 0 of jit__lambda"]),
    (donated_twice, ["argument 0 is donated and is argument 1 as well"]),
    (lambda: executable().execute_sharded([jnp.ones(4)]), ["argument 0 of jit__lambda is f32[4], expected f32[3]"]),
    (lambda: executable().execute_sharded([jnp.ones(3)] * 2), ["supplied 2 buffers", "jit__lambda expected 1"]),
    (unknown_size, ["UNIMPLEMENTED", "f32[?]", "a size that only a run tells"]),
]

failures = 0
for case, words in CASES:
    try:
        jax.block_until_ready(case())
        message = "nothing was refused"
    except Exception as error:  # any kind: what is told counts
        message = f"{type(error).__name__}: {error}"
    missing = [w for w in words if w not in message]
    if missing:
        failures += 1
        print(f"FAIL {getattr(case, '__name__', case)}: {missing} not in\n{message}\n")
print(f"{len(CASES) - failures} of {len(CASES)} messages say what they should")
sys.exit(1 if failures else 0)
