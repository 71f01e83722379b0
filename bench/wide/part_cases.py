"""What is put together from parts, and what is picked apart, of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sxs.registry import Registrar

case = Registrar("held_out")

# stacks and concatenations of what is computed ------------------------------------------


@case("elementwise", lambda g: (g.normal(20000),))
def planes_of_16_polynomials(x):
    return jnp.stack([(k + 1) * x * x + 1 for k in range(16)])


@case("elementwise", lambda g: (g.normal(10000),))
def radial_basis_of_13_last(d):
    return jnp.stack([jnp.exp(-((d - 0.3 * k) ** 2)) for k in range(13)], -1)


@case("elementwise", lambda g: (g.normal(2000, 21),))
def concatenate_7_tanh_of_width_21(x):
    return jnp.concatenate([jnp.tanh(k * x) for k in range(7)], 1)


@case("elementwise", lambda g: (g.normal(4000, 5),))
def jacobians_of_5_by_5_vmapped(p):
    return jax.vmap(jax.jacfwd(lambda q: jnp.stack([q[i] * q[(i + 1) % 5] for i in range(5)])))(p)


@case("elementwise", lambda g: (g.normal(4000, 3),))
def jacobians_of_a_projection(p):
    def project(p):
        x, y, z = p
        r = x * x + y * y
        d = 1 + 0.1 * r + 0.01 * r * r
        return jnp.stack([500 * x / (z + 5) * d + 320, 500 * y / (z + 5) * d + 240])

    return jax.vmap(jax.jacfwd(project))(p)


@case("elementwise", lambda g: (g.normal(4000, 3),))
def sines_and_cosines_of_9_octaves(x):
    return jnp.concatenate([x] + [f(2.0**k * x) for k in range(9) for f in (jnp.sin, jnp.cos)], -1)


@case("elementwise", lambda g: (g.normal(900, 130),))
def gradient_of_13_split_columns(x):
    return jax.grad(lambda x: sum(jnp.sum(jnp.tanh(a) * i) for i, a in enumerate(jnp.split(x, 13, 1))))(x)


@case("elementwise", lambda g: (g.ints(0, 256, 9, 90000, dtype="u8"),))
def bytes_of_9_channels_together(c):
    return jnp.stack([c[i] for i in range(9)], -1)


@case("elementwise", lambda g: (g.normal(18000, 3), g.normal(18000, 3)))
def two_cross_products_side_by_side(a, b):
    return jnp.concatenate([jnp.cross(a, b), jnp.cross(a, a * b)], -1)


@case("indexing", lambda g: (g.ints(0, 40, 400, 22), [g.normal(40, 16) for _ in range(22)]))
def rows_of_22_tables_side_by_side(ids, tables):
    return jnp.concatenate([t[ids[:, k]] * 2 for k, t in enumerate(tables)], -1)


# reductions of parts --------------------------------------------------------------------


@case("reduction", lambda g: (g.normal(6000), g.normal(6000, 7)))
def pinball_losses_of_7_quantiles(y, p):
    levels = np.linspace(0.1, 0.9, 7)
    losses = [jnp.maximum(q * (y - p[:, i]), (q - 1) * (y - p[:, i])) for i, q in enumerate(levels)]
    return jnp.mean(jnp.stack(losses))


@case("reduction", lambda g: (g.ints(0, 256, 2, 310, 290, dtype="u8"),))
def dilation_by_a_stack_of_shifts(x):
    p = jnp.pad(x, ((0, 0), (1, 1), (1, 1)))
    shifts = [p[:, 1:-1, 1:-1], p[:, 2:, 1:-1], p[:, :-2, 1:-1], p[:, 1:-1, 2:], p[:, 1:-1, :-2]]
    return jnp.stack(shifts).max(0)


@case("reduction", lambda g: (g.normal(3000, 4, 4),))
def one_norms_of_4x4(a):
    return jnp.abs(a).sum(1).max(-1)


# narrow products of bytes and halves ----------------------------------------------------


@case("matmul", lambda g: (g.ints(0, 256, 220000, 3, dtype="u8"), g.uniform(3)))
def gray_of_bytes(x, w):
    return x.astype(jnp.float32) @ w


@case("matmul", lambda g: (g.normal(45000, 4, dtype="bf16"), g.normal(4, 4, dtype="bf16")), tol=2e-2)
def bf16_points_by_4x4(x, w):
    return x @ w


@case("matmul", lambda g: (g.ints(-128, 128, 40000, 7, dtype="i8"), g.ints(-128, 128, 6, 7, dtype="i8")))
def bytes_of_7_by_6_rows(x, w):
    return jnp.einsum("ik,jk->ij", x, w, preferred_element_type=jnp.int32)


# gathers, scatters and choices ----------------------------------------------------------


@case("indexing", lambda g: (g.normal(150000, 4), g.ints(0, 150000, 3, 1000)))
def gradient_of_three_gathers(x, i):
    return jax.grad(lambda x: jnp.sum((x[i[0]] * x[i[1]] * x[i[2]]) ** 2))(x)


@case("indexing", lambda g: (g.normal(48, 48, 48), g.uniform(2000, 3, lo=1, hi=46)))
def gradient_of_trilinear_samples(grid, p):
    def total(grid):
        i = jnp.floor(p).astype(jnp.int32)
        f = p - i
        out = 0.0
        for corner in np.ndindex(2, 2, 2):
            w = jnp.prod(jnp.where(np.array(corner) == 1, f, 1 - f), -1)
            at = i + np.array(corner)
            out = out + w * grid[at[:, 0], at[:, 1], at[:, 2]]
        return jnp.sum(out**2)

    return jax.grad(total)(grid)


@case("indexing", lambda g: (g.ints(0, 5, 50000), g.normal(50000)))
def one_of_five_computed_fields(i, x):
    return jnp.choose(i, [x * k for k in range(5)], mode="clip")


@case("indexing", lambda g: (g.normal(15000, 24),))
def two_of_24_experts(x):
    return lax.top_k(x, 2)


# zeros that products begin or end with --------------------------------------------------


@case("matmul", lambda g: (g.normal(280, 390),))
def enlarge_280x390_linear(x):
    return jax.image.resize(x, (560, 780), "linear")


@case("matmul", lambda g: (g.normal(6, 90, 110, 3),))
def shrink_images_cubic(x):
    return jax.image.resize(x, (6, 40, 50, 3), "cubic")


@case("matmul", lambda g: (g.normal(600, 500),))
def lower_triangle_by_matrix(x):
    return jnp.tril(x @ x.T) @ x


@case("attention", lambda g: (g.normal(1, 10, 450, 64), g.normal(1, 10, 450, 64), g.normal(1, 10, 450, 64)))
def causal_450_by_indices(q, k, v):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
    i = jnp.arange(450)
    s = jnp.where(i[:, None] >= i[None], s, -1e30)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v)
