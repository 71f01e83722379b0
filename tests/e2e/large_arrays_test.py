"""Movement and reductions of large arrays of random shapes, beside NumPy: what is chosen by size (tiles, rows past the
caches, parts of reductions) is seen by few other tests. `--programs=N --seed=S` runs others than ctest does."""

import argparse
import os
import sys

os.environ["JAX_PLATFORMS"] = "strop"
os.environ.setdefault("STROP_TIER", "optimizing")  # whose kernels choose by size

try:
    import jax
    import jax.numpy as jnp
    import ml_dtypes
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TYPES = 4 * [np.float32] + [ml_dtypes.bfloat16, np.float16, np.float64, np.int8, np.int16, np.int32, np.bool_, np.complex64]
LEAST_BYTES, MOST_BYTES = 200e3, 24e6


def shape_of(rng, elements):
    """Up to five dimensions of about so many elements together; some are powers of two, some just behind one."""
    rank = int(rng.integers(1, 6))
    sizes = np.exp(rng.dirichlet(1.5 * np.ones(rank)) * np.log(elements)).round().astype(int)
    for d, size in enumerate(sizes):
        kind = rng.random()
        if kind < 0.5:
            sizes[d] = 2 ** round(np.log2(size)) + (int(rng.integers(0, 3)) if kind > 0.3 else 0)
    return tuple(int(size) for size in sizes)


def array(rng, shape, dtype):
    if dtype is np.bool_:
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "i":
        return rng.integers(-100, 100, shape).astype(dtype)
    real = rng.standard_normal(shape, dtype=np.float32)
    return (real + 1j * real[::-1]).astype(dtype) if dtype is np.complex64 else real.astype(dtype)


def operation(rng, shape, dtype):
    """In words, as a function of NumPy or jax.numpy and an array, and whether it rounds."""
    rank, axis = len(shape), int(rng.integers(0, len(shape)))
    axes = tuple(d for d in range(rank) if rng.random() < 0.5) or (axis,)
    ordered = np.dtype(dtype).kind in "if"
    kinds = ["transpose", "pad", "slice", "flip", "concatenate", "take", "roll", "tile", "where", "update"]
    kinds += ["max", "argmax"] * ordered + ["sum", "cumsum"] * (np.dtype(dtype).itemsize >= 4)
    kind = str(rng.choice(kinds))
    if kind == "transpose":
        kept = rank - 1 if rank > 2 and rng.random() < 0.5 else rank  # rows stay together
        order = tuple(int(d) for d in rng.permutation(kept)) + tuple(range(kept, rank))
        return f"transpose {order}", lambda n, x: n.transpose(x, order), False
    if kind == "pad":
        widths = [tuple(int(w) for w in rng.integers(0, 4, 2)) for _ in shape]
        return f"pad {widths}", lambda n, x: n.pad(x, widths), False
    if kind == "slice":
        part = tuple(slice(int(rng.integers(0, max(1, size // 3))), size, int(rng.integers(1, 3))) for size in shape)
        return f"slice {part}", lambda n, x: x[part], False
    if kind == "take":
        index = rng.integers(0, shape[axis], shape[axis]).astype(np.int32)
        return f"take along {axis}", lambda n, x: n.take(x, index, axis=axis), False
    if kind == "update":
        inner = tuple(slice(size // 3, size // 3 + max(1, size // 2)) for size in shape)

        def update(n, x):
            if n is jnp:
                return x.at[inner].set(x[inner][::-1])
            x = x.copy()
            x[inner] = x[inner][::-1].copy()
            return x

        return "update", update, False
    if kind == "where":
        return "where", lambda n, x: n.where(n.arange(shape[-1]) % 3 == 0, x, n.zeros_like(x)), False
    distance = int(rng.integers(1, 20))
    functions = {
        "flip": (axes, lambda n, x: n.flip(x, axes)),
        "concatenate": (axis, lambda n, x: n.concatenate([x, n.flip(x, axis), x], axis)),
        "roll": ((distance, axis), lambda n, x: n.roll(x, distance, axis)),
        "tile": (axis, lambda n, x: n.tile(x, [2 if d == axis else 1 for d in range(rank)])),
        "max": (axes, lambda n, x: n.max(x, axes)),
        "argmax": (axis, lambda n, x: n.argmax(x, axis).astype(np.int32)),
        "sum": (axes, lambda n, x: n.sum(x, axes, dtype=x.dtype)),
        "cumsum": (axis, lambda n, x: n.cumsum(x, axis, dtype=x.dtype)),
    }
    told, function = functions[kind]
    return f"{kind} {told}", function, kind in ("sum", "cumsum") and np.dtype(dtype).kind in "fc"


def equal(got, want, rounds):
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if not rounds:
        return got.tobytes() == np.ascontiguousarray(want).tobytes()
    scale = np.abs(want).max(initial=0) * (1 + np.log2(want.size + 1))
    return np.abs(got - want).max(initial=0) <= (1e-9 if want.dtype == np.float64 else 3e-4) * scale


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    wrong = run = 0
    for number in range(options.programs):
        rng = np.random.default_rng([options.seed, number])
        dtype = TYPES[rng.integers(0, len(TYPES))]
        bytes_wanted = np.exp(rng.uniform(np.log(LEAST_BYTES), np.log(MOST_BYTES)))
        shape = shape_of(rng, bytes_wanted / np.dtype(dtype).itemsize)
        if np.prod(shape) * np.dtype(dtype).itemsize > 2 * MOST_BYTES:
            continue
        if number % 4 == 0:  # heads of attention, whose rows are of any length
            shape = (8, int(MOST_BYTES / 2 / np.dtype(dtype).itemsize / 8 / 12 / 70), 12, int(rng.integers(16, 140)))
            words, function, rounds = "heads", lambda n, x: n.transpose(x, (0, 2, 1, 3)), False
        else:
            words, function, rounds = operation(rng, shape, dtype)
        run += 1
        x = array(rng, shape, dtype)
        want, program = function(np, x), jax.jit(lambda x, function=function: function(jnp, x))
        if not equal(np.asarray(program(x)), want, rounds):
            wrong += 1
            print(f"wrong: program {number} of seed {options.seed}: {words} of {np.dtype(dtype)} {shape}")
        jax.clear_caches()
    print(f"{run} programs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
