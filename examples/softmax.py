"""Softmax over the last axis of a large array, as one function: memory bound, so what counts is that nothing is stored in between."""
import sys

import side_by_side

arguments = side_by_side.arguments(__doc__, ("--rows", dict(type=int, default=4, help="first dimension; 256 is 1 GB in and 1 GB out (default 4)")))

import jax.numpy as jnp  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402

# Of RandomState(0).randn(n, 1000, 1000): the same first rows whatever n is.
GOLDEN = np.array([0.00375057, 0.00095888, 0.00171017, 0.00604208])


def softmax(x):
    shifted = jnp.exp(x - jax.lax.stop_gradient(x.max(axis=-1, keepdims=True)))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def main():
    x = np.random.RandomState(0).randn(arguments.rows, 1000, 1000).astype(np.float32)
    checks, runs, results = side_by_side.Checks(), [], {}
    for platform in arguments.platforms:
        run = side_by_side.Run(platform, softmax, x)
        placed = run.put(x)
        for _ in range(5):
            y = run(placed)
        results[platform] = np.asarray(y)
        runs.append(run)
    checks.runs(runs)
    for platform, y in results.items():
        name = side_by_side.NAMES[platform]
        checks(f"{name}: first values as recorded", np.allclose(y[0, 0, :4], GOLDEN, rtol=1e-5))
        checks(f"{name}: every row sums to 1", np.allclose(y.sum(axis=-1, dtype=np.float64), 1, atol=1e-5))
    checks.same("results", results, 1e-5)
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
