"""More programs for collectives_cases.py: convolutional and recurrent networks, experts, pipelines, sequences, graphs, optimisers, and ops along dimensions that are cut."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def shape(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def mesh_of(**sizes):
    return Mesh(np.array(jax.devices()[: int(np.prod(list(sizes.values())))]).reshape(*sizes.values()), tuple(sizes))


MESH = mesh_of(d=4, m=2)


def at(*spec):
    return NamedSharding(MESH, P(*spec))


def constrain(x, *spec):
    return jax.lax.with_sharding_constraint(x, at(*spec))


def square(f):
    return lambda *a: (f(*a) ** 2).sum()


def jit(f, ins, outs=None):
    ins = jax.tree.map(lambda s: NamedSharding(MESH, s), ins, is_leaf=lambda s: isinstance(s, P))
    if outs is None:
        return jax.jit(f, in_shardings=ins)
    return jax.jit(f, in_shardings=ins, out_shardings=jax.tree.map(lambda s: NamedSharding(MESH, s), outs, is_leaf=lambda s: isinstance(s, P)))


# ---- convolutions ----------------------------------------------------------------------------------------------------

def convolution(stride=1, padding="SAME", groups=1, dilation=1, base=1):
    def f(x, k):
        return jax.lax.conv_general_dilated(x, k, (stride, stride), padding, lhs_dilation=(base, base), rhs_dilation=(dilation, dilation), feature_group_count=groups,
                                            dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return f


KERNELS = {  # (function, kernel)
    "3x3": (convolution(), (3, 3, 32, 64)), "1x1": (convolution(), (1, 1, 32, 64)), "5x5_strided": (convolution(2), (5, 5, 32, 64)), "valid": (convolution(padding="VALID"), (3, 3, 32, 64)),
    "dilated": (convolution(dilation=2), (3, 3, 32, 64)), "transposed": (convolution(padding=((1, 2), (1, 2)), base=2), (3, 3, 32, 64)), "grouped": (convolution(groups=4), (3, 3, 8, 64)),
    "depthwise": (convolution(groups=32), (3, 3, 1, 32)), "patches": (convolution(8, "VALID"), (8, 8, 32, 64)),
}
PLANS = {  # (image, kernel, result)
    "batch": (P("d"), P(), P("d")), "space": (P(None, "d"), P(), P(None, "d")), "outputs": (P(), P(None, None, None, "d"), P(None, None, None, "d")),
    "inputs": (P(None, None, None, "d"), P(None, None, "d"), P()), "kernel_alone": (P(), P(None, None, "d"), P()), "kernel_window": (P(), P("d"), P()),
    "batch_outputs": (P("d"), P(None, None, None, "m"), P("d", None, None, "m")), "batch_space": (P("d", "m"), P(), P("d", "m")),
    "batch_inputs": (P("d", None, None, "m"), P(None, None, "m"), P("d")), "fsdp": (P("d"), P(None, None, "d"), P("d")), "fsdp_outputs": (P("d"), P(None, None, None, "d"), P("d")),
}


def convolution_cases():
    image = shape(8, 64, 64, 32)
    for kernel, (f, dims) in KERNELS.items():
        for plan, (x, k, out) in PLANS.items():
            dims_of = {"d": 4, "m": 2}
            cut = [n % dims_of[a] == 0 if a else True for n, a in zip(dims, list(k) + [None] * 4)]
            if not all(cut):
                continue
            result = jax.eval_shape(f, image, shape(*dims))
            if not all(n % dims_of[a] == 0 if a else True for n, a in zip(result.shape, list(out) + [None] * 4)):
                continue
            yield f"conv_{kernel}_{plan}", jit(f, (x, k), out), (image, shape(*dims))
            yield f"conv_{kernel}_{plan}_gradient", jit(jax.grad(square(f), (0, 1)), (x, k), (x, k)), (image, shape(*dims))


def batch_norm(x, gain, bias):
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * gain + bias


def conv_net(weights, x):
    x = jax.nn.relu(convolution(2)(x, weights["stem"]))
    for block in weights["blocks"]:
        y = jax.nn.relu(batch_norm(convolution()(x, block["a"]), block["gain"], block["bias"]))
        x = jax.nn.relu(x + convolution()(y, block["b"]))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
    return x.mean((1, 2)) @ weights["head"]


def conv_net_cases():
    block = {"a": shape(3, 3, 32, 32), "b": shape(3, 3, 32, 32), "gain": shape(32), "bias": shape(32)}
    weights = {"stem": shape(3, 3, 4, 32), "blocks": [block] * 2, "head": shape(32, 16)}
    image, labels = shape(16, 64, 64, 4), shape(16, 16)

    def loss(w, x, y):
        return ((conv_net(w, x) - y) ** 2).mean()

    whole = jax.tree.map(lambda w: P(), weights)
    cut = {"stem": P(None, None, None, "m"), "blocks": [{"a": P(None, None, None, "m"), "b": P(None, None, "m"), "gain": P("m"), "bias": P("m")}] * 2, "head": P()}
    fsdp = {"stem": P(None, None, None, "d"), "blocks": [{"a": P(None, None, None, "d"), "b": P(None, None, None, "d"), "gain": P("d"), "bias": P("d")}] * 2, "head": P("d")}
    for plan, w, x, y in (("dp", whole, P(("d", "m")), P(("d", "m"))), ("space", whole, P("m", "d"), P("m")), ("tp", cut, P("d"), P("d")), ("fsdp", fsdp, P("d"), P("d"))):
        yield f"conv_net_{plan}", jit(conv_net, (w, x)), (weights, image)
        yield f"conv_net_{plan}_gradient", jit(jax.value_and_grad(loss), (w, x, y), (P(), w)), (weights, image, labels)

    def u_net(x, k):
        down = jax.nn.relu(convolution(2)(x, k))
        up = jax.image.resize(down, x.shape, "nearest")
        return convolution()(jnp.concatenate([x, up], -1)[..., ::2], k)

    for plan, x in (("batch", P("d")), ("space", P(None, "d"))):
        yield f"u_net_{plan}_gradient", jit(jax.grad(square(u_net), (0, 1)), (x, P()), (x, P())), (shape(8, 32, 32, 32), shape(3, 3, 32, 32))


# ---- sequences -------------------------------------------------------------------------------------------------------

def attention(q, k, v):
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k)), v)


def sequence_cases():
    x, w = shape(4, 256, 8, 32), shape(256, 8, 32)
    for plan, spec in (("queries", (P(None, "d"), P(), P())), ("length", (P(None, "d"),) * 3), ("keys", (P(), P(None, "d"), P(None, "d"))), ("heads", (P(None, None, "d"),) * 3),
                       ("batch_heads", (P("d", None, "m"),) * 3), ("inside", (P(None, None, None, "d"),) * 3)):
        yield f"attention_{plan}", jit(attention, spec, spec[0]), (x, x, x)
        yield f"attention_{plan}_gradient", jit(jax.grad(square(attention), (0, 1, 2)), spec, spec), (x, x, x)

    def ulysses(x, wq, wk, wv, wo):
        q, k, v = (constrain(jnp.einsum("btd,dhe->bthe", x, w), None, None, "d") for w in (wq, wk, wv))
        return jnp.einsum("bthe,dhe->btd", constrain(attention(q, k, v), None, "d"), wo)

    def megatron(x, wq, wk, wv, wo):
        h = constrain(x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True)), None, None, None)
        q, k, v = (jnp.einsum("btd,dhe->bthe", h, w) for w in (wq, wk, wv))
        return x + constrain(jnp.einsum("bthe,dhe->btd", attention(q, k, v), wo), None, "d")

    tokens = shape(4, 256, 256)
    for name, f, weights in (("ulysses", ulysses, P()), ("megatron", megatron, P(None, "d"))):
        spec = (P(None, "d"),) + (weights,) * 4
        yield f"{name}_forward", jit(f, spec, P(None, "d")), (tokens, w, w, w, w)
        yield f"{name}_gradient", jit(jax.grad(square(f), (0, 1, 2, 3, 4)), spec, spec), (tokens, w, w, w, w)

    def lstm(w, u, x):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ w + h @ u, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zeros = jnp.zeros((x.shape[1], u.shape[0]))
        return jax.lax.scan(step, (zeros, zeros), x)[1]

    def gru(w, u, x):
        def step(h, x):
            z = jax.nn.sigmoid(x @ w + h @ u)
            return z * h + (1 - z) * jnp.tanh(h), h
        return jax.lax.scan(step, jnp.zeros((x.shape[1], u.shape[0])), x)[1]

    for plan, (w, u, x) in {"dp": (P(), P(), P(None, "d")), "tp": (P(None, "d"), P(None, "d"), P()), "rows": (P("d"), P("d"), P(None, None, "d")),
                            "fsdp": (P("d"), P("d"), P(None, "d"))}.items():
        for name, f, gates in (("lstm", lstm, 4), ("gru", gru, 1)):
            arguments = (shape(64, gates * 128), shape(128, gates * 128), shape(32, 16, 64))
            yield f"{name}_{plan}", jit(f, (w, u, x)), arguments
            yield f"{name}_{plan}_gradient", jit(jax.grad(square(f), (0, 1)), (w, u, x), (w, u)), arguments

    def state_space(a, b, x):
        return jax.lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (jnp.exp(a) * jnp.ones_like(x), b * x), axis=1)[1]

    for plan, x in (("batch", P("d")), ("length", P(None, "d")), ("width", P(None, None, "d"))):
        yield f"state_space_{plan}", jit(state_space, (P(), P(), x), x), (shape(64), shape(64), shape(4, 128, 64))


# ---- experts, pipelines, accumulated gradients -----------------------------------------------------------------------

def mixture(x, router, up, down, capacity=16):
    gates = jax.nn.softmax(x @ router)
    places = jnp.cumsum(jax.nn.one_hot(gates.argmax(-1), gates.shape[-1]), 1)
    dispatch = jax.nn.one_hot(places - 1, capacity) * jax.nn.one_hot(gates.argmax(-1), gates.shape[-1])[..., None]
    inside = constrain(jnp.einsum("gsd,gsec->egcd", x, dispatch), "d")
    hidden = jax.nn.relu(jnp.einsum("egcd,edf->egcf", inside, up))
    outside = constrain(jnp.einsum("egcf,efd->egcd", hidden, down), None, "d")
    return jnp.einsum("egcd,gsec->gsd", outside, dispatch * gates[..., None])


def pipeline_cases():
    spec = (P("d"), P(), P("d"), P("d"))
    arguments = (shape(8, 64, 128), shape(128, 8), shape(8, 128, 256), shape(8, 256, 128))
    yield "mixture_forward", jit(mixture, spec, P("d")), arguments
    yield "mixture_gradient", jit(jax.grad(square(mixture), (0, 1, 2, 3)), spec, spec), arguments
    wide = (P("d"), P(), P("d", None, "m"), P("d", "m"))
    yield "mixture_tp_forward", jit(mixture, wide, P("d")), arguments
    yield "mixture_tp_gradient", jit(jax.grad(square(mixture), (0, 1, 2, 3)), wide, wide), arguments

    def stages(w, x):  # the stages are a dimension that is cut; what is in them moves on
        def tick(state, x):
            state = jnp.concatenate([x[None], state[:-1]])
            state = constrain(jax.nn.relu(jnp.einsum("sbd,sde->sbe", state, w)), "d")
            return state, state[-1]
        return jax.lax.scan(tick, jnp.zeros((w.shape[0], *x.shape[1:])), x)[1]

    def rolled(w, x):
        def tick(state, x):
            state = jnp.roll(state, 1, 0).at[0].set(x)
            state = constrain(jnp.tanh(jnp.einsum("sbd,sde->sbe", state, w)), "d")
            return state, state[-1]
        return jax.lax.scan(tick, jnp.zeros((w.shape[0], *x.shape[1:])), x)[1]

    for name, f in (("stages", stages), ("stages_rolled", rolled)):
        yield f"{name}_forward", jit(f, (P("d"), P())), (shape(4, 64, 64), shape(12, 16, 64))
        yield f"{name}_gradient", jit(jax.grad(square(f)), (P("d"), P()), P("d")), (shape(4, 64, 64), shape(12, 16, 64))

    def layers(w, x):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w)[0]

    def accumulated(w, x):  # of several small batches
        def step(total, x):
            return jax.tree.map(jnp.add, total, jax.grad(lambda w: (layers(w, x) ** 2).sum())(w)), None
        return jax.lax.scan(step, jnp.zeros_like(w), x)[0]

    def accumulated_once(w, x):
        def step(total, x):
            return total + jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w), None
        return jax.lax.scan(step, jnp.zeros_like(w), x)[0]

    for plan, (w, x) in {"dp": (P(), P(None, "d")), "fsdp": (P(None, "d"), P(None, "d")), "tp": (P(None, None, "m"), P(None, "d"))}.items():
        yield f"accumulated_{plan}", jit(accumulated, (w, x), w), (shape(4, 128, 128), shape(6, 32, 128))
        yield f"accumulated_once_{plan}", jit(accumulated_once, (P(*w[1:]), x), P(*w[1:])), (shape(128, 128), shape(6, 32, 128))

    def adam(w, m, v, x, y):
        g = jax.grad(lambda w: ((jnp.tanh(x @ w) - y) ** 2).mean())(w)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return w - m / (jnp.sqrt(v) + 1e-8), m, v

    wide, rows = shape(256, 256), shape(64, 256)
    for plan, (w, m) in {"zero1": (P(), P("d")), "zero3": (P("d"), P("d")), "tp": (P(None, "m"), P(None, "m"))}.items():
        yield f"adam_{plan}", jit(adam, (w, m, m, P("d"), P("d")), (w, m, m)), (wide, wide, wide, rows, rows)

    def clipped(w, x):
        g = jax.grad(lambda w: sum((jnp.tanh(x @ a) ** 2).mean() for a in w))(w)
        norm = jnp.sqrt(sum((a * a).sum() for a in g))
        return [a / jnp.maximum(norm, 1) for a in g]

    for plan, w in (("fsdp", P("d")), ("tp", P(None, "m"))):
        yield f"clipped_{plan}", jit(clipped, ([w] * 3, P("d")), [w] * 3), ([wide] * 3, rows)


# ---- tables, graphs, sorts -------------------------------------------------------------------------------------------

def indexed_cases():
    nodes, edges = shape(512, 64), shape(4096, dtype=jnp.int32)

    def messages(x, a, b, w):
        return jax.nn.relu(jax.ops.segment_sum(x[a] @ w, b, 512))

    for plan, (x, e) in {"edges": (P(), P("d")), "nodes": (P("d"), P()), "both": (P("d"), P("d")), "features": (P(None, "d"), P())}.items():
        yield f"graph_{plan}", jit(messages, (x, e, e, P()), x), (nodes, edges, edges, shape(64, 64))
        yield f"graph_{plan}_gradient", jit(jax.grad(square(messages), (0, 3)), (x, e, e, P()), (x, P())), (nodes, edges, edges, shape(64, 64))
    logits, labels = shape(32, 64, 1024), shape(32, 64, dtype=jnp.int32)

    def entropy(x, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(x), y[..., None], -1).mean()

    for plan, (x, y) in {"batch": (P("d"), P("d")), "words": (P(None, None, "d"), P()), "both": (P("d", None, "m"), P("d")), "length": (P(None, "d"), P(None, "d"))}.items():
        yield f"entropy_{plan}", jit(entropy, (x, y)), (logits, labels)
        yield f"entropy_{plan}_gradient", jit(jax.grad(entropy), (x, y), x), (logits, labels)
    x, index, rows = shape(512, 256), shape(64, dtype=jnp.int32), shape(64, 256)
    for plan, spec in (("rows", P("d")), ("columns", P(None, "d")), ("2d", P("d", "m"))):
        for name, f, arguments, ins in (
                ("take", lambda x, i: x[i], (x, index), (spec, P())), ("take_columns", lambda x, i: x[:, i], (x, index), (spec, P())),
                ("put", lambda x, i, u: x.at[i].set(u), (x, index, rows), (spec, P(), P())), ("add_at", lambda x, i, u: x.at[i].add(u), (x, index, rows), (spec, P(), P())),
                ("add_cut", lambda x, i, u: x.at[i].add(u), (x, index, rows), (spec, P("d"), P("d"))), ("take_along", lambda x, i: jnp.take_along_axis(x, i[None].repeat(512, 0), 1), (x, index), (spec, P())),
                ("top_k", lambda x: jax.lax.top_k(x, 8), (x,), (spec,)), ("sort", lambda x: jnp.sort(x, 1), (x,), (spec,)), ("sort_down", lambda x: jnp.sort(x, 0), (x,), (spec,)),
                ("argsort", lambda x: jnp.argsort(x, 1), (x,), (spec,)), ("median", lambda x: jnp.median(x, 1), (x,), (spec,)), ("cumulative", lambda x: jnp.cumsum(x, 1), (x,), (spec,)),
                ("cumulative_max", lambda x: jax.lax.cummax(x, 0), (x,), (spec,)), ("argmax", lambda x: jnp.argmax(x, 1), (x,), (spec,)), ("argmin_all", lambda x: jnp.argmin(x), (x,), (spec,)),
                ("fourier", lambda x: jnp.fft.fft(x).real, (x,), (spec,)), ("rolled", lambda x: jnp.roll(x, 3, 0), (x,), (spec,)), ("difference", lambda x: jnp.diff(x, axis=0), (x,), (spec,)),
                ("flattened", lambda x: x.reshape(-1) * 2, (x,), (spec,)), ("split", lambda x: x.reshape(8, 64, 16, 16).sum((1, 3)), (x,), (spec,)),
                ("turned", lambda x: x.reshape(8, 64, 256).transpose(1, 0, 2).reshape(512, 256), (x,), (spec,)), ("tiled", lambda x: jnp.tile(x, (2, 2)), (x,), (spec,)),
                ("repeated", lambda x: jnp.repeat(x, 2, 0), (x,), (spec,)), ("odd_rows", lambda x: x[1::2] - x[::2], (x,), (spec,)), ("triangle", lambda x: jnp.tril(x) @ x.T, (x,), (spec,)),
                ("gram", lambda x: x @ x.T, (x,), (spec,)), ("covariance", lambda x: x.T @ x, (x,), (spec,)), ("norm", lambda x: x / jnp.linalg.norm(x), (x,), (spec,)),
                ("stacked", lambda x: jnp.stack([x, 2 * x], 1).reshape(1024, 256), (x,), (spec,)), ("window", lambda x: jax.lax.dynamic_slice(x, (128, 64), (128, 64)), (x,), (spec,)),
                ("moved_window", lambda x, i: jax.lax.dynamic_slice(x, (i[0], 0), (16, 256)), (x, index), (spec, P())),
                ("written_window", lambda x, i, u: jax.lax.dynamic_update_slice(x, u, (i[0], 0)), (x, index, rows), (spec, P(), P())),
                ("histogram", lambda x: jnp.zeros(64).at[(jnp.abs(x) * 7).astype(jnp.int32) % 64].add(1.0), (x,), (spec,)), ("where", lambda x: jnp.where(x > x.mean(), x, 0).sum(0), (x,), (spec,)),
                ("noise", lambda x: x + jax.random.normal(jax.random.key(0), x.shape), (x,), (spec,)), ("power", lambda x: jax.lax.fori_loop(0, 5, lambda i, v: (lambda y: y / jnp.linalg.norm(y))(x.T @ (x @ v)), jnp.ones(256)), (x,), (spec,)),
                ("kernel", lambda x: jnp.exp(-((x[:, None] - x[None]) ** 2).sum(-1)), (x,), (spec,)), ("means", lambda x: jax.lax.fori_loop(0, 4, k_means(x), x[:16]), (x,), (spec,))):
            if name == "kernel":
                arguments = (shape(128, 64),)
            yield f"{name}_{plan}", jit(f, ins), arguments


def k_means(x):
    def step(_, centres):
        nearest = jnp.argmin(((x[:, None] - centres[None]) ** 2).sum(-1), -1)
        chosen = jax.nn.one_hot(nearest, centres.shape[0])
        return (chosen.T @ x) / jnp.maximum(chosen.sum(0)[:, None], 1)
    return step


# ---- pieces that are not of equal size, and dimensions with fewer elements than pieces -------------------------------

def uneven_cases():
    x, w = shape(10, 64), shape(64, 64)

    def carried(x, w):
        return jax.lax.fori_loop(0, 10, lambda i, x: constrain(jnp.tanh(constrain(x, "d") @ w), "d"), x)

    def turned(x, w):
        return jax.lax.fori_loop(0, 10, lambda i, x: constrain(jnp.tanh(constrain(x, "d") @ w), "m"), x)

    def invariant(x, w):
        return jax.lax.fori_loop(0, 10, lambda i, s: (s[0] + constrain(s[1], "m").sum(0), s[1]), (jnp.zeros(64), constrain(x, "d")))[0]

    for name, f in (("carried", carried), ("carried_turned", turned), ("carried_invariant", invariant)):
        yield f"uneven_{name}", jit(f, (P(), P())), (x, w)
    small = shape(2, 3, 64)
    for name, spec in (("first", ("d",)), ("second", (None, "d")), ("both", ("d", "m")), ("joint", (("d", "m"),)), ("all", ("d", "m", None))):
        yield f"small_{name}", jit(lambda x, s=spec: constrain(x * 2, *s) + 1, (P(),), P()), (small,)
        yield f"small_{name}_dot", jit(lambda x, w, s=spec: constrain(x * 2, *s) @ w, (P(), P()), P()), (small, w)
        yield f"small_{name}_sum", jit(lambda x, s=spec: constrain(x * 2, *s).sum(0), (P(),), P()), (small,)
    for name, f in (("roll", lambda x: jnp.roll(constrain(x, "d"), 1, 0)), ("pad", lambda x: jnp.pad(constrain(x, "d"), ((1, 1), (0, 0)))), ("slice", lambda x: constrain(x, "d")[1:9]),
                    ("join", lambda x: jnp.concatenate([constrain(x, "d"), x])), ("mean", lambda x: constrain(x, "d").mean(0)), ("sort", lambda x: jnp.sort(constrain(x, "d"), 0)),
                    ("softmax", lambda x: jax.nn.softmax(constrain(x, "d"), 0)), ("turn", lambda x: constrain(constrain(x, "d"), None, "d")), ("gram", lambda x: constrain(x, "d") @ constrain(x, "d").T)):
        yield f"uneven_{name}", jit(f, (P(),)), (x,)


def cases():
    yield from convolution_cases()
    yield from conv_net_cases()
    yield from sequence_cases()
    yield from pipeline_cases()
    yield from indexed_cases()
    yield from uneven_cases()
