"""Loops, second part: random chains, solvers, environments, recurrences of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")

# chains of random numbers ---------------------------------------------------------------------------


@case("control", lambda g: (g.key(), g.normal(2)), ref="cpu")
def metropolis_single_1000(key, x):
    logp = lambda x: -0.5 * jnp.square(x).sum() - 0.3 * (x[0] * x[1]) ** 2  # noqa: E731

    def step(s, key):
        x, l = s  # noqa: E741
        a, b = jax.random.split(key)
        new = x + 0.5 * jax.random.normal(a, x.shape)
        ln = logp(new)
        accept = jnp.log(jax.random.uniform(b)) < ln - l
        return (jnp.where(accept, new, x), jnp.where(accept, ln, l)), x

    return lax.scan(step, (x, logp(x)), jax.random.split(key, 1000))[1]


@case("control", lambda g: (g.key(), g.normal(300, 6)), ref="cpu")
def hmc_vmapped_300(key, x):
    logp = lambda x: -0.25 * (x**4).sum() - 0.5 * jnp.square(jnp.diff(x)).sum()  # noqa: E731
    force = jax.grad(logp)

    def one(key, x):
        def step(x, key):
            a, b = jax.random.split(key)
            v0 = jax.random.normal(a, x.shape)
            y, v = lax.fori_loop(0, 6, lambda _, s: ((y := s[0] + 0.05 * s[1]), s[1] + 0.05 * force(y)), (x, v0))
            change = logp(y) - logp(x) + 0.5 * (v0 @ v0 - v @ v)
            return jnp.where(jnp.log(jax.random.uniform(b)) < change, y, x), None

        return lax.scan(step, x, jax.random.split(key, 15))[0]

    return jax.vmap(one)(jax.random.split(key, x.shape[0]), x)


@case("control", lambda g: (g.key(), g.normal(1200, 2)), ref="cpu", tol=2e-3)
def langevin_1200x2(key, x):
    def step(i, x):
        drift = x - x**3 + 0.1 * x[:, ::-1]
        return x + 0.01 * drift + 0.1 * jax.random.normal(jax.random.fold_in(key, i), x.shape)

    return lax.fori_loop(0, 60, step, x)


@case("control", lambda g: (g.key(), (g.ints(0, 2, 90, 90) * 2 - 1).astype(np.int8)), ref="cpu", tol=1e-3)
def ising_checkerboard_90(key, spins):
    mask = (np.add.outer(np.arange(90), np.arange(90)) % 2).astype(bool)

    def sweep(s, key):
        for colour, k in zip((mask, ~mask), jax.random.split(key)):
            near = jnp.roll(s, 1, 0) + jnp.roll(s, -1, 0) + jnp.roll(s, 1, 1) + jnp.roll(s, -1, 1)
            flip = jax.random.uniform(k, s.shape) < jnp.exp(-0.88 * (s * near).astype(jnp.float32))
            s = jnp.where(flip & colour, -s, s)
        return s, s.astype(jnp.float32).mean()

    return lax.scan(sweep, spins, jax.random.split(key, 40))


@case("control", lambda g: (g.key(), g.uniform(45, 2)), ref="cpu", tol=1e-3)
def simulated_annealing_tsp_45(key, towns):
    length = lambda tour: jnp.sqrt(jnp.square(towns[tour] - towns[jnp.roll(tour, 1)]).sum(-1)).sum()  # noqa: E731

    def step(i, s):
        tour, cost, key = s
        key, a, b = jax.random.split(key, 3)
        i1, i2 = jax.random.randint(a, (2,), 0, 45)
        new = tour.at[i1].set(tour[i2]).at[i2].set(tour[i1])
        other = length(new)
        accept = jax.random.uniform(b) < jnp.exp((cost - other) / (1.0 * 0.99**i))
        return jnp.where(accept, new, tour), jnp.where(accept, other, cost), key

    tour = jnp.arange(45)
    return lax.fori_loop(0, 400, step, (tour, length(tour), key))[1]


@case("control", lambda g: (g.key(), np.float32(100.0)), ref="cpu", tol=2e-3)
def monte_carlo_asian_option_20000(key, spot):
    def step(s, key):
        price, total = s
        z = jax.random.normal(key, price.shape)
        price = price * jnp.exp((0.03 - 0.02) / 24 + 0.2 * np.float32(np.sqrt(1 / 24)) * z)
        return (price, total + price), None

    def value(spot):
        start = jnp.full(20_000, 1.0, jnp.float32) * spot
        total = lax.scan(step, (start, jnp.zeros_like(start)), jax.random.split(key, 24))[0][1]
        return jnp.maximum(total / 24 - 100.0, 0.0).mean()

    return jax.value_and_grad(value)(spot)


# linear and nonlinear equations, optimisation -----------------------------------------------------------


@case("control", lambda g: (g.uniform(700, 700),), trips=12)
def pagerank_dense_while_700(links):
    links = jnp.where(links > 0.97, 1.0, 0.0) + 1e-3
    m = links / links.sum(0)

    def step(s):
        r, _, i = s
        new = 0.85 * (m @ r) + 0.15 / 700
        return new, jnp.abs(new - r).sum(), i + 1

    start = jnp.full(700, 1 / 700, links.dtype)
    return lax.while_loop(lambda s: (s[1] > 1e-4) & (s[2] < 60), step, (start, jnp.ones((), links.dtype), 0))[0]


@case("control", lambda g: (g.ints(0, 5000, 30000), g.ints(0, 5000, 30000)), ref="cpu", tol=1e-3)
def pagerank_edges_5000(source, target):
    degree = jnp.maximum(jnp.bincount(source, length=5000), 1).astype(jnp.float32)

    def step(r, _):
        flow = jax.ops.segment_sum((r / degree)[source], target, num_segments=5000)
        return 0.85 * flow + 0.15 / 5000, None

    return lax.scan(step, jnp.full(5000, 1 / 5000), None, length=25)[0]


@case("control", lambda g: (g.spd(150), g.normal(150)), trips=30, tol=2e-3)
def conjugate_gradient_while_150(a, b):
    def step(s):
        x, r, p, rs, i = s
        ap = a @ p
        alpha = rs / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        return x, r, r + new / rs * p, new, i + 1

    start = (jnp.zeros_like(b), b, b, b @ b, 0)
    return lax.while_loop(lambda s: (s[3] > 1e-6) & (s[4] < 100), step, start)[0]


@case("control", lambda g: (g.normal(61, 83),), trips=60, tol=2e-3)
def scipy_cg_poisson_61x83(f):
    def matvec(u):
        p = jnp.pad(u, 1)
        return 4.5 * u - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]

    return jax.scipy.sparse.linalg.cg(matvec, f, tol=1e-4, maxiter=60)[0]


@case("control", lambda g: (g.uniform(150, 3, lo=0.5, hi=2.0), g.uniform(150, 3, lo=1.0, hi=3.0)), tol=1e-3)
def newton_3_equations_vmapped_150(x, target):
    def f(x, t):
        a, b, c = x
        return jnp.array([a * a + b, b * b + c, c * c + a]) - t - 1.0

    def one(x, t):
        step = lambda _, x: x - jnp.linalg.solve(jax.jacfwd(f)(x, t), f(x, t))  # noqa: E731
        return lax.fori_loop(0, 8, step, x)

    return jax.vmap(one)(x, target)


@case("control", lambda g: (g.uniform(60, hi=4.0), g.normal(60, scale=0.02)), tol=2e-3)
def levenberg_marquardt_decay_fit(t, noise):
    y = 2.0 * jnp.exp(-1.3 * t) + 0.5 + noise
    residual = lambda p: p[0] * jnp.exp(-p[1] * t) + p[2] - y  # noqa: E731

    def step(s, _):
        p, damping = s
        r, j = residual(p), jax.jacrev(residual)(p)
        a = j.T @ j
        new = p - jnp.linalg.solve(a + damping * jnp.diag(jnp.diag(a)), j.T @ r)
        return (new, damping * 0.7), r @ r

    return lax.scan(step, (jnp.ones(3, t.dtype), jnp.full((), 0.5, t.dtype)), None, length=12)[0][0]


@case("control", lambda g: (np.array([-1.2, 1.0], np.float32),), tol=1e-2, chain_cycles=2e5)
def gradient_descent_rosenbrock_3000(x):
    f = lambda x: (1 - x[0]) ** 2 + 20 * (x[1] - x[0] ** 2) ** 2  # noqa: E731
    return lax.fori_loop(0, 3000, lambda _, x: x - 1e-3 * jax.grad(f)(x), x)


@case("control", lambda g: (g.normal(400, 21), g.normal(400), g.normal(21)), tol=5e-3)
def adam_loop_regression_400x21(x, y, w):
    loss = lambda w: jnp.square(x @ w - y).mean() + 0.01 * jnp.abs(w).sum()  # noqa: E731

    def step(i, s):
        w, m, v = s
        g = jax.grad(loss)(w)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        mh, vh = m / (1 - 0.9 ** (i + 1)), v / (1 - 0.99 ** (i + 1))
        return w - 0.02 * mh / (jnp.sqrt(vh) + 1e-3), m, v

    return lax.fori_loop(0, 100, step, (w, jnp.zeros_like(w), jnp.zeros_like(w)))[0]


@case("control", lambda g: (g.uniform(3000, lo=1.0, hi=50.0),), trips=25)
def bisection_while_3000(a):
    def step(s):
        lo, hi, i = s
        mid = 0.5 * (lo + hi)
        low = mid**3 + mid < a
        return jnp.where(low, mid, lo), jnp.where(low, hi, mid), i + 1

    lo, hi, _ = lax.while_loop(lambda s: ((s[1] - s[0]).max() > 1e-4) & (s[2] < 60), step,
                               (jnp.zeros_like(a), a, 0))  # fmt: skip
    return 0.5 * (lo + hi)


@case("control", lambda g: (np.float32(7.3),), trips=22, chain_cycles=600)
def bisection_scalar_while(a):
    def step(s):
        lo, hi = s
        mid = (lo + hi) / 2
        return lax.cond(mid * jnp.exp(mid) < a, lambda: (mid, hi), lambda: (lo, mid))

    return lax.while_loop(lambda s: s[1] - s[0] > 1e-5, step, (jnp.zeros_like(a), a))[0]


@case("control", lambda g: (g.uniform(130, 170), g.uniform(130, lo=0.5), g.uniform(170, lo=0.5)), tol=1e-3)
def sinkhorn_log_130x170(cost, a, b):
    log_a, log_b, k = jnp.log(a / a.sum()), jnp.log(b / b.sum()), -cost / 0.1

    def step(fg, _):
        f, h = fg
        f = log_a - nn.logsumexp(k + h[None, :], axis=1)
        h = log_b - nn.logsumexp(k + f[:, None], axis=0)
        return (f, h), None

    f, h = lax.scan(step, (jnp.zeros_like(a), jnp.zeros_like(b)), None, length=20)[0]
    return jnp.exp(f[:, None] + h[None, :] + k)


@case("control", lambda g: (g.normal(180, 180),), tol=2e-3)
def newton_schulz_orthogonalise_180(m):
    x = m / jnp.linalg.norm(m)
    return lax.fori_loop(0, 10, lambda _, x: 1.5 * x - 0.5 * x @ (x.T @ x), x)


@case("control", lambda g: (g.normal(11, 11, scale=0.3), g.normal(500, 11)))
def fori_matrix_exponential_action(a, x):
    def term(k, s):
        total, power = s
        power = power @ a / (k + 1)
        return total + power, power

    total = lax.fori_loop(0, 14, term, (jnp.eye(11, dtype=a.dtype), jnp.eye(11, dtype=a.dtype)))[0]
    return x @ total.T


# environments ------------------------------------------------------------------------------------------


def cartpole(s, force):
    x, v, a, w = s
    c, d = jnp.cos(a), jnp.sin(a)
    temp = (force + 0.05 * w**2 * d) / 1.1
    aa = (9.8 * d - c * temp) / (0.5 * (4.0 / 3.0 - 0.1 * c**2 / 1.1))
    acc = temp - 0.05 * aa * c / 1.1
    return jnp.stack([x + 0.02 * v, v + 0.02 * acc, a + 0.02 * w, w + 0.02 * aa])


@case("control", lambda g: (g.key(), {"a": g.dense(4, 20), "b": g.dense(20, 2)}), ref="cpu", tol=1e-2)
def rl_cartpole_policy_130_envs(key, p):
    def one(key):
        def step(s, key):
            obs, done = s
            logits = jnp.tanh(obs @ p["a"]["w"] + p["a"]["b"]) @ p["b"]["w"] + p["b"]["b"]
            action = jax.random.categorical(key, logits)
            new = cartpole(obs, jnp.where(action == 1, 10.0, -10.0))
            done = done | (jnp.abs(new[0]) > 2.4) | (jnp.abs(new[2]) > 0.21)
            return (jnp.where(done, obs, new), done), 1.0 - done

        reset, run = jax.random.split(key)
        obs = jax.random.uniform(reset, (4,), minval=-0.05, maxval=0.05)
        return lax.scan(step, (obs, False), jax.random.split(run, 60))[1].sum()

    return jax.vmap(one)(jax.random.split(key, 130))


@case("control", lambda g: (g.normal(33, 48, 4, scale=0.1), g.weight(33, 4, 2)), ref="cpu")
def rl_cartpole_population_33x48(states, policies):
    def rollout(w, s):
        def step(carry, _):
            s, done, steps = carry
            left, right = s @ w
            s = jnp.where(done, s, cartpole(s, jnp.where(left > right, 10.0, -10.0)))
            done = done | (jnp.abs(s[0]) > 2.4) | (jnp.abs(s[2]) > 0.2)
            return (s, done, steps + ~done), None

        return lax.scan(step, (s, False, 0), None, length=50)[0][2]

    return jax.vmap(lambda w, s: jax.vmap(lambda s: rollout(w, s))(s).mean())(policies, states)


@case("control", lambda g: (g.key(), g.uniform(48, 4, hi=0.1)), ref="cpu", tol=1e-2)
def rl_gridworld_q_learning_600(key, q):
    moves = jnp.array([-8, 8, -1, 1], jnp.int32)

    def step(s, key):
        q, state = s
        a, b, c = jax.random.split(key, 3)
        greedy = jnp.argmax(q[state])
        action = jnp.where(jax.random.uniform(a) < 0.2, jax.random.randint(b, (), 0, 4), greedy)
        new = jnp.clip(state + moves[action], 0, 47)
        done = new == 47
        target = jnp.where(done, 1.0, -0.01 + 0.95 * q[new].max())
        q = q.at[state, action].add(0.1 * (target - q[state, action]))
        return (q, jnp.where(done, 0, new)), target

    return lax.scan(step, (q, jnp.int32(0)), jax.random.split(key, 600))[0][0]


@case("control", lambda g: (g.uniform(1000, 2, lo=-0.6, hi=-0.4), g.ints(0, 3, 100, 1000)), tol=1e-2)
def rl_mountain_car_1000_envs(s, actions):
    def step(s, action):
        x, v = s
        v = jnp.clip(v + (action - 1) * 0.001 - 0.0025 * jnp.cos(3 * x), -0.07, 0.07)
        x = jnp.clip(x + v, -1.2, 0.6)
        v = jnp.where(x <= -1.2, 0.0, v)
        return (x, v), x

    return lax.scan(step, (s[:, 0], s[:, 1]), actions)


@case("control", lambda g: (g.normal(128, 16), g.normal(128, 16), g.ints(0, 30, 128, 16)))
def rl_gae_reverse_scan_128x16(reward, value, done):
    live = 1.0 - (done == 0).astype(reward.dtype)

    def step(s, xs):
        gae, after = s
        r, v, l = xs  # noqa: E741
        gae = r + 0.99 * after * l - v + 0.99 * 0.95 * l * gae
        return (gae, v), gae

    zero = jnp.zeros(16, reward.dtype)
    return lax.scan(step, (zero, zero), (reward, value, live), reverse=True)[1]


# recurrences ----------------------------------------------------------------------------------------------------


@case("control", lambda g: (g.uniform(1500, 2, 2, lo=-0.7, hi=0.7),))
def associative_scan_matrix_2x2(m):
    return lax.associative_scan(lambda a, b: jnp.einsum("...ij,...jk->...ik", b, a), m)


@case("control", lambda g: (g.normal(333, 60), g.normal(333, 60)))
def associative_scan_logaddexp_reverse(a, b):
    low, total = lax.associative_scan(lambda x, y: (jnp.minimum(x[0], y[0]), jnp.logaddexp(x[1], y[1])), (a, b),
                                      reverse=True)  # fmt: skip
    return low + total


@case("control", lambda g: (g.uniform(6, 2000, lo=0.5, hi=1.0), g.normal(6, 2000)))
def associative_scan_last_axis_grad(a, b):
    def loss(a, b):
        combine = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])  # noqa: E731
        return jnp.square(lax.associative_scan(combine, (a, b), axis=1)[1]).mean()

    return jax.grad(loss, (0, 1))(a, b)


@case("control", lambda g: (g.normal(3000), np.array([[0.2, 0.3, 0.2, -0.5, 0.3]] * 4, np.float32)),
      chain_cycles=2e5)  # fmt: skip
def iir_biquad_cascade_4x3000(x, sections):
    def step(z, x):
        new = []
        for k in range(4):
            b0, b1, b2, a1, a2 = sections[k]
            y = b0 * x + z[k, 0]
            new.append(jnp.stack([b1 * x - a1 * y + z[k, 1], b2 * x - a2 * y]))
            x = y
        return jnp.stack(new), x

    return lax.scan(step, jnp.zeros((4, 2), x.dtype), x)[1]


@case("control", lambda g: (g.normal(2048, 24),))
def ema_and_drawdown_2048x24(x):
    def step(s, x):
        fast, slow, peak = s
        fast, slow = fast + 0.1 * (x - fast), slow + 0.02 * (x - slow)
        peak = jnp.maximum(peak * 0.999, fast)
        return (fast, slow, peak), (fast - slow, peak - fast)

    return lax.scan(step, (x[0], x[0], x[0]), x)[1]


@case("control", lambda g: (g.normal(700, scale=0.02), np.array([0.05, 0.1, 0.8], np.float32)), tol=2e-3)
def garch_likelihood_newton(returns, theta):
    def loss(theta):
        w, a, b = 1e-3 * theta[0], theta[1], theta[2]

        def step(s, r):
            v, total = s
            return (w + a * r * r + b * v, total + jnp.log(v) + r * r / v), None

        zero = jnp.zeros((), returns.dtype)
        return lax.scan(step, (zero + 4e-4, zero), returns)[0][1] / 700

    return jax.grad(loss)(theta), jax.hessian(loss)(theta)


@case("control", lambda g: (g.normal(12), g.uniform(800, lo=0.9, hi=1.1)), tol=2e-3)
def grad_of_scan_12_scalars(start, drive):
    def loss(start):
        def step(s, d):
            s = list(s)
            for i in range(12):
                s[i] = 0.95 * s[i] + 0.05 * d * jnp.sin(s[i - 1]) * s[(i + 5) % 12]
            return tuple(s), s[0]

        final, trace = lax.scan(step, tuple(start), drive)
        return sum(f * f for f in final) + trace.sum()

    return jax.value_and_grad(loss)(start)


@case("control", lambda g: (g.uniform(1, lo=0.5, hi=1.5),), chain_cycles=2e5, tol=2e-3)
def hodgkin_huxley_scalars_1500(p):
    def step(_, s):
        v, m, h, n, gate = s
        am, bm = 0.1 * (v + 40.01) / (1 - jnp.exp(-(v + 40.01) / 10)), 4 * jnp.exp(-(v + 65) / 18)
        ah, bh = 0.07 * jnp.exp(-(v + 65) / 20), 1 / (1 + jnp.exp(-(v + 35) / 10))
        an, bn = 0.01 * (v + 55.01) / (1 - jnp.exp(-(v + 55.01) / 10)), 0.125 * jnp.exp(-(v + 65) / 80)
        current = p[0] * 5 - 120 * m**3 * h * (v - 50) - 36 * n**4 * (v + 77) - 0.3 * (v + 54.4)
        return (v + 0.01 * current, m + 0.01 * (am * (1 - m) - bm * m), h + 0.01 * (ah * (1 - h) - bh * h),
                n + 0.01 * (an * (1 - n) - bn * n), 0.999 * gate + 0.001 * v)  # fmt: skip

    one = p[0] / p[0]
    return lax.fori_loop(0, 1500, step, (-65.0 * one, 0.05 * one, 0.6 * one, 0.32 * one, -65.0 * one))


@case("control", lambda g: (g.normal(64, 10), g.normal(30, 12, 10)))
def nested_scans_three_levels(w, x):
    def outer(h, block):
        def middle(h, x):
            h = lax.fori_loop(0, 3, lambda i, h: jnp.tanh(h + 0.1 * i + x), h)
            return h, h.mean()

        h, means = lax.scan(middle, h, block)
        return h * 0.5, means

    h, means = lax.scan(outer, x[0, 0], x)
    return w @ h, means


@case("control", lambda g: (g.normal(50, 33), g.normal(400, 33)))
def ring_buffer_window_max(buffer, rows):
    def step(s, row):
        buffer, i = s
        buffer = lax.dynamic_update_slice_in_dim(buffer, row[None], i % 50, axis=0)
        return (buffer, i + 1), buffer.max(0)

    return lax.scan(step, (buffer, jnp.int32(0)), rows)[1]


@case("control", lambda g: (g.normal(900),))
def fori_autoregressive_buffer_900(noise):
    def step(i, x):
        window = lax.dynamic_slice(x, (i - 3,), (3,))
        return x.at[i].set(0.5 * window[2] - 0.2 * window[1] + 0.1 * window[0] + noise[i])

    return lax.fori_loop(3, 900, step, jnp.zeros_like(noise))


@case("control", lambda g: (g.normal(40, 40), g.normal(40)))
def gauss_elimination_fori_40(a, b):
    m = jnp.concatenate([a + 12 * jnp.eye(40, dtype=a.dtype), b[:, None]], 1)

    def column(k, m):
        row = m[k] / m[k, k]
        factor = m[:, k].at[k].set(0.0)
        return m.at[k].set(row) - factor[:, None] * row[None, :]

    return lax.fori_loop(0, 40, column, m)[:, -1]


@case("control", lambda g: (g.normal(9, 300),), ref="cpu", tol=2e-3)
def checkpointed_scan_grad_9x300(x):
    @jax.checkpoint
    def step(h, k):
        return jnp.sin(h * 1.1 + k) + 0.1 * h.mean(), None

    return jax.grad(lambda x: lax.scan(step, x, jnp.linspace(0, 1, 40))[0].sum())(x)
