"""Host callbacks with Strop as the only platform: values, order, loops, results of any strides, errors; with one thread."""

import os
import sys

os.environ["JAX_PLATFORMS"] = "strop"
os.environ.setdefault("STROP_NUM_THREADS", "1")

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import io_callback
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def pure():
    x = jnp.arange(6.0).reshape(2, 3)
    out = jax.jit(lambda v: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(v.shape, v.dtype), v) + 1)(x)
    np.testing.assert_allclose(out, np.sin(np.asarray(x)) + 1, rtol=1e-6)


def any_strides():
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    for make in (lambda v: v.T, lambda v: v[::-1, ::2], lambda v: v.T[:1], lambda v: v[:0], lambda v: v[:, :0]):
        want = make(x)
        shape = jax.ShapeDtypeStruct(want.shape, want.dtype)
        got = jax.jit(lambda v, make=make, shape=shape: jax.pure_callback(lambda a: make(np.asarray(a)), shape, v))(x)
        np.testing.assert_array_equal(got, want)


def inside_scan():
    seen = []

    def step(carry, x):
        jax.debug.callback(lambda v: seen.append(float(v)), carry, ordered=True)
        return carry + x, jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct((), jnp.float32), carry)

    total, doubled = jax.jit(lambda xs: jax.lax.scan(step, jnp.float32(0), xs))(jnp.arange(5.0))
    jax.effects_barrier()
    assert float(total) == 10 and seen == [0, 0, 1, 3, 6], (total, seen)
    np.testing.assert_array_equal(doubled, [0, 0, 2, 6, 12])


def device_put_inside():
    """A callback may use JAX on the platform that is waiting for it."""
    x = jnp.arange(4.0)

    def host(v):
        return np.asarray(jax.jit(lambda a: a * 2)(jnp.asarray(v)))

    out = jax.jit(lambda v: jax.pure_callback(host, jax.ShapeDtypeStruct(v.shape, v.dtype), v))(x)
    np.testing.assert_array_equal(out, [0, 2, 4, 6])


def ordered_io():
    log = []

    @jax.jit
    def f(x):
        for i in range(3):
            io_callback(lambda v, i=i: log.append((i, float(v))), None, x + i, ordered=True)
        return x

    f(jnp.float32(1))
    jax.effects_barrier()
    assert log == [(0, 1.0), (1, 2.0), (2, 3.0)], log


def errors():
    def host(_):
        raise ValueError("no luck")

    try:
        jax.block_until_ready(jax.jit(lambda v: jax.pure_callback(host, v, v))(jnp.float32(1)))
    except jax.errors.JaxRuntimeError as error:
        assert "no luck" in str(error), error
    else:
        raise AssertionError("the callback's error was lost")


for case in (pure, any_strides, inside_scan, device_put_inside, ordered_io, errors):
    case()
    print("ok", case.__name__)
