"""Further programs drawn at random for turns.py: products, linear algebra, loops, attention, random numbers, layers, signals, chains of ops.

  SEED=7 COUNT=200 [FAMILIES=chains,vectors] python bench/turns.py bench/drawn_models.py --lib=LIB --seconds=0.2

As drawn_programs.py, of whose families FAMILIES may name some as well. Sums whose exact value is zero (of what was centred, gradients of what does
not depend on the scale) differ from XLA:CPU's by as much as they are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

sys.path.insert(0, str(Path(__file__).parent))
from drawn_programs import FAMILIES, array, cases, draw, family, numbers, places, shape  # noqa: E402

ELSEWHERE = set(FAMILIES)


def size(low, high):
    return round(float(np.exp(draw.uniform(np.log(low), np.log(high)))))


def gradient(f, values):
    """Of the sum of squares of all results, for all arguments that are floats"""
    floats = tuple(n for n, v in enumerate(values) if jnp.issubdtype(jnp.asarray(v).dtype, jnp.floating))

    def loss(*arguments):
        return sum((y.astype("float32") ** 2).sum() for y in jax.tree.leaves(f(*arguments)))

    return jax.grad(loss, argnums=floats)


@family
def products():
    forms = """mk,kn->mn mk,nk->mn km,kn->mn mk,kn->nm bmk,bkn->bmn bmk,bnk->bmn bmk,kn->bmn bhmk,bhnk->bhmn bmhk,bnhk->bhmn bhmn,bnhk->bmhk mk,k->m
        km,k->m bmk,bk->bm m,n->mn bm,bn->bmn bmk,kn->bnm abk,abkn->abn mk,bkn->bmn bik,bjk->ij bij,bjk,bkl->bil ijk,k->ij ijk,jl->ilk ijk,ijk->i"""
    form, kind = draw.choice(forms.split()), draw.choice(["f32"] * 6 + ["bf16", "f16"])
    operands, result = form.split("->")[0].split(","), form.split("->")[1]
    while True:
        sizes = {d: size(2, 60 if d in "ahb" else 1200) for d in sorted(set(form) - set(",->"))}
        arrays = [int(np.prod([sizes[d] for d in part])) for part in [*operands, result]]
        if 3e4 < np.prod([float(n) for n in sizes.values()]) < 1.5e8 and max(arrays) < 3e6:
            values = [array(tuple(sizes[d] for d in part), kind) for part in operands]
            return form, lambda *a: jnp.einsum(form, *a), values


@family
def linear_algebra():
    n = size(2, 24) if draw.random() < 0.7 else size(24, 150)
    batch = max(1, int(draw.choice([3e4, 3e5]) / n**2.3))
    a = numbers.randn(batch, n, n).astype("float32")
    positive, far = a @ a.swapaxes(1, 2) + n * np.eye(n, dtype="float32"), a + n * np.eye(n, dtype="float32")
    sides = array((batch, n, draw.choice([1, 1, 3, n])))
    # XLA:CPU 0.10.2 may wait for ever for two triangular systems that do not depend on each other: there are none here.
    ops = {
        "inv": (jnp.linalg.inv, [far]),
        "solve": (jnp.linalg.solve, [far, sides]),
        "cholesky": (jnp.linalg.cholesky, [positive]),
        "det": (jnp.linalg.det, [far]),
        "qr": (jnp.linalg.qr, [far]),
        "eigh": (jnp.linalg.eigh, [positive]),
        "svd": (jnp.linalg.svd, [far]),
        "power": (lambda x: jnp.linalg.matrix_power(x / n, 5), [far]),
        "expm": (lambda x: jax.scipy.linalg.expm(x / n), [far]),
    }
    op = draw.choice(list(ops))
    return op, *ops[op]


def loop_bodies(n, steps, batch):
    """{name: (function, arguments)} of loops over vectors of n, of a batch if there is one"""
    start = array((batch, n) if batch else (n,))
    w, gates, inputs = array((n, n)) / float(np.sqrt(n)), array((n, 3 * n)) / float(np.sqrt(n)), array((steps, *start.shape))

    def rnn(w, x, xs):
        def step(c, x):
            c = jnp.tanh(c @ w + x)
            return c, c

        return lax.scan(step, x, xs)

    def gru(gates, x, xs):
        def step(h, x):
            r, z, c = jnp.split(h @ gates, 3, -1)
            z = jax.nn.sigmoid(z + x)
            h = (1 - z) * h + z * jnp.tanh(jax.nn.sigmoid(r + x) * c + x)
            return h, h

        return lax.scan(step, x, xs)

    def leapfrog(x, v):
        def step(_, state):
            x, v = state
            v = v - 0.01 * jnp.sin(x)
            return x + 0.01 * v, v

        return lax.fori_loop(0, steps, step, (x, v))

    def average(x, xs):
        return lax.scan(lambda c, x: (0.9 * c + 0.1 * x,) * 2, x, xs)

    def branches(x, xs):
        def step(c, x):
            c = lax.cond(c.sum() > 0, lambda c: c - x, lambda c: c * 0.5 + x, c)
            return c, c.max()

        return lax.scan(step, x, xs)

    def newton(x):
        def step(state):
            x, k = state
            return x - (x**3 - x - 2) / (3 * x * x - 1.01), k + 1

        return lax.while_loop(lambda s: (jnp.abs(s[0] ** 3 - s[0] - 2).max() > 1e-5) & (s[1] < steps), step, (jnp.abs(x) + 2, 0))

    def writes(xs):
        return lax.fori_loop(1, steps, lambda i, a: a.at[i].set(a[i - 1] * 0.5 + xs[i]), xs)

    def power(w, x):
        def step(_, x):
            x = x @ w
            return x / jnp.sqrt((x * x).sum(-1, keepdims=True))

        return lax.fori_loop(0, steps, step, x)

    def viterbi(w, x, xs):
        def step(c, x):
            s = c[..., :, None] + w
            return s.max(-2) + x, s.argmax(-2)

        return lax.scan(step, x, xs)

    def metropolis(x):
        def step(c, key):
            moved, accepted = jax.random.split(key)
            p = c + 0.1 * jax.random.normal(moved, c.shape)
            c = jnp.where(jax.random.uniform(accepted, c.shape) < jnp.exp(0.5 * (c * c - p * p)), p, c)
            return c, c.sum()

        return lax.scan(step, x, jax.random.split(jax.random.PRNGKey(0), steps))

    def runge_kutta(w, x):
        def f(x):
            return jnp.tanh(x @ w)

        def step(_, x):
            a = f(x)
            b = f(x + 0.005 * a)
            return x + 0.01 / 3 * (a + b + f(x + 0.01 * b))

        return lax.fori_loop(0, steps, step, x)

    functions = {rnn: [w, start, inputs], gru: [gates, start, inputs], leapfrog: [start, start], average: [start, inputs], branches: [start, inputs]}
    functions |= {newton: [start], writes: [inputs], power: [w, start], viterbi: [w, start, inputs], metropolis: [start], runge_kutta: [w, start]}
    bodies = {f.__name__: (f, values) for f, values in functions.items()}
    with_gradient = {"rnn", "gru", "average", "branches"}
    return bodies | {f"grad_{name}": (gradient(f, v), v) for name, (f, v) in bodies.items() if name in with_gradient}


@family
def loops():
    while True:
        n, steps, batch = size(1, 200), size(20, 600), draw.choice([0, 0, size(2, 64)])
        if n * n * max(batch, 1) * steps < 3e7:
            break
    bodies = loop_bodies(n, steps, batch)
    op = draw.choice(list(bodies))
    return f"{op}_{steps}", *bodies[op]


@family
def attention():
    while True:
        batch, heads, depth = size(1, 8), draw.choice([1, 2, 4, 6, 8, 12]), draw.choice([16, 24, 32, 48, 64, 80, 128])
        queries, groups = draw.choice([1, size(16, 700), size(16, 700), size(16, 700)]), draw.choice([1, 1, 2]) if heads % 2 == 0 else 1
        keys = draw.choice([max(queries, 16), size(16, 700)])
        if batch * heads * queries * keys * depth < 3e8:
            break
    kind, causal = draw.choice(["f32"] * 3 + ["bf16"]), queries == keys and draw.random() < 0.5
    values = [array(dims, kind) for dims in [(batch, queries, heads, depth)] + [(batch, keys, heads // groups, depth)] * 2]

    def f(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal)

    return (f"grad_{causal}", gradient(f, values), values) if draw.random() < 0.3 else (f"{causal}", f, values)


@family
def random_numbers():
    n = size(10, 500000)
    dims, random = draw.choice([(n,), (max(1, n // 30), 30)]), jax.random
    key, x = np.asarray(random.PRNGKey(draw.randint(0, 99))), array(dims)
    ops = {
        "uniform": lambda k, x: random.uniform(k, dims),
        "normal": lambda k, x: random.normal(k, dims),
        "bernoulli": lambda k, x: random.bernoulli(k, 0.3, dims),
        "randint": lambda k, x: random.randint(k, dims, 0, 77),
        "permutation": lambda k, x: random.permutation(k, x),
        "gumbel": lambda k, x: random.gumbel(k, dims),
        "truncated": lambda k, x: random.truncated_normal(k, -1, 2, dims),
        "split": lambda k, x: random.split(k, n),
        "gamma": lambda k, x: random.gamma(k, 2.0, (min(n, 20000),)),
        "poisson": lambda k, x: random.poisson(k, 3.0, (min(n, 20000),)),
        "choice": lambda k, x: random.choice(k, n, (max(1, n // 3),)),
        "of_each": lambda k, x: jax.vmap(lambda k: random.normal(k, (30,)))(random.split(k, max(1, n // 30))),
        "categorical": random.categorical,
        "dropout": lambda k, x: jnp.where(random.bernoulli(k, 0.9, x.shape), x / 0.9, 0),
    }
    op = draw.choice(list(ops))
    return op, ops[op], [key, x]


def mean_and_scale(x, axes):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(axes, keepdims=True) + 1e-5)


@family
def layers():
    while True:
        rows, inputs, outputs = size(4, 2000), size(4, 900), size(4, 900)
        if rows * inputs * outputs < 2e8:
            break
    kind, side = draw.choice(["f32"] * 4 + ["bf16"]), draw.choice([21, 79])
    x, w, back = array((rows, inputs), kind), array((inputs, outputs), kind), array((outputs, inputs), kind)
    scale, labels, image = array((inputs,), kind), places(inputs, rows), array((4, side, side, 16), kind)
    few = x[:500]
    ops = {
        "layer_norm": (lambda x, v: mean_and_scale(x, -1) * v, [x, scale]),
        "batch_norm": (lambda x, v: mean_and_scale(x, 0) * v, [x, scale]),
        "rms_norm": (lambda x, v: x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * v, [x, scale]),
        "group_norm": (lambda x: mean_and_scale(x.reshape(4, -1, 4, 4), (1, 3)).reshape(x.shape), [image]),
        "mlp": (lambda x, w, b: jax.nn.gelu(x @ w) @ b + x, [x, w, back]),
        "dense": (lambda x, w: jax.nn.relu(x @ w), [x, w]),
        "cross_entropy": (lambda x, k: -jnp.take_along_axis(jax.nn.log_softmax(x), k[:, None], 1).mean(), [x, labels]),
        "one_hot_entropy": (lambda x, k: -(jax.nn.one_hot(k, x.shape[1], dtype=x.dtype) * jax.nn.log_softmax(x)).sum(1).mean(), [x, labels]),
        "max_pool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), [image]),
        "mean_pool": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9, [image]),
        "divergence": (lambda x: (jax.nn.softmax(x) * (jnp.log(jax.nn.softmax(x) + 1e-6) - jax.nn.log_softmax(x * 2))).sum(-1), [x]),
        "cosines": (lambda x: (x / jnp.linalg.norm(x, axis=-1, keepdims=True)) @ x.T, [few]),
        "distances": (lambda x: ((x[:, None, :8] - x[None, :, :8]) ** 2).sum(-1), [few]),
        "variation": (lambda x: jnp.abs(x[:, 1:] - x[:, :-1]).sum() + jnp.abs(x[:, :, 1:] - x[:, :, :-1]).sum(), [image]),
    }
    op = draw.choice(list(ops))
    f, values = ops[op]
    return (f"grad_{op}", gradient(f, values), values) if draw.random() < 0.5 else (op, f, values)


@family
def signals():
    n, side = size(50, 30000), draw.choice([50, 180])
    x, edges, taps, image = array((max(1, int(draw.choice([3e3, 3e5]) / n)), n)), np.sort(array((size(4, 200),))), array((size(3, 40),)), array((4, side, side + 3, 3))
    to, method, picks = size(3, 2 * side), draw.choice(["nearest", "linear", "cubic"]), places(2000, n)
    ops = {
        "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), [x]),
        "rfft": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2, n), [x]),
        "convolve": (lambda x, k: jax.vmap(lambda r: jnp.convolve(r, k, "same"))(x), [x, taps]),
        "resize": (lambda x: jax.image.resize(x, (4, to, to + 1, 3), method), [image]),
        "interp": (lambda x, e: jnp.interp(x, e, e * 2), [x, edges]),
        "digitize": (jnp.digitize, [x, edges]),
        "histogram": (lambda x: jnp.histogram(x, 20)[0], [x]),
        "percentiles": (lambda x: jnp.percentile(x, jnp.array([5.0, 50, 95]), axis=-1), [x]),
        "bincount": (lambda i: jnp.bincount(i, length=2000), [picks]),
        "covariance": (lambda x: jnp.cov(x[:200]), [x]),
        "frames": (lambda x: jax.vmap(lambda s: lax.dynamic_slice(x[0], (s,), (min(n, 40),)))(jnp.arange(0, max(1, n - 40), 10)), [x]),
        "second_difference": (lambda x: jnp.diff(x, 2), [x]),
        "moving_average": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 9), (1, 1), "SAME"), [x]),
        "linear_recurrence": (lambda x: lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x * 0.1, x), axis=1), [x]),
        "unique": (lambda i: jnp.unique(i, size=100), [picks]),
        "polynomial": (lambda x: jnp.polyval(jnp.arange(8.0), x), [x]),
        "nonzero": (lambda x: jnp.nonzero(x > 0, size=n)[0], [x]),
        "ranks": (lambda x: jnp.argsort(jnp.argsort(x, -1), -1), [x]),
    }
    op = draw.choice(list(ops))
    return op, *ops[op]


@family
def vectors():
    """Of lengths that few numbers divide"""
    n = size(1000, 2e6) | 1
    x, y = [array((n,), draw.choice(["f32"] * 4 + ["bf16"])) for _ in range(2)]
    ops = {
        "distance": lambda x, y: ((x - y) ** 2).mean(),
        "correlation": lambda x, y: (x @ y) / (jnp.linalg.norm(x) * jnp.linalg.norm(y)),
        "standard": lambda x, y: (x - x.mean()) / x.std(),
        "range": lambda x, y: (x - x.min()) / (y.max() - x.min()),
        "entropy": lambda x, y: -(jax.nn.softmax(x) * jax.nn.log_softmax(y)).sum(),
        "log_loss": lambda x, y: (jax.nn.softplus(x) - x * (y > 0)).mean(),
        "clipped": lambda x, y: x * jnp.minimum(1, 1 / jnp.sqrt((y * y).sum())),
        "count": lambda x, y: (x > y).sum(),
        "any": lambda x, y: jnp.isnan(x).any(),
        "steps": lambda x, y: jnp.abs(jnp.diff(x)).sum(),
        "places": lambda x, y: (x.argmin(), y.argmax()),
        "sums": lambda x, y: jnp.cumsum(x * y),
    }
    op = draw.choice(list(ops))
    return op, ops[op], [x, y]


UNARY = {
    "bell": lambda a: jnp.exp(-a * a),
    "tanh": jnp.tanh,
    "square": lambda a: a * a,
    "relu": jax.nn.relu,
    "log": lambda a: jnp.log1p(jnp.abs(a)),
    "sigmoid": jax.nn.sigmoid,
    "centre": lambda a: a - a.mean(-1, keepdims=True),
    "below": lambda a: a - a.max(1, keepdims=True),
    "rms": lambda a: a * lax.rsqrt((a * a).mean(-1, keepdims=True) + 1e-3),
    "columns": lambda a: a / (1e-3 + jnp.abs(a).max(0)),
    "roll0": lambda a: jnp.roll(a, 2, 0),
    "roll1": lambda a: jnp.roll(a, 1, 1),
    "flip": lambda a: a[:, ::-1],
    "sums": lambda a: jnp.cumsum(a, 1) * 0.1,
    "softmax0": lambda a: jax.nn.softmax(a, 0),
    "softmax1": lambda a: jax.nn.softmax(a, 1),
    "turn": lambda a: a.T.reshape(a.shape),
}
BINARY = {"add": jnp.add, "multiply": jnp.multiply, "subtract": jnp.subtract, "maximum": jnp.maximum, "divide": lambda a, b: a / (1 + b * b)}
ENDS = {"all": lambda a: a, "rows": lambda a: a.sum(0), "columns": lambda a: a.sum(1), "sum": lambda a: a.sum(), "max": lambda a: a.max(1), "place": lambda a: a.argmax(1)}


@family
def chains():
    """A few ops one after the other, on a matrix, what was made of it before, a column and a row"""
    while True:
        rows, columns = size(4, 1500), size(4, 1500)
        if rows * columns < 5e5:
            break
    values = [array((rows, columns)), array((rows, columns)), array((rows, 1)), array((columns,))]
    ops = [(draw.choice([*UNARY, *BINARY]), draw.randint(0, 3), draw.random()) for _ in range(draw.randint(3, 9))]
    end = draw.choice(list(ENDS))

    def f(*arguments):
        a, made = arguments[0], list(arguments[:2])
        for op, other, which in ops:
            b = arguments[other] if other > 1 else made[int(which * len(made))]
            a = UNARY[op](a) if op in UNARY else BINARY[op](a, b)
            made.append(a)
        return ENDS[end](a)

    name = "-".join(op for op, _, _ in ops) + ":" + end
    return (f"grad-{name}", gradient(f, values), values) if end != "place" and draw.random() < 0.25 else (name, f, values)


@family
def many_dimensions():
    rank = draw.choice([3, 4, 4, 5])
    sizes, kind, axes = shape(rank, 10 ** draw.uniform(3.5, 5.8)), draw.choice(["f32"] * 3 + ["bf16", "f16"]), list(range(rank))
    along, axis, order, by = tuple(sorted(draw.sample(axes, draw.randint(1, rank - 1)))), draw.choice(axes), draw.sample(axes, rank), draw.randint(1, 2)
    values = [array(sizes, kind), array(sizes, kind), array(tuple(draw.choice([n, 1]) for n in sizes), kind)]

    def steps(x):
        return lax.slice_in_dim(x, 1, x.shape[axis], axis=axis) - lax.slice_in_dim(x, 0, x.shape[axis] - 1, axis=axis)

    ops = {
        "norm": lambda x, y, u: mean_and_scale(x, along),
        "bias": lambda x, y, u: jax.nn.relu(x * u + y),
        "turned_sum": lambda x, y, u: x.transpose(order).sum(along),
        "turned": lambda x, y, u: x.transpose(order) * 2 + 1,
        "step_sum": lambda x, y, u: (steps(x) ** 2).sum(),
        "steps": lambda x, y, u: steps(x) * 2,
        "softmax": lambda x, y, u: jax.nn.softmax(x + u, axis),
        "logsumexp": lambda x, y, u: jax.nn.logsumexp(x * u, along),
        "joined_max": lambda x, y, u: jnp.concatenate([x, y], axis).max(along),
        "distance": lambda x, y, u: ((x - y) ** 2).mean(),
        "weighted": lambda x, y, u: (x * u).sum(along),
        "rolled": lambda x, y, u: (x * jnp.roll(y, by, axis)).sum(along),
        "place": lambda x, y, u: (x * u).argmax(axis),
        "sums": lambda x, y, u: jnp.cumsum(x * u, axis),
        "flip": lambda x, y, u: jnp.flip(x, axis) * u + y,
        "chosen": lambda x, y, u: jnp.where(u > 0, x, y).sum(along),
    }
    op = draw.choice(list(ops))
    if kind == "f32" and op != "place" and draw.random() < 0.3:
        return f"grad_{op}_{along}_{axis}", gradient(ops[op], values), values
    return f"{op}_{along}_{axis}", ops[op], values


@family
def integers():
    sizes, kind = shape(draw.choice([1, 2, 3])), draw.choice(["int32", "int32", "uint8", "uint32", "int8", "int16"])
    low, high = max(jnp.iinfo(kind).min, -10000), min(jnp.iinfo(kind).max, 10000)
    x, y = [numbers.randint(low, high, sizes).astype(kind) for _ in range(2)]
    ops = {
        "quotient": lambda x, y: x // jnp.where(y == 0, 1, y),
        "rest": lambda x, y: x % jnp.where(y == 0, 1, y),
        "by_seven": lambda x, y: (x // 10, x % 7),
        "bits": lambda x, y: (x ^ (y << 1), (x >> 3) | y, lax.population_count(x), lax.clz(x)),
        "products": lambda x, y: (x.astype("int32") * y.astype("int32")).sum(-1),
        "clipped": lambda x, y: jnp.clip(jnp.abs(x), 1, 50) + jnp.sign(y),
        "chosen": lambda x, y: jnp.where(x > y, x, y),
        "mean": lambda x, y: (x.astype("float32") / 255).mean(0),
        "rounded": lambda x, y: (x.astype("float32") * 0.5).astype(kind),
        "equal": lambda x, y: (x == y).sum(),
        "extremes": lambda x, y: (x.max(-1), y.argmin(-1)),
        "sums": lambda x, y: jnp.cumsum(x, -1),
    }
    op = draw.choice(list(ops))
    return f"{op}_{kind}", ops[op], [x, y]


@family
def complex_numbers():
    sizes = shape(draw.choice([1, 2, 3]))
    x, y = [(numbers.randn(*sizes) + 1j * numbers.randn(*sizes)).astype("complex64") for _ in range(2)]
    ops = {
        "product": lambda x, y: x * jnp.conj(y),
        "abs": lambda x, y: jnp.abs(x),
        "quotient": lambda x, y: x / y,
        "power": lambda x, y: x.real**2 + x.imag**2,
        "sum": lambda x, y: (x * y.conj()).sum(-1),
        "all": lambda x, y: (x * y).sum(),
        "angle": lambda x, y: jnp.angle(x),
        "exp": lambda x, y: jnp.exp(x * 0.1),
        "parts": lambda x, y: (x.real, y.imag),
        "turned": lambda x, y: x.T + 2,
        "rolled": lambda x, y: jnp.roll(x, 1, -1),
    }
    op = draw.choice(list(ops))
    return op, ops[op], [x, y]


CASES = cases([name for name in FAMILIES if name not in ELSEWHERE])
