"""Programs of the wide set (cases_held_out.py) whose steps read neighbours in what they update: differential equations
on grids, gates on the state of a quantum computer. And chains of arithmetic on bf16, and what scans start as.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")


@case("control", lambda g: (g.normal(70, 60, 80),))
def heat_3d_in_place(u):
    inner = (slice(1, -1),) * 3

    def step(_, u):
        around = u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2]
        return u.at[inner].add(0.1 * (around - 6 * u[inner]))

    return lax.fori_loop(0, 20, step, u)


@case("control", lambda g: (g.normal(90, 130),))
def pressure_between_walls(source):
    def step(_, p):
        p = p.at[1:-1, 1:-1].set(0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - source[1:-1, 1:-1]))
        p = p.at[:, -1].set(p[:, -2])
        p = p.at[0, :].set(p[1, :])
        return p.at[-1, :].set(0.0)

    return lax.fori_loop(0, 60, step, jnp.zeros_like(source))


@case("control", lambda g: (g.normal(30000),))
def advection_upwind(u):
    return lax.fori_loop(0, 100, lambda _, u: u.at[1:].set(u[1:] - 0.3 * (u[1:] - u[:-1])), u)


@case("elementwise", lambda g: (g.normal(1300, 1700),))
def one_step_of_diffusion(u):
    change = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    return u.at[1:-1, 1:-1].add(0.2 * change)


def apply_gate(state, gate, bit):
    return jnp.einsum("ab,ibj->iaj", gate, state.reshape(2**bit, 2, -1)).reshape(-1)


@case("matmul", lambda g: (g.normal(2**13), g.normal(2**13), g.normal(13)))
def quantum_rotations_13(re, im, angles):
    state = lax.complex(re, im)
    for bit in range(13):
        c, s = jnp.cos(angles[bit]), jnp.sin(angles[bit])
        state = apply_gate(state, jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])]).astype(state.dtype), bit)
    return jnp.abs(state) ** 2


@case("matmul", lambda g: (g.normal(2, 2**12), g.normal(4, 4)))
def quantum_layers_12(parts, gate):
    state = lax.complex(parts[0], parts[1]).reshape((2,) * 12)
    gate = lax.complex(gate, gate.T).reshape(2, 2, 2, 2)
    for bit in range(0, 11):
        state = jnp.moveaxis(jnp.tensordot(gate, state, [[2, 3], [bit, bit + 1]]), [0, 1], [bit, bit + 1]) * 0.3
    return state.real, state.imag


@case("matmul", lambda g: (g.normal(700, 3, 3), g.normal(700, 3, 3), g.normal(700, 3, 3), g.normal(700, 3, 3)))
def complex_3x3_700(a, b, c, d):
    product = lax.complex(a, b) @ lax.complex(c, d)
    return product.real, product.imag


@case("elementwise", lambda g: (g.normal(600, 900, dtype="bf16"), g.normal(600, 900, dtype="bf16")), tol=3e-2)
def gelu_gradient_bf16(x, gradient):
    return jax.vjp(nn.gelu, x)[1](gradient)[0]


@case("elementwise", lambda g: (g.normal(6, 400, 96, dtype="bf16"), g.normal(400, 48, dtype="bf16"), g.normal(400, 48, dtype="bf16")), tol=3e-2)
def rotary_bf16(x, c, s):
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1)


@case("attention", lambda g: tuple(g.normal(2, 6, 320, 64, dtype="bf16") for _ in range(3)), tol=3e-2)
def attention_in_bf16_with_cap(q, k, v):
    scores = 20 * jnp.tanh(jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125 / 20)
    return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(scores, -1), v)


@case("control", lambda g: (g.normal(150, 1500), g.normal(150, 1500), g.uniform(150, 1500)))
def generalised_advantages(reward, value, alive):
    def step(carry, x):
        advantage, after = carry
        r, v, m = x
        advantage = r + 0.99 * after * m - v + 0.95 * 0.99 * m * advantage
        return (advantage, v), advantage

    start = jnp.zeros(reward.shape[1])
    return lax.scan(step, (start, start), (reward, value, (alive > 0.05).astype(value.dtype)), reverse=True)[1]


@case("control", lambda g: (g.normal(300, 3000),))
def running_means_stacked(x):
    return lax.scan(lambda c, x: ((0.9 * c + 0.1 * x),) * 2, jnp.zeros(x.shape[1]), x)[1]


@case("matmul", lambda g: (g.normal(220, 900),))
def gram_of_rows_220x900(x):
    return x @ x.T


@case("matmul", lambda g: (g.normal(110, 1100), g.normal(1100, 120)))
def mm_110x1100x120(a, b):
    return a @ b
