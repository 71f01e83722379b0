"""Loops, first part: recurrent nets, integrators, bodies, clusters, branches, filters, dynamic programming of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.signal
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")

# recurrent networks --------------------------------------------------------------------


def gru_step(p, h, x):
    z, r = jnp.split(nn.sigmoid(x @ p["xg"] + h @ p["hg"] + p["bg"]), 2, axis=-1)
    n = jnp.tanh(x @ p["xn"] + r * (h @ p["hn"]))
    return (1 - z) * n + z * h


def gru_inputs(steps, batch, n_in, n):
    def make(g):
        p = {"xg": g.weight(n_in, 2 * n), "hg": g.weight(n, 2 * n), "bg": g.zeros(2 * n),
             "xn": g.weight(n_in, n), "hn": g.weight(n, n)}  # fmt: skip
        return p, g.normal(steps, *batch, n_in)

    return make


def gru(p, x):
    h = jnp.zeros((*x.shape[1:-1], p["hn"].shape[0]), x.dtype)
    return lax.scan(lambda h, x: (gru_step(p, h, x),) * 2, h, x)[1]


case("control", gru_inputs(200, (), 24, 40), name="gru_scan_single_h40")(gru)
case("control", gru_inputs(75, (24,), 80, 150), name="gru_scan_b24_h150")(gru)


@case("control", gru_inputs(60, (20,), 48, 96))
def gru_scan_grad_b20_h96(p, x):
    return jax.grad(lambda p: jnp.square(gru(p, x)[-1]).mean())(p)


def lstm_inputs(steps, batch, n_in, n, dtype="f32"):
    return lambda g: (g.weight(n_in, 4 * n, dtype=dtype), g.weight(n, 4 * n, dtype=dtype),
                      g.normal(steps, batch, n_in, dtype=dtype))  # fmt: skip


def lstm(wx, wh, x):
    n = wh.shape[0]

    def step(carry, xt):
        h, c = carry
        z = xt @ wx + h @ wh
        i, f, o, u = (z[..., k * n : (k + 1) * n] for k in range(4))
        c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * jnp.tanh(u)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], n), x.dtype)
    return lax.scan(step, (zero, zero), x)


@case("control", lstm_inputs(50, 6, 33, 72))
def lstm_scan_grad_b6_h72(wx, wh, x):
    return jax.grad(lambda w: jnp.tanh(lstm(*w, x)[1]).mean())((wx, wh))


@case("control", lstm_inputs(40, 12, 96, 96, "bf16"), tol=0.1)
def lstm_scan_bf16_final(wx, wh, x):
    return lstm(wx, wh, x)[0]


@case("control", lambda g: (g.weight(200, 200), g.weight(30, 200), g.normal(5, 80, 30)))
def rnn_grad_batch_first_h200(w, u, x):
    def loss(w, u):
        h = jnp.zeros((x.shape[0], 200), x.dtype)
        h, hs = lax.scan(lambda h, x: (jnp.tanh(x @ u + h @ w),) * 2, h, x.swapaxes(0, 1))
        return (h.sum() + jnp.square(hs).sum()) / hs.size

    return jax.grad(loss, (0, 1))(w, u)


@case("control", lambda g: (g.weight(2, 64, 64), g.normal(90, 7, 64), g.ints(10, 91, 7)))
def rnn_bidirectional_masked(w, x, lengths):
    def run(w, reverse):
        def step(h, tx):
            t, x = tx
            h = jnp.where((t < lengths)[:, None], jnp.tanh(x + h @ w), h)
            return h, h

        return lax.scan(step, jnp.zeros_like(x[0]), (jnp.arange(90), x), reverse=reverse)[1]

    return jnp.concatenate([run(w[0], False), run(w[1], True)], -1)


@case("control", lambda g: (g.weight(7, 7), g.normal(1500, 7)), chain_cycles=6e5)
def rnn_tiny_h7_1500_steps(w, x):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h[0]), jnp.zeros_like(x[0]), x, unroll=2)


@case("control", lambda g: (g.normal(300, 5, 31), g.uniform(5, 31, 8, lo=-1.0, hi=0.0), g.normal(300, 8), g.normal(300, 8)))
def state_space_diagonal_scan(x, a, b, c):
    def step(h, t):
        x, b, c = t
        h = jnp.exp(a) * h + x[..., None] * b
        return h, (h * c).sum(-1)

    return lax.scan(step, jnp.zeros_like(a), (x, b, c))[1]


# differential equations -----------------------------------------------------------------


def rk4(f, y, h):
    add = lambda y, k, s: jax.tree.map(lambda y, k: y + s * k, y, k)  # noqa: E731
    k1 = f(y)
    k2 = f(add(y, k1, h / 2))
    k3 = f(add(y, k2, h / 2))
    k4 = f(add(y, k3, h))
    return jax.tree.map(lambda y, a, b, c, d: y + h / 6 * (a + 2 * b + 2 * c + d), y, k1, k2, k3, k4)


def lotka(y, rates=(1.1, 0.4, 0.1, 0.4)):
    a, b, c, d = rates
    return a * y[0] - b * y[0] * y[1], c * y[0] * y[1] - d * y[1]


@case("control", lambda g: (np.float32(10.0), np.float32(5.0)), chain_cycles=5e5, tol=5e-3)
def lotka_volterra_rk4_3000(x, y):
    def step(s, _):
        s = rk4(lotka, s, 0.01)
        return s, s[0]

    return lax.scan(step, (x, y), None, length=3000)


@case("control", lambda g: (g.uniform(300, 2, lo=1.0, hi=9.0), g.uniform(4, lo=0.2, hi=1.0)), tol=2e-3)
def lotka_volterra_fit_grad(start, rates):
    def loss(rates):
        def step(s, _):
            s = rk4(lambda y: jnp.stack(lotka(y, rates)), s, 0.02)
            return s, s

        path = jax.vmap(lambda y: lax.scan(step, y, None, length=60)[1])(start)
        return jnp.square(path - 2.0).mean()

    return jax.value_and_grad(loss)(rates)


@case("control", lambda g: (g.normal(333, 3, scale=3.0),), tol=1e-2)
def lorenz_rk4_vmapped_333(y):
    def f(s):
        x, y, z = s
        return jnp.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    run = lambda y: lax.fori_loop(0, 150, lambda _, y: rk4(f, y, 0.005), y)  # noqa: E731
    return jax.vmap(run)(y)


@case("control", lambda g: (g.uniform(51, 4, lo=-1.0, hi=1.0),), tol=5e-3)
def double_pendulum_vmapped_51(y):
    def f(s):
        a, b, u, v = s
        c, d = jnp.cos(a - b), jnp.sin(a - b)
        m = jnp.array([[2.0, c], [c, 1.0]])
        r = jnp.array([-v * v * d - 2 * 9.81 * jnp.sin(a), u * u * d - 9.81 * jnp.sin(b)])
        w = jnp.linalg.solve(m, r)
        return jnp.array([u, v, w[0], w[1]])

    return jax.vmap(lambda y: lax.scan(lambda y, _: (rk4(f, y, 0.01),) * 2, y, None, length=40)[1])(y)


def adaptive(f, y, end, rtol):
    """Bogacki-Shampine 3(2) with step size control."""

    def step(s):
        t, h, y, n = s
        h = jnp.minimum(h, end - t)
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + 0.75 * h * k2)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        error = h * jnp.abs(-5 / 72 * k1 + k2 / 12 + k3 / 9 - f(new) / 8)
        ratio = jnp.max(error / (rtol * (1 + jnp.abs(new))))
        good = ratio < 1
        factor = jnp.clip(0.9 * jnp.maximum(ratio, 1e-6) ** (-1 / 3), 0.2, 4.0)
        return jnp.where(good, t + h, t), h * factor, jnp.where(good, new, y), n + 1

    live = lambda s: (s[0] < end * (1 - 1e-6)) & (s[3] < 2000)  # noqa: E731
    return lax.while_loop(live, step, (jnp.zeros((), y.dtype), jnp.full((), 0.01, y.dtype), y, 0))[2]


def van_der_pol(y):
    return jnp.stack([y[1], 2.0 * (1 - y[0] ** 2) * y[1] - y[0]])


@case("control", lambda g: (np.array([2.0, 0.0], np.float32),), trips=150, tol=1e-2)
def ode_adaptive_van_der_pol(y):
    return adaptive(van_der_pol, y, 8.0, 1e-4)


@case("control", lambda g: (g.uniform(70, 2, lo=-2.0, hi=2.0),), trips=60, tol=2e-2)
def ode_adaptive_vmapped_70(y):
    return jax.vmap(lambda y: adaptive(van_der_pol, y, 3.0, 1e-3))(y)


@case("control", lambda g: (g.uniform(300, 3, lo=0.1, hi=1.0),), tol=1e-3)
def implicit_euler_newton_vmapped_300(y0):
    def f(y):
        return jnp.array([-0.04 * y[0] + 10 * y[1] * y[2], 0.04 * y[0] - 10 * y[1] * y[2] - 30 * y[1] ** 2, 30 * y[1] ** 2])

    def step(y, _):
        def newton(_, z):
            return z - jnp.linalg.solve(jnp.eye(3) - 0.05 * jax.jacfwd(f)(z), z - y - 0.05 * f(z))

        return lax.fori_loop(0, 3, newton, y), None

    return jax.vmap(lambda y: lax.scan(step, y, None, length=10)[0])(y0)


# bodies -----------------------------------------------------------------------------------


def gravity(p, m, soft=0.05):
    d = p[None] - p[:, None]
    r2 = (d * d).sum(-1) + soft
    return (d * (m[None, :] / (r2 * jnp.sqrt(r2)))[..., None]).sum(1)


def gravity_vmap(p, m, soft=0.05):
    def one(a):
        def pull(b, m):
            d = b - a
            r2 = jnp.dot(d, d) + soft
            return m * d / (r2 * jnp.sqrt(r2))

        return jax.vmap(pull)(p, m).sum(0)

    return jax.vmap(one)(p)


def leapfrog(force, steps, h=1e-3):
    def run(p, v, m):
        def step(_, s):
            p, v, a = s
            v = v + h / 2 * a
            p = p + h * v
            a = force(p, m)
            return p, v + h / 2 * a, a

        return lax.fori_loop(0, steps, step, (p, v, force(p, m)))[:2]

    return run


def bodies(n, dims=3):
    return lambda g: (g.normal(n, dims), g.normal(n, dims, scale=0.1), g.uniform(n, lo=0.1))


case("control", bodies(8), name="nbody_8_leapfrog")(leapfrog(gravity, 300))
case("control", bodies(16, 2), name="nbody_16_vmap_2d")(leapfrog(gravity_vmap, 120))
case("control", bodies(128), name="nbody_128_vmap")(leapfrog(gravity_vmap, 20))
case("control", bodies(400), name="nbody_400_leapfrog")(leapfrog(gravity, 6))
case("control", lambda g: tuple(x.astype(np.float64) for x in bodies(32)(g)), x64=True,
     name="nbody_32_f64")(leapfrog(gravity, 60))  # fmt: skip


@case("control", lambda g: (g.uniform(96, 3, hi=5.0), g.normal(96, 3, scale=0.2)), ref="cpu", tol=1e-2)
def lennard_jones_grad_96(p, v):
    def energy(p):
        d = p[:, None] - p[None]
        d = d - 5.0 * jnp.round(d / 5.0)
        r2 = jnp.square(d).sum(-1) + jnp.eye(p.shape[0], dtype=p.dtype) + 0.5
        s6 = (1.0 / r2) ** 3
        return 2.0 * (jnp.triu(s6 * s6 - s6, 1)).sum()

    def step(s, _):
        p, v = s
        v = v - 1e-4 * jax.grad(energy)(p)
        p = (p + 1e-3 * v) % 5.0
        return (p, v), energy(p)

    return lax.scan(step, (p, v), None, length=20)


# clustering ---------------------------------------------------------------------------------


@case("control", lambda g: (g.normal(5000, 3), g.normal(17, 3)), ref="cpu", tol=2e-2)
def kmeans_onehot_5000x3_k17(x, c):
    def step(_, c):
        near = jnp.argmin(jnp.square(x[:, None] - c[None]).sum(-1), axis=1)
        hot = nn.one_hot(near, 17, dtype=x.dtype)
        return (hot.T @ x) / (hot.sum(0)[:, None] + 1e-6)

    return lax.fori_loop(0, 10, step, c)


@case("control", lambda g: (g.normal(20011, 8), g.normal(100, 8)), ref="cpu", tol=5e-2)
def kmeans_segment_20011x8_k100(x, c):
    def step(c, _):
        d = jnp.square(x).sum(1, keepdims=True) - 2 * x @ c.T + jnp.square(c).sum(1)
        near = jnp.argmin(d, axis=1)
        total = jax.ops.segment_sum(x, near, num_segments=100)
        count = jnp.bincount(near, length=100)
        return jnp.where(count[:, None] > 0, total / jnp.maximum(count, 1)[:, None], c), d.min(1).sum()

    return lax.scan(step, c, None, length=3)


@case("control", lambda g: (g.normal(700, 5), g.normal(6, 5), g.spd(5, 6)), tol=1e-2)
def gaussian_mixture_em_700(x, mean, cov):
    def step(_, s):
        mean, cov, log_w = s
        chol = jnp.linalg.cholesky(cov)
        d = x[None] - mean[:, None]
        y = lax.linalg.triangular_solve(chol, d.swapaxes(1, 2), left_side=True, lower=True)
        logdet = jnp.log(jnp.diagonal(chol, axis1=1, axis2=2)).sum(1)
        logp = log_w[:, None] - 0.5 * jnp.square(y).sum(1) - logdet[:, None]
        r = nn.softmax(logp, axis=0)
        n = r.sum(1)
        mean = r @ x / n[:, None]
        d = x[None] - mean[:, None]
        cov = jnp.einsum("kn,kni,knj->kij", r, d, d) / n[:, None, None] + 1e-2 * jnp.eye(5, dtype=x.dtype)
        return mean, cov, jnp.log(n / x.shape[0])

    return lax.fori_loop(0, 6, step, (mean, cov, jnp.zeros(6, x.dtype)))


# branches ------------------------------------------------------------------------------------


@case("control", lambda g: (g.normal(3), g.uniform(2500)), chain_cycles=4e5)
def scan_cond_three_scalars(s, u):
    def step(s, u):
        a, b, c = s
        a, b, c = lax.cond(
            u < 0.3, lambda a, b, c: (a * 0.9 + b, b * 0.5 + u, c + 1), lambda a, b, c: (b, a * 0.7 - 0.1, c * 0.99),
            a, b, c,
        )  # fmt: skip
        return (a, b, c), a

    return lax.scan(step, (s[0], s[1], s[2]), u)


@case("control", lambda g: (g.normal(200, 64), g.ints(0, 5, 120)))
def scan_switch_state_200x64(x, which):
    branches = [lambda x: x * 0.9, lambda x: jnp.sin(x), lambda x: x[::-1], lambda x: x - x.mean(0),
                lambda x: x + 0.1 * jnp.roll(x, 1, 1)]  # fmt: skip
    return lax.scan(lambda x, i: (lax.switch(i, branches, x), x[0, 0]), x, which)


@case("control", lambda g: (g.ints(0, 7, 400), g.ints(0, 8, 400, 3), g.ints(-50, 50, 8)))
def scan_switch_register_machine(ops, where, regs):
    def step(regs, instruction):
        op, (a, b, out) = instruction
        x, y = regs[a], regs[b]
        value = lax.switch(op, [
            lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x ^ y,
            lambda x, y: jnp.maximum(x, y), lambda x, y: jnp.where(y == 0, x, x % jnp.where(y == 0, 1, y)),
            lambda x, y: x >> 1,
        ], x, y)  # fmt: skip
        return regs.at[out].set(value), value

    return lax.scan(step, regs, (ops, where))


@case("control", lambda g: (g.normal(2000), g.uniform(64)))
def scan_cond_vmapped_2000(x, flags):
    def one(x):
        def step(x, f):
            return lax.cond(x > f, lambda x: jnp.sqrt(x) - 0.2, lambda x: x * x + 0.3, x), None

        return lax.scan(step, x, flags)[0]

    return jax.vmap(one)(x)


# filters and sequence models of probability ----------------------------------------------------


def kalman_inputs(steps, n, m, *batch):
    def make(g):
        a = (0.95 * np.eye(n) + 0.05 * g.normal(n, n) / np.sqrt(n)).astype(np.float32)
        return a, g.weight(m, n, fan_in=n), g.spd(n) * np.float32(0.1), g.spd(m), g.normal(steps, *batch, m)

    return make


def kalman(a, c, q, r, ys):
    n = a.shape[0]

    def step(s, y):
        x, p = s
        x, p = a @ x, a @ p @ a.T + q
        gain = jnp.linalg.solve(c @ p @ c.T + r, c @ p).T
        x = x + gain @ (y - c @ x)
        p = (jnp.eye(n, dtype=p.dtype) - gain @ c) @ p
        return (x, p), x

    return lax.scan(step, (jnp.zeros(n, ys.dtype), jnp.eye(n, dtype=ys.dtype)), ys)


case("control", kalman_inputs(250, 4, 2), name="kalman_4x2", tol=2e-3)(kalman)
case("control", kalman_inputs(60, 13, 5), name="kalman_13x5", tol=2e-3)(kalman)


@case("control", kalman_inputs(50, 4, 2, 80), tol=2e-3)
def kalman_vmapped_80(a, c, q, r, ys):
    return jax.vmap(lambda y: kalman(a, c, q, r, y), 1)(ys)


@case("control", lambda g: (g.normal(1000), g.uniform(3, lo=0.1, hi=0.9)), tol=2e-3)
def kalman_scalar_likelihood_grad(ys, theta):
    def loss(theta):
        phi, q, r = theta

        def step(s, y):
            x, p, total = s
            x, p = phi * x, phi * p * phi + q
            f = p + r
            e = y - x
            k = p / f
            return (x + k * e, (1 - k) * p, total + 0.5 * (jnp.log(f) + e * e / f)), None

        zero = jnp.zeros((), ys.dtype)
        return lax.scan(step, (zero, zero + 1, zero), ys)[0][2]

    return jax.value_and_grad(loss)(theta)


@case("control", lambda g: (g.normal(31, 31), g.normal(31, 50), g.ints(0, 50, 400)))
def hmm_forward_log_31(transition, emission, observed):
    t, e = nn.log_softmax(transition), nn.log_softmax(emission)

    def step(alpha, o):
        alpha = nn.logsumexp(alpha[:, None] + t, axis=0) + e[:, o]
        return alpha, None

    return nn.logsumexp(lax.scan(step, e[:, observed[0]], observed[1:])[0])


@case("control", lambda g: (g.normal(9, 9), g.normal(9, 20), g.ints(0, 20, 110, 120)), tol=2e-3)
def hmm_baum_welch_counts_grad(transition, emission, observed):
    def loss(transition, emission):
        t, e = nn.softmax(transition), nn.softmax(emission)

        def one(o):
            def step(s, o):
                alpha, total = s
                alpha = (alpha @ t) * e[:, o]
                norm = alpha.sum()
                return (alpha / norm, total + jnp.log(norm)), None

            return lax.scan(step, (jnp.full(9, 1 / 9, t.dtype), jnp.zeros((), t.dtype)), o)[0][1]

        return jax.vmap(one)(observed).mean()

    return jax.grad(loss, (0, 1))(transition, emission)


@case("control", lambda g: (g.normal(24, 24), g.normal(300, 24)), ref="cpu")
def viterbi_24_backtrack(transition, scores):
    def forward(d, e):
        m = d[:, None] + transition
        return m.max(0) + e, m.argmax(0)

    d, back = lax.scan(forward, scores[0], scores[1:])
    last = d.argmax()
    path = lax.scan(lambda s, b: (b[s], s), last, back, reverse=True)
    return d.max(), path


@case("control", lambda g: (g.normal(500, 2, scale=0.5), g.normal(500, 2), g.normal(40), g.key()), ref="cpu", tol=3e-2)
def particle_filter_500(particles, noise, ys, key):
    def step(s, y):
        x, key = s
        key, a, b = jax.random.split(key, 3)
        x = 0.9 * x + 0.1 * jnp.sin(x[:, ::-1]) + 0.3 * jax.random.normal(a, x.shape)
        logw = -0.5 * jnp.square(y - x[:, 0]) / 0.5
        w = nn.softmax(logw)
        u = (jnp.arange(500) + jax.random.uniform(b, ())) / 500
        index = jnp.clip(jnp.searchsorted(jnp.cumsum(w), u), 0, 499)
        return (x[index], key), w @ x

    return lax.scan(step, (particles + 0.1 * noise, key), ys)[1]


# dynamic programming ------------------------------------------------------------------------------


@case("control", lambda g: (g.ints(0, 4, 60), g.ints(0, 4, 73)))
def edit_distance_nested_scan(a, b):
    def row(last, ca):
        def cell(left, args):
            up, diagonal, cb = args
            best = jnp.minimum(jnp.minimum(left + 1, up + 1), diagonal + (ca != cb))
            return best, best

        first = last[0] + 1
        rest = lax.scan(cell, first, (last[1:], last[:-1], b))[1]
        return jnp.concatenate([first[None], rest]), None

    return lax.scan(row, jnp.arange(74, dtype=jnp.int32), a)[0][-1]


@case("control", lambda g: (g.ints(0, 20, 16, 90), g.ints(0, 20, 16, 90), g.normal(20, 20)))
def smith_waterman_antidiagonal_vmapped(a, b, score):
    def one(a, b):
        n = a.shape[0]
        i = jnp.arange(n)

        def step(s, d):
            last, before, best = s
            j = d - i
            ok = (j >= 0) & (j < n)
            shift = lambda x: jnp.concatenate([jnp.zeros(1, x.dtype), x[:-1]])  # noqa: E731
            new = shift(before) + score[a, b[jnp.clip(j, 0, n - 1)]]
            new = jnp.maximum(jnp.maximum(new, 0.0), jnp.maximum(last, shift(last)) - 0.5)
            new = jnp.where(ok, new, 0.0)
            return (new, last, jnp.maximum(best, new.max())), None

        zero = jnp.zeros(n, score.dtype)
        return lax.scan(step, (zero, zero, zero[0]), jnp.arange(2 * n - 1))[0][2]

    return jax.vmap(one)(a, b)


@case("control", lambda g: (g.ints(1, 60, 80), g.ints(1, 100, 80)))
def knapsack_fori_capacity_500(weights, values):
    def item(i, best):
        w = weights[i]
        index = jnp.arange(501)
        other = jnp.where(index >= w, best[jnp.maximum(index - w, 0)] + values[i], 0)
        return jnp.maximum(best, other)

    return lax.fori_loop(0, 80, item, jnp.zeros(501, jnp.int32))


@case("control", lambda g: (g.normal(150), g.normal(150)))
def dtw_scan_150(a, b):
    def row(last, x):
        cost = jnp.abs(x - b)
        reach = jnp.minimum(last, jnp.concatenate([last[:1], last[:-1]]))

        def cell(left, args):
            r, c = args
            left = jnp.minimum(left, r) + c
            return left, left

        return lax.scan(cell, jnp.full((), 1e6, a.dtype), (reach, cost))[1], None

    return lax.scan(row, jnp.abs(a[0] - b).cumsum(), a[1:])[0]


@case("control", lambda g: (np.where(g.uniform(130, 130) < 0.1, g.uniform(130, 130, lo=1, hi=9), 1e4)
                            .astype(np.float32),))  # fmt: skip
def floyd_warshall_130(d):
    return lax.fori_loop(0, 130, lambda k, d: jnp.minimum(d, d[:, k][:, None] + d[k][None, :]), d)


@case("control", lambda g: (g.ints(0, 3000, 9000), g.ints(0, 3000, 9000), g.uniform(9000, lo=0.1)), trips=15)
def bellman_ford_while_3000(tail, head, length):
    def relax(s):
        d, _, i = s
        new = d.at[head].min(d[tail] + length)
        return new, (new < d).any(), i + 1

    start = jnp.full(3000, 1e3, length.dtype).at[0].set(0.0)
    return lax.while_loop(lambda s: s[1] & (s[2] < 100), relax, (start, jnp.bool_(True), 0))[0]


@case("control", lambda g: (g.uniform(6, 90, 90), g.normal(90, 6)))
def value_iteration_90x6(p, reward):
    p = p / p.sum(-1, keepdims=True)
    update = lambda _, v: (reward + 0.95 * jnp.einsum("asn,n->sa", p, v)).max(1)  # noqa: E731
    v = lax.fori_loop(0, 100, update, jnp.zeros(90, reward.dtype))
    return v, (reward + 0.95 * jnp.einsum("asn,n->sa", p, v)).max(1)


@case("control", lambda g: (g.weight(200, 64), g.weight(64, 200), g.weight(64, 64)), ref="cpu")
def beam_search_5x200(embed, head, w):
    def step(s, t):
        h, score, tokens = s
        h = jnp.tanh(h @ w + embed[tokens[:, t]])
        total = score[:, None] + nn.log_softmax(4.0 * h @ head)
        score, flat = lax.top_k(total.reshape(-1), 5)
        parent, token = flat // 200, flat % 200
        tokens = tokens[parent].at[:, t + 1].set(token)
        return (h[parent], score, tokens), None

    start = (jnp.zeros((5, 64), w.dtype), jnp.array([0.0] + [-1e4] * 4, w.dtype), jnp.zeros((5, 31), jnp.int32))
    return lax.scan(step, start, jnp.arange(30))[0][1:]


# stencils that are written as convolutions ------------------------------------------------------------------


def _filter(x, k, layout=("NCHW", "OIHW", "NCHW")):
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=layout)


@case("control", lambda g: (g.normal(96, 96), g.uniform(3, 3)))
def heat_convolve2d_96(x, k):
    k = k / k.sum()
    return lax.fori_loop(0, 30, lambda _, x: x + 0.1 * (jax.scipy.signal.convolve2d(x, k, mode="same") - x), x)


@case("control", lambda g: (g.ints(0, 2, 200, 96, dtype="i8"),))
def life_integer_convolution_200x96(board):
    k = jnp.ones((1, 1, 3, 3), jnp.int32).at[0, 0, 1, 1].set(0)

    def step(_, b):
        near = _filter(b.astype(jnp.int32)[None, None], k)[0, 0]
        return ((near == 3) | ((b == 1) & (near == 2))).astype(b.dtype)

    return lax.fori_loop(0, 30, step, board)


@case("control", lambda g: (g.normal(4, 70, 50, 1), g.uniform(3, 3)))
def diffusion_nhwc_batch_4(x, k):
    k = (k / k.sum())[:, :, None, None]
    return lax.fori_loop(0, 20, lambda _, x: _filter(x, k, ("NHWC", "HWIO", "NHWC")), x)


@case("control", lambda g: (g.uniform(64, 64), g.uniform(64, 64)))
def richardson_lucy_5x5_64(image, estimate):
    a = jnp.exp(-0.5 * (jnp.arange(5.0) - 2) ** 2).astype(image.dtype)
    psf = jnp.outer(a, a) / jnp.outer(a, a).sum()
    blur = lambda x, k: jax.scipy.signal.convolve2d(x, k, mode="same")  # noqa: E731

    def step(x, _):
        return x * blur((image + 0.1) / (blur(x, psf) + 0.1), psf[::-1, ::-1]), None

    return lax.scan(step, estimate, None, length=15)[0]


@case("control", lambda g: (g.normal(8, 48, 48),))
def laplacian_vmap_8x48(x):
    k = jnp.array([[0.05, 0.2, 0.05], [0.2, -1, 0.2], [0.05, 0.2, 0.05]], x.dtype)
    blur = lambda x: jax.scipy.signal.convolve2d(x, k, mode="same")  # noqa: E731
    return jax.vmap(lambda x: lax.fori_loop(0, 20, lambda _, x: x + 0.2 * blur(x), x))(x)


@case("control", lambda g: (g.normal(500), g.uniform(5)))
def smooth_convolve_500(x, k):
    return lax.fori_loop(0, 100, lambda _, x: jnp.tanh(jnp.convolve(x, k, mode="same")), x)


@case("control", lambda g: (g.uniform(200, 160, lo=-0.5, hi=0.5), g.uniform(200, 160, hi=0.1)), tol=1e-3)
def fitzhugh_nagumo_convolution_200x160(u, v):
    k = jnp.array([[0.25, 0.5, 0.25], [0.5, -3, 0.5], [0.25, 0.5, 0.25]], u.dtype)[None, None]

    def step(s, _):
        u, v = s
        du = _filter(u[None, None], k)[0, 0] + u - u**3 - v + 0.05
        dv = 0.3 * _filter(v[None, None], k)[0, 0] + 0.1 * (u - 0.8 * v)
        return (u + 0.05 * du, v + 0.05 * dv), u.mean()

    return lax.scan(step, (u, v), None, length=20)


@case("control", lambda g: (g.normal(90, 110), g.uniform(90, 110)))
def deblur_by_gradient_90x110(start, target):
    k = jnp.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], start.dtype)[None, None] / 16
    loss = lambda x: jnp.square(_filter(x[None, None], k)[0, 0] - target).sum()  # noqa: E731
    return lax.fori_loop(0, 15, lambda _, x: x - 0.4 * jax.grad(loss)(x), start)


# carries that cannot be updated in place, and states that every trip waits for ------------------


@case("control", lambda g: (g.normal(180, 260, scale=0.1), g.uniform(180, 260, lo=0.1, hi=0.4)), tol=2e-3)
def wave_2d_speeds_41_steps(u, speed):
    def step(_, s):
        last, now = s
        up = jnp.pad(now, 1)
        bent = up[:-2, 1:-1] + up[2:, 1:-1] + up[1:-1, :-2] + up[1:-1, 2:] - 4 * now
        return now, 2 * now - last + speed * bent

    return lax.fori_loop(0, 41, step, (u, u))


@case("control", lambda g: (g.uniform(97, 97, lo=1.0, hi=50.0),), x64=True)
def floyd_warshall_next_hops_97(d):
    def step(k, s):
        d, first = s
        way = d[:, k, None] + d[None, k]
        return jnp.minimum(d, way), jnp.where(way < d, first[:, k, None], first)

    return lax.fori_loop(0, 97, step, (d.astype(jnp.float64), jnp.broadcast_to(jnp.arange(97), (97, 97))))


@case("control", lambda g: (g.normal(900), g.normal(900, scale=0.01)), tol=2e-3)
def verlet_chain_900(x, v):
    def step(s, _):
        last, now = s
        force = jnp.sin(jnp.roll(now, 1) - now) + jnp.sin(jnp.roll(now, -1) - now)
        return (now, 2 * now - last + 1e-3 * force), now[0]

    return lax.scan(step, (x - v, x), None, length=200)


@case("control", lambda g: (np.array([0.9, 0.3, 0.1, 0.2], np.float32), g.uniform(5, lo=0.5, hi=2.0)), tol=2e-3)
def arrhenius_kinetics_1200(y, energy):
    def step(_, s):
        a, b, c, t = s
        rate = lambda k, e: k * jnp.exp(-energy[e] / (0.2 + t))  # noqa: E731
        r1, r2, r3 = rate(1.3, 0) * a, rate(0.7, 1) * a * b, rate(2.1, 2) * b
        r4, r5 = rate(0.4, 3) * c, rate(0.9, 4) * c * b
        return (a + 2e-3 * (r4 - r1 - r2), b + 2e-3 * (r1 - r2 - r3), c + 2e-3 * (r2 + r3 - r4 - r5),
                t + 2e-3 * (r1 + r3 - 0.1 * t))  # fmt: skip

    return lax.fori_loop(0, 1200, step, tuple(y))


@case("control", lambda g: (g.weight(21, 21), g.weight(21, 6), g.normal(500, 6)), chain_cycles=2e5)
def echo_state_h21_500_steps(w, u, x):
    return lax.scan(lambda h, x: (0.7 * h + 0.3 * jnp.tanh(w @ h + u @ x),) * 2, jnp.zeros(21, x.dtype), x)


@case("control", lambda g: (g.normal(6000, 4), g.normal(24, 4)), ref="cpu", tol=5e-2)
def kmeans_inertia_6000x4_k24(x, c):
    def step(c, _):
        d = jnp.square(x).sum(1)[:, None] - 2 * x @ c.T + jnp.square(c).sum(1)
        near = d.argmin(1)
        total = jax.ops.segment_sum(x, near, num_segments=24)
        count = jax.ops.segment_sum(jnp.ones_like(x[:, 0]), near, num_segments=24)
        return total / jnp.maximum(count, 1)[:, None], d.min(1).mean()

    return lax.scan(step, c, None, length=6)


@case("control", lstm_inputs(30, 20, 40, 64, "bf16"), tol=0.1)
def lstm_scan_bf16_b20_h64(wx, wh, x):
    return lstm(wx, wh, x)[1]
