"""The running example: -((a @ b) * 0.125) of int8 by bfloat16, against recorded values and against XLA:CPU.

The product is summed in float32 and rounded to bfloat16 before the multiplication. The order of the sum is free, so a result may be one
bfloat16 step away from another's; against float64 the error is at most 2 where results reach 932.
"""
import sys
import zlib

import side_by_side

arguments = side_by_side.arguments(__doc__)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

FIRST = np.array([88.5, -123, 276, -71.5, 215, 130], jnp.bfloat16)


def f(a, b):
    return -((a @ b) * 0.125)


def inputs(device):
    with jax.default_device(device):
        key = jax.random.PRNGKey(1701)
        a = jax.random.randint(key, (1024, 512), dtype=jnp.int8, minval=0, maxval=255)
        return np.asarray(a), np.asarray(jax.random.normal(key, (512, 2048), dtype=jnp.bfloat16))


def bfloat16_steps(x, y):
    """How many representable bfloat16 values lie between x and y, element by element"""

    def line(v):
        bits = v.view(np.int16).astype(np.int32)
        return np.where(bits < 0, -(bits & 0x7FFF), bits)

    return np.abs(line(x) - line(y))


def main():
    checks, runs, results = side_by_side.Checks(), [], {}
    for platform in arguments.platforms:
        name = side_by_side.NAMES[platform]
        a, b = inputs(jax.devices(platform)[0])
        checks(f"{name}: random int8 input as recorded", (int(a.astype(np.int64).sum()), zlib.crc32(a.tobytes())) == (33312676, 0xC3221BDA))
        checks(f"{name}: random bfloat16 input as recorded", zlib.crc32(b.tobytes()) == 0x7C19C020)
        run = side_by_side.Run(platform, f, a, b)
        placed = run.put((a, b))
        for _ in range(10):
            out = run(*placed)
        results[platform] = np.asarray(out)
        runs.append(run)
        exact = -((a.astype(np.float64) @ b.astype(np.float64)) * 0.125)
        error = np.abs(exact - results[platform].astype(np.float64)).max()
        checks(f"{name}: largest error against float64 is {error:.3f}, at most 2 is accepted", error <= 2)
        checks(f"{name}: first values as recorded", bfloat16_steps(results[platform][0, :6], FIRST).max() <= 1)
    checks.runs(runs)
    if len(results) == 2:
        # A sum near zero has steps smaller than the rounding of its terms (512 of them, up to 400 each, in float32: about 0.01).
        steps = bfloat16_steps(results["strop"], results["cpu"])
        apart = np.abs(results["strop"].astype(np.float64) - results["cpu"].astype(np.float64))
        checks(f"results differ by at most one bfloat16 step or 0.01 ({np.count_nonzero(steps)} of {steps.size} differ)",
               bool(np.all((steps <= 1) | (apart <= 0.01))))
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
