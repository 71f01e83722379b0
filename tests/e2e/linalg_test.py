"""JAX's linear algebra on Strop's own calls of LAPACK: what the factors multiply to, single and in batches, what a
matrix without factors gives, and that programs run on jaxlib's handlers where Strop has no library."""

import os
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "strop"

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import scipy  # noqa: F401  # whose OpenBLAS it is
    from strop import lapack
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

SHAPES = [(1, 1), (4, 4), (7, 3), (3, 7), (5, 40, 40), (2, 3, 6, 6), (0, 3, 3)]


def matrix(shape, dtype):
    random = np.random.RandomState(len(shape) + shape[-1])
    value = random.randn(*shape)
    if np.issubdtype(dtype, np.complexfloating):
        value = value + 1j * random.randn(*shape)
    return value.astype(dtype)


def near(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, (actual.shape, expected.shape)
    error = np.max(np.abs(actual - expected), initial=0)
    assert error < 2e-4, error


def factors():
    for dtype in (np.float32, np.complex64):
        for shape in SHAPES:
            a = matrix(shape, dtype)
            q, r = jnp.linalg.qr(a)
            near(q @ r, a)
            u, s, vh = jnp.linalg.svd(a, full_matrices=False)
            near((u * s[..., None, :]) @ vh, a)
            lu, pivots, order = jax.lax.linalg.lu(a)
            k = min(shape[-2:])
            lower = jnp.tril(lu, -1)[..., :, :k] + jnp.eye(shape[-2], k, dtype=dtype)
            near(lower @ jnp.triu(lu)[..., :k, :], np.take_along_axis(a, np.asarray(order)[..., None], -2))


def square_matrices():
    for dtype in (np.float32, np.complex64):
        for shape in SHAPES:
            if shape[-1] != shape[-2]:
                continue
            a = matrix(shape, dtype)
            h = a + np.swapaxes(a.conj(), -1, -2)
            w, v = jnp.linalg.eigh(h)
            near(h @ v, v * w[..., None, :])
            values, vectors = jnp.linalg.eig(a)
            near(a.astype(np.complex64) @ vectors, vectors * values[..., None, :])
            b = matrix(shape[:-1] + (2,), dtype)
            well = a + (4 * shape[-1]) * np.eye(shape[-1], dtype=dtype)
            near(well @ jnp.linalg.solve(well, b), b)
            if len(shape) == 2:
                t, z = jax.scipy.linalg.schur(a)
                near(z @ t @ z.conj().T, a)


def no_factors():
    nan = np.full((3, 3), np.nan, np.float32)
    assert np.isnan(jnp.linalg.eig(nan)[0]).all() and np.isnan(jnp.linalg.svd(nan)[1]).all()
    assert np.isnan(jnp.linalg.cholesky(-np.eye(3, dtype=np.float32))[0, 0])


def without_a_library():
    program = "import jax.numpy as jnp; q, r = jnp.linalg.qr(jnp.eye(100) * 2); print(abs(r[0, 0]))"
    environment = dict(os.environ, STROP_LAPACK_LIBRARY="/nonexistent/liblapack.so", STROP_LOG="2")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stdout.strip() == "2.0", done.stderr[-800:]
    assert "the registered target is taken" in done.stderr, done.stderr[-800:]


def main() -> int:
    if not lapack.library_path():
        print("skipped: scipy brings no OpenBLAS here")
        return 77
    for check in (factors, square_matrices, no_factors, without_a_library):
        check()
        print(f"{check.__name__}: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
