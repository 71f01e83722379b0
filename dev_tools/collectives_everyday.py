"""More programs for collectives_cases.py, as people write them every day: regions that are manual along some axes only, losses over cut words, routed tokens, norms over
batches, sums by segment, solvers, and updates of single elements."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from collectives_models import MESH, at, constrain, convolution, jit, shape, square


def region(f, ins, outs, axis="d"):
    """Manual along one axis, the other is left to the compiler."""
    return jax.shard_map(f, mesh=MESH, in_specs=ins, out_specs=outs, axis_names={axis}, check_vma=False)


def grad(f, count):
    return jax.grad(square(f), tuple(range(count)))


# ---- regions that are manual along "d", and cut along "m" by the compiler -----------------------------------------------

def region_cases():
    x, up, down = shape(64, 256), shape(256, 512), shape(512, 256)
    plan = (P("d"), P(None, "m"), P("m"))
    inside = (P("d"), P(), P())

    def perceptron(x, up, down):
        return jax.nn.relu(x @ up) @ down

    def averaged(x, up, down):
        g = jax.grad(lambda a, b: (perceptron(x, a, b) ** 2).sum(), (0, 1))(up, down)
        return jax.tree.map(lambda v: jax.lax.pmean(v, "d"), g)

    def ring(x, up, down):
        around = [(k, (k + 1) % 4) for k in range(4)]

        def trip(_, s):
            total, moved = s
            return total + perceptron(moved, up, down), jax.lax.ppermute(moved, "d", around)
        return jax.lax.fori_loop(0, 4, trip, (jnp.zeros_like(x), x))[0]

    def gathered(x, up, down):
        whole = jax.lax.all_gather(x, "d", axis=0, tiled=True)
        return jax.lax.psum_scatter(perceptron(whole, up, down), "d", scatter_dimension=0, tiled=True)

    def exchanged(x, up, down):
        parts = jax.lax.all_to_all(x.reshape(4, 4, 256), "d", 0, 0, tiled=True)
        return perceptron(parts, up, down).reshape(16, 256)

    yield "region_forward", jit(region(perceptron, inside, P("d")), plan), (x, up, down)
    yield "region_gradient", jit(region(averaged, inside, (P(), P())), plan, (P(None, "m"), P("m"))), (x, up, down)
    yield "region_outer_gradient", jit(grad(region(perceptron, inside, P("d")), 3), plan, plan), (x, up, down)
    for name, f in (("ring", ring), ("gathered", gathered), ("exchanged", exchanged)):
        yield f"region_{name}", jit(region(f, inside, P("d")), plan), (x, up, down)

    stages = shape(4, 256, 256), shape(4, 256, 256)

    def pipeline(w, v, x):
        def step(state, x):
            first = jax.lax.axis_index("d") == 0
            state = jnp.where(first, x, state)
            state = jax.nn.relu(state @ w[0]) @ v[0]
            return jax.lax.ppermute(state, "d", [(k, (k + 1) % 4) for k in range(4)]), state
        return jax.lax.scan(step, jnp.zeros(x.shape[1:]), x)[1][None]

    run = region(pipeline, (P("d"), P("d"), P()), P("d"))
    yield "region_pipeline", jit(run, (P("d", None, "m"), P("d", "m"), P())), (*stages, shape(8, 16, 256))
    yield "region_pipeline_gradient", jit(grad(run, 2), (P("d", None, "m"), P("d", "m"), P()), (P("d", None, "m"), P("d", "m"))), (*stages, shape(8, 16, 256))

    def heads(q, k, v):
        k, v = (jax.lax.all_gather(t, "d", axis=1, tiled=True) for t in (k, v))
        return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k)), v)

    spec = (P(None, "d", "m"),) * 3
    yield "region_attention", jit(region(heads, (P(None, "d"),) * 3, P(None, "d")), spec), (shape(4, 128, 8, 32),) * 3


# ---- experts, words, sequences -------------------------------------------------------------------------------------------

def routed(x, router, up, down, capacity=32):
    """The best two experts of each token, by places in their queues."""
    gates, chosen = jax.lax.top_k(jax.nn.softmax(x @ router), 2)
    one_hot = jax.nn.one_hot(chosen, router.shape[-1])
    places = jnp.cumsum(one_hot.reshape(x.shape[0], -1, router.shape[-1]), 1).reshape(one_hot.shape) * one_hot
    dispatch = jax.nn.one_hot(places.max(-1) - 1, capacity)
    inside = constrain(jnp.einsum("gsd,gske,gskc->egcd", x, one_hot, dispatch), "d")
    outside = constrain(jnp.einsum("egcf,efd->egcd", jax.nn.silu(jnp.einsum("egcd,edf->egcf", inside, up)), down), None, "d")
    return jnp.einsum("egcd,gske,gskc,gsk->gsd", outside, one_hot, dispatch, gates)


def model_cases():
    spec = (P("d"), P(), P("d"), P("d"))
    arguments = (shape(8, 64, 128), shape(128, 8), shape(8, 128, 256), shape(8, 256, 128))
    yield "routed_forward", jit(routed, spec, P("d")), arguments
    yield "routed_gradient", jit(grad(routed, 4), spec, spec), arguments

    def words(x, table, y):
        logits = jax.nn.log_softmax(x @ table.T)
        return -jnp.take_along_axis(logits, y[..., None], -1).mean()

    def words_by_hand(x, table, y):
        logits = x @ table.T
        chosen = jnp.where(jnp.arange(table.shape[0]) == y[..., None], logits, 0).sum(-1)
        return (jax.nn.logsumexp(logits, -1) - chosen).mean()

    arguments = (shape(16, 32, 128), shape(1024, 128), shape(16, 32, dtype=jnp.int32))
    for name, f in (("words", words), ("words_by_hand", words_by_hand)):
        for plan, spec in (("tp", (P(), P("m"), P())), ("2d", (P("d"), P("m"), P("d"))), ("fsdp", (P("d"), P("d"), P("d")))):
            yield f"{name}_{plan}", jit(f, spec), arguments
            yield f"{name}_{plan}_gradient", jit(jax.grad(f, (0, 1)), spec, spec[:2]), arguments

    def normed(w, gain, x):
        y = convolution()(x, w)
        y = (y - y.mean((0, 1, 2))) * jax.lax.rsqrt(y.var((0, 1, 2)) + 1e-5) * gain
        return jax.lax.reduce_window(jax.nn.relu(y), 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    for plan, x in (("batch", P("d")), ("space", P(None, "d")), ("both", P("d", "m"))):
        yield f"normed_{plan}_gradient", jit(grad(normed, 2), (P(), P(), x), (P(), P())), (shape(3, 3, 8, 16), shape(16), shape(8, 32, 32, 8))

    def lstm_layers(ws, x):
        for w in ws:
            def step(state, x, w=w):
                h, c = state
                i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w, 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                return (jax.nn.sigmoid(o) * jnp.tanh(c),) * 2, jax.nn.sigmoid(o) * jnp.tanh(c)
            zeros = jnp.zeros((x.shape[1], 64))
            x = jax.lax.scan(step, (zeros, zeros), x)[1]
        return x

    for plan, w, x in (("dp", P(), P(None, "d")), ("tp", P(None, "m"), P(None, "d")), ("rows", P("m"), P(None, "d"))):
        yield f"lstm_layers_{plan}_gradient", jit(grad(lstm_layers, 1), ([w] * 2, x), ([w] * 2,)), ([shape(128, 256)] * 2, shape(12, 16, 64))

    def windowed(q, k, v):  # each block of the sequence sees itself and the one before
        q, k, v = (t.reshape(t.shape[0], 16, 16, *t.shape[2:]) for t in (q, k, v))
        k, v = (jnp.concatenate([jnp.pad(t, ((0, 0), (1, 0)) + ((0, 0),) * 3)[:, :-1], t], 2) for t in (k, v))
        out = jnp.einsum("bnhqk,bnkhd->bnqhd", jax.nn.softmax(jnp.einsum("bnqhd,bnkhd->bnhqk", q, k)), v)
        return out.reshape(out.shape[0], 256, *out.shape[3:])

    for plan, spec in (("length", P(None, "d")), ("batch_heads", P("d", None, "m")), ("length_heads", P(None, "d", "m"))):
        yield f"windowed_{plan}", jit(windowed, (spec,) * 3, spec), (shape(4, 256, 4, 32),) * 3
        yield f"windowed_{plan}_gradient", jit(grad(windowed, 3), (spec,) * 3, (spec,) * 3), (shape(4, 256, 4, 32),) * 3


# ---- arrays --------------------------------------------------------------------------------------------------------------

def array_cases():
    x, ids = shape(512, 64), shape(512, dtype=jnp.int32)
    for plan, (s, i) in {"rows": (P("d"), P("d")), "columns": (P(None, "d"), P()), "both": (P("d", "m"), P("d"))}.items():
        for name, f in (("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 32)), ("segment_max", lambda x, i: jax.ops.segment_max(x, i, 32)),
                        ("segment_mean", lambda x, i: jax.ops.segment_sum(x, i, 32) / jnp.maximum(jax.ops.segment_sum(jnp.ones(512), i, 32), 1)[:, None]),
                        ("bincount", lambda x, i: jnp.bincount(i, x[:, 0], length=32)), ("sorted_by", lambda x, i: x[jnp.argsort(i)]),
                        ("top_rows", lambda x, i: x[jax.lax.top_k(x[:, 0], 16)[1]]), ("masked", lambda x, i: jnp.where((i > 3)[:, None], x, 0).mean(0)),
                        ("running", lambda x, i: jnp.cumsum(x, 0)), ("running_back", lambda x, i: jnp.cumsum(x[::-1], 0)[::-1]), ("quantile", lambda x, i: jnp.quantile(x, 0.3, axis=0)),
                        ("logsumexp", lambda x, i: jax.nn.logsumexp(x, 0)), ("updated", lambda x, i: x.at[i[:8]].add(1.0)), ("element", lambda x, i: x.at[3, 5].set(2.0)),
                        ("row", lambda x, i: x.at[i[0]].multiply(2.0)), ("column", lambda x, i: x.at[:, 3].set(0.0)), ("block", lambda x, i: x.at[64:128].set(0.0)),
                        ("first", lambda x, i: x[0]), ("last", lambda x, i: x[-1]), ("every_fourth", lambda x, i: x[::4]), ("flipped", lambda x, i: x[::-1] + x),
                        ("pairs", lambda x, i: jnp.einsum("id,jd->ij", x, x)), ("distances", lambda x, i: ((x[:, None] - x[None]) ** 2).sum(-1).min(1)),
                        ("standard", lambda x, i: (x - x.mean(0)) / (x.std(0) + 1e-6)), ("one_hot", lambda x, i: jax.nn.one_hot(i, 64) @ x.T), ("stack", lambda x, i: jnp.stack([x, x + 1])),
                        ("chunks", lambda x, i: jax.lax.map(lambda c: c @ c.T, x.reshape(16, 32, 64))), ("unique", lambda x, i: jnp.unique(i, size=32)),
                        ("search", lambda x, i: jnp.searchsorted(jnp.sort(x[:, 0]), x[:, 1]))):
            yield f"{name}_{plan}", jit(f, (s, i)), (x, ids)
    a, b = shape(16, 32, 32), shape(16, 32, 8)
    for plan, s in (("batch", P("d")), ("rows", P(None, "d"))):
        for name, f in (("cholesky", lambda a, b: jnp.linalg.cholesky(a)), ("solve", jnp.linalg.solve), ("inverse", lambda a, b: jnp.linalg.inv(a)),
                        ("triangular", lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)), ("qr", lambda a, b: jnp.linalg.qr(a)[0]),
                        ("determinant", lambda a, b: jnp.linalg.det(a)), ("powers", lambda a, b: jnp.linalg.matrix_power(a, 3)), ("norms", lambda a, b: jnp.linalg.norm(a, axis=(1, 2)))):
            yield f"{name}_{plan}", jit(f, (s, s)), (a, b)
    for name, text, ins, shapes in (
            ("two_batches", "abij,abjk->abik", (P("d", "m"), P("d", "m")), ((8, 4, 32, 32), (8, 4, 32, 32))), ("batches_apart", "abij,abjk->abik", (P("d"), P(None, "m")), ((8, 4, 32, 32), (8, 4, 32, 32))),
            ("batch_moved", "abij,jk->baik", (P("d"), P(None, "m")), ((8, 4, 32, 32), (32, 64))), ("contracted_both", "ij,ij->", (P("d", "m"), P("d", "m")), ((64, 64), (64, 64))),
            ("outer", "i,j->ij", (P("d"), P("m")), ((256,), (256,))), ("bilinear", "bi,ijk,bj->bk", (P("d"), P(None, None, "m"), P("d")), ((32, 16), (16, 16, 64), (32, 16)))):
        arguments = shapes if name != "bilinear" else shapes
        yield f"einsum_{name}", jit(lambda *a, text=text: jnp.einsum(text, *a), ins), tuple(shape(*s) for s in arguments)

    def centres(x, c):
        def step(_, c):
            near = jnp.argmin(((x[:, None] - c[None]) ** 2).sum(-1), -1)
            return jax.ops.segment_sum(x, near, 16) / jnp.maximum(jax.ops.segment_sum(jnp.ones(x.shape[0]), near, 16), 1)[:, None]
        return jax.lax.fori_loop(0, 5, step, c)

    def regression(x, y):
        def step(_, w):
            return w - 0.1 * x.T @ (jax.nn.sigmoid(x @ w) - y) / x.shape[0]
        return jax.lax.fori_loop(0, 10, step, jnp.zeros(x.shape[1]))

    def conjugate(x, y):  # of the normal equations
        def step(_, s):
            w, r, p = s
            q = x.T @ (x @ p)
            a = (r @ r) / (p @ q)
            new = r - a * q
            return w + a * p, new, new + (new @ new) / (r @ r) * p
        r = x.T @ y
        return jax.lax.fori_loop(0, 8, step, (jnp.zeros_like(r), r, r))[0]

    for plan, s in (("rows", P("d")), ("2d", P("d", "m"))):
        yield f"centres_{plan}", jit(centres, (s, P())), (x, shape(16, 64))
        yield f"regression_{plan}", jit(regression, (s, P("d"))), (x, shape(512))
        yield f"conjugate_{plan}", jit(conjugate, (s, P("d"))), (x, shape(512))
    sums = shape(64, 64, 64)
    for plan, s in (("planes", P("d")), ("pencils", P("d", "m"))):
        yield f"heat_{plan}", jit(lambda u: jax.lax.fori_loop(0, 4, lambda _, u: u + 0.1 * sum(jnp.roll(u, k, d) for k in (1, -1) for d in range(3)) - 0.6 * u, u), (s,), s), (sums,)
        yield f"heat_edges_{plan}", jit(lambda u: jax.lax.fori_loop(0, 4, lambda _, u: u.at[1:-1, 1:-1, 1:-1].add(
            0.1 * (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1] - 4 * u[1:-1, 1:-1, 1:-1])), u), (s,), s), (sums,)
        yield f"fourier3_{plan}", jit(lambda u: jnp.fft.ifftn(jnp.fft.fftn(u) * 2).real, (s,), s), (sums,)


def cases():
    yield from region_cases()
    yield from model_cases()
    yield from array_cases()
