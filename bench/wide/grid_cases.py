"""Loops, third part: grids and integers of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sxs.registry import Registrar

case = Registrar("held_out")

# grids ----------------------------------------------------------------------------------------------------


@case("control", lambda g: (g.normal(1001),))
def wave_1d_1001_store(u):
    def step(s, _):
        u, before = s
        new = jnp.zeros_like(u).at[1:-1].set(2 * u[1:-1] - before[1:-1] + 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2]))
        return (new, u), new[::10]

    return lax.scan(step, (u, u), None, length=400)[1]


@case("control", lambda g: (g.normal(230, 310), g.uniform(230, 310, lo=0.1, hi=0.4)))
def wave_2d_roll_230x310(u, c):
    def step(_, s):
        u, before = s
        lap = sum(jnp.roll(u, k, a) for k in (1, -1) for a in (0, 1)) - 4 * u
        return 2 * u - before + c * c * lap, u

    return lax.fori_loop(0, 30, step, (u, u))[0]


@case("control", lambda g: (g.normal(40, 44, 48),))
def heat_3d_40x44x48(u):
    def step(u, _):
        p = jnp.pad(u, 1, mode="edge")
        near = (p[2:, 1:-1, 1:-1] + p[:-2, 1:-1, 1:-1] + p[1:-1, 2:, 1:-1] + p[1:-1, :-2, 1:-1]
                + p[1:-1, 1:-1, 2:] + p[1:-1, 1:-1, :-2])  # fmt: skip
        return u + 0.1 * (near - 6 * u), None

    return lax.scan(step, u, None, length=20)[0]


@case("control", lambda g: (g.uniform(128, 128), g.uniform(128, 128, hi=0.5)), tol=2e-3)
def gray_scott_conv_128(u, v):
    k = jnp.array([[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [0.05, 0.2, 0.05]], u.dtype)
    lap = lambda x: lax.conv_general_dilated(x[None, None], k[None, None], (1, 1), "SAME")[0, 0]  # noqa: E731

    def step(_, s):
        u, v = s
        r = u * v * v
        return u + 0.16 * lap(u) - r + 0.035 * (1 - u), v + 0.08 * lap(v) + r - 0.1 * v

    return lax.fori_loop(0, 40, step, (u, v))


@case("control", lambda g: (g.uniform(9, 64, 100, lo=0.05, hi=0.15),), tol=1e-3)
def lattice_boltzmann_d2q9_64x100(f):
    e = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
    w = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, f.dtype)[:, None, None]

    def step(_, f):
        f = jnp.stack([jnp.roll(f[i], (int(a), int(b)), (0, 1)) for i, (a, b) in enumerate(e)])
        rho = f.sum(0)
        u = jnp.einsum("ia,ixy->axy", jnp.asarray(e, f.dtype), f) / rho
        eu = jnp.einsum("ia,axy->ixy", jnp.asarray(e, f.dtype), u)
        equal = w * rho * (1 + 3 * eu + 4.5 * eu**2 - 1.5 * (u**2).sum(0))
        return f - 0.6 * (f - equal)

    return lax.fori_loop(0, 20, step, f)


@case("control", lambda g: (g.normal(25, 200), g.uniform(200, lo=0.2, hi=0.6)))
def implicit_heat_thomas_25x200(u, k):
    def solve(d):
        def down(s, x):
            c, e = s
            k, d = x
            m = 1 / (1 + 2 * k + k * c)
            return (-k * m, (d + k * e) * m), (-k * m, (d + k * e) * m)

        zero = jnp.zeros((), d.dtype)
        cs, ds = lax.scan(down, (zero, zero), (k, d))[1]
        return lax.scan(lambda x, cd: ((y := cd[1] - cd[0] * x), y), zero, (cs, ds), reverse=True)[1]

    return lax.fori_loop(0, 5, lambda _, u: jax.vmap(solve)(u), u)


@case("control", lambda g: (g.ints(0, 2, 700, dtype="u8"),))
def cellular_rule110_700(row):
    rule = jnp.array([(110 >> i) & 1 for i in range(8)], jnp.uint8)

    def step(r, _):
        code = 4 * jnp.roll(r, 1) + 2 * r + jnp.roll(r, -1)
        return rule[code], r

    return lax.scan(step, row, None, length=300)[1]


@case("control", lambda g: (g.ints(0, 3, 150, 210),))
def cellular_brians_brain_conv(board):
    k = jnp.ones((1, 1, 3, 3), jnp.float32)

    def step(b, _):
        on = (b == 1).astype(jnp.float32)
        near = lax.conv_general_dilated(on[None, None], k, (1, 1), "SAME")[0, 0] - on
        return jnp.where(b == 1, 2, jnp.where((b == 0) & (near == 2), 1, 0)).astype(b.dtype), on.sum()

    return lax.scan(step, board, None, length=15)


@case("control", lambda g: (np.linspace(-1.5, 1.5, 301, dtype=np.float32),), ref="cpu", tol=2e-2)
def julia_complex_while_301(axis):
    z = axis[None, :] + 1j * axis[:, None]

    def step(s):
        z, n, i = s
        inside = jnp.abs(z) < 2
        return jnp.where(inside, z * z + (-0.8 + 0.156j), z), n + inside, i + 1

    return lax.while_loop(lambda s: s[2] < 40, step, (z, jnp.zeros(z.shape, jnp.int32), 0))[1]


@case("control", lambda g: (g.normal(120, 90, 3),), ref="cpu", tol=2e-2)
def ray_march_spheres_120x90(noise):
    x, y = jnp.meshgrid(jnp.linspace(-1, 1, 90), jnp.linspace(-1, 1, 120))
    d = jnp.stack([x, y, jnp.full_like(x, 1.5)], -1) + 1e-3 * noise
    d = d / jnp.linalg.norm(d, axis=-1, keepdims=True)
    sphere = lambda p, c, r: jnp.linalg.norm(p - jnp.array(c), axis=-1) - r  # noqa: E731
    scene = lambda p: jnp.minimum(sphere(p, [0.0, 0.0, 4.0], 1.0), sphere(p, [1.0, 0.5, 3.0], 0.4))  # noqa: E731
    t = lax.fori_loop(0, 32, lambda _, t: t + jnp.minimum(scene(d * t[..., None]), 1.0), jnp.zeros_like(x))
    return jnp.where(t < 8.0, 1.0 / (1.0 + t), 0.0)


# integers ----------------------------------------------------------------------------------------------------


@case("control", lambda g: (g.ints(2, 3, 1),))
def sieve_20000(first):
    def step(i, prime):
        composite = (jnp.arange(20000) % i == 0) & (jnp.arange(20000) > i)
        return prime & ~composite

    return lax.fori_loop(2, 142, step, jnp.arange(20000) >= first[0]).sum()


@case("control", lambda g: (g.ints(1, 3000, 5000),), trips=200)
def collatz_vmapped_while_5000(n):
    def one(n):
        step = lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)  # noqa: E731
        return lax.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]

    return jax.vmap(one)(n)


@case("control", lambda g: (g.ints(1, 1 << 30, 777, dtype="u32"),))
def xorshift_hash_u32_777(x):
    def step(h, i):
        h = h ^ (h << 13)
        h = h ^ (h >> 17)
        h = h ^ (h << 5)
        return h * jnp.uint32(2654435761) + i, None

    return lax.scan(step, x, jnp.arange(500, dtype=jnp.uint32))[0]


@case("control", lambda g: (g.normal(90),))
def insertion_sort_nested_while_90(x):
    def insert(i, x):
        def move(s):
            j, x = s
            a, b = x[j - 1], x[j]
            return j - 1, x.at[j - 1].set(b).at[j].set(a)

        return lax.while_loop(lambda s: (s[0] > 0) & (s[1][jnp.maximum(s[0] - 1, 0)] > s[1][s[0]]), move, (i, x))[1]

    return lax.fori_loop(1, 90, insert, x)


@case("control", lambda g: (g.uniform(75, 85),), trips=60)
def connected_labels_while_75x85(image):
    solid = image > 0.45
    label = jnp.where(solid, jnp.arange(75 * 85, dtype=jnp.int32).reshape(75, 85), -1)

    def spread(s):
        label, _ = s
        p = jnp.pad(label, 1, constant_values=-1)
        best = jnp.maximum(jnp.maximum(p[2:, 1:-1], p[:-2, 1:-1]), jnp.maximum(p[1:-1, 2:], p[1:-1, :-2]))
        new = jnp.where(solid, jnp.maximum(label, best), -1)
        return new, jnp.any(new != label)

    return lax.while_loop(lambda s: s[1], spread, (label, jnp.bool_(True)))[0]
