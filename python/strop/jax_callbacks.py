"""Host callbacks whose results lie in memory as their shapes say.

jaxlib's callback handler copies a result whose strides are not those of a row-major array through a plan from a cache.
The cache is made by the handler's instantiate stage, which jaxlib does not hand out to plugins (custom_call_targets
gives prepare, initialize and execute only), and the handler does not look whether it is there. Results are therefore
made row-major, down to the strides of dimensions of size 0 and 1, before they reach it.
"""

import functools

import numpy as np


def row_major(value) -> np.ndarray:
    """The array with stride i = product of the later dimensions; copied only if it is not so already."""
    array = np.asarray(value)
    strides, stride = [], array.itemsize
    for size in reversed(array.shape):
        strides.append(stride)
        stride *= size
    strides.reverse()
    if array.strides == tuple(strides):
        return array
    # Strides of dimensions of size 0 and 1 are chosen freely by numpy, also in a fresh array.
    memory = np.array(array, order="C", copy=True).reshape(-1).view(np.uint8)
    return np.ndarray(array.shape, array.dtype, memory, strides=strides)


def install() -> None:
    """Makes every callback that JAX lowers from now on return row-major results."""
    from jax._src import callback as jax_callback

    original = jax_callback.emit_python_callback
    if getattr(original, "_strop_row_major", False):
        return

    @functools.wraps(original)
    def emit(ctx, callback, *args, **kwargs):
        def wrapped(*values):
            return tuple(row_major(result) for result in callback(*values))

        return original(ctx, wrapped, *args, **kwargs)

    emit._strop_row_major = True
    jax_callback.emit_python_callback = emit
