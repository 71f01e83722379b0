"""Factorisations and systems of many small matrices, in the wide set (cases_held_out.py): what filters, fits of many
small models and their gradients compute, in sizes, types and shapes that the other modules do not have.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sxs.registry import Registrar

case = Registrar("held_out")


def _far_from_singular(g, batch, n, dtype="f32"):
    """Random matrices whose rows LU exchanges, that have a good inverse all the same."""
    shift = np.roll(np.eye(n), 1, axis=0) * 3 * np.sqrt(n)
    return (g.normal(batch, n, n, dtype=dtype) + shift).astype({"f32": np.float32, "f64": np.float64}[dtype])


@case("linalg", lambda g: (g.spd(10, 700),))
def cholesky_batched_10(a):
    return jnp.linalg.cholesky(a)


@case("linalg", lambda g: (_far_from_singular(g, 900, 9), g.normal(900, 9, 3)), tol=1e-3)
def solve_batched_9x3(a, b):
    return jnp.linalg.solve(a, b)


@case("linalg", lambda g: (_far_from_singular(g, 1500, 5, "f64"),), tol=1e-8, x64=True)
def inv_batched_5_f64(a):
    return jnp.linalg.inv(a)


@case("linalg", lambda g: (_far_from_singular(g, 600, 7), g.normal(600, 7)), tol=1e-3)
def grad_of_vmapped_solve_7(a, b):
    return jax.grad(lambda a, b: (jax.vmap(jnp.linalg.solve)(a, b) ** 2).sum(), (0, 1))(a, b)


@case("linalg", lambda g: (g.spd(8, 1200), g.normal(1200, 8)), tol=1e-3)
def cho_solve_vmapped_8(a, b):
    return jax.vmap(lambda a, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b))(a, b)


def _same_signs(qr):
    q, r = qr
    sign = np.sign(np.diagonal(r, axis1=-2, axis2=-1))
    return q * sign[..., None, :], r * sign[..., :, None]


@case("linalg", lambda g: (g.normal(1000, 6, 4),), canon=_same_signs, tol=2e-3)
def qr_batched_6x4(a):
    return tuple(jnp.linalg.qr(a))


@case("linalg", lambda g: (g.spd(26, 90), g.normal(90, 26)), tol=1e-3)
def gaussian_log_densities_26(cov, x):
    def log_density(cov, x):
        low = jnp.linalg.cholesky(cov)
        z = jax.scipy.linalg.solve_triangular(low, x, lower=True)
        return -0.5 * z @ z - jnp.log(jnp.diagonal(low)).sum()

    return jax.vmap(log_density)(cov, x)


# one matrix that is not small, and transforms of powers of two


@case("linalg", lambda g: (_far_from_singular(g, 1, 150)[0], g.normal(150, 5)), tol=1e-3)
def solve_150x5(a, b):
    return jnp.linalg.solve(a, b)


@case("linalg", lambda g: (_far_from_singular(g, 1, 420)[0],), tol=1e-3)
def slogdet_420(a):
    return jnp.linalg.slogdet(a)


@case("linalg", lambda g: (g.normal(200, 2048),))
def rfft_rows_2048(x):
    return jnp.fft.rfft(x)


@case("linalg", lambda g: (g.normal(6, 256, 128, dtype="c64"),))
def ifft2_batched_256x128(x):
    return jnp.fft.ifft2(x)


@case("linalg", lambda g: (g.spd(300) - 150 * np.eye(300, dtype=np.float32),), tol=1e-3, ref="cpu")
def eigenvalues_300(a):
    return jnp.linalg.eigh(a)[0]


@case("linalg", lambda g: (g.normal(180, 140),), tol=1e-3)
def singular_values_180x140(a):
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    return (u * s) @ vt, s


@case("linalg", lambda g: (g.normal(200, 20, 20),), tol=1e-3)
def svd_batched_20(a):
    u, s, vt = jnp.linalg.svd(a)
    return (u * s[:, None]) @ vt, s


@case("linalg", lambda g: (g.spd(450),), tol=1e-3)
def cholesky_450(a):
    return jnp.linalg.cholesky(a)
