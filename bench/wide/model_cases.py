"""Programs of our own for the side-by-side benchmark: group model.

They stand for the classes of programs that the public cases only sample: attention of
other head counts, masks and layouts (attention_cases.py), and forward passes and training steps of many kinds
of networks in odd sizes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from attention_cases import attend
from sxs.registry import Registrar

case = Registrar("held_out")

# helpers ----------------------------------------------------------------------------------


def dense(p, x):
    return x @ p["w"] + p["b"]


def layer_norm(p, x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * p["g"] + p["b"]


def rms_norm(scale, x):
    y = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return (y * lax.rsqrt(jnp.square(y).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


def xent(logits, y):
    hot = nn.one_hot(y, logits.shape[-1], dtype=logits.dtype)
    return -(hot * nn.log_softmax(logits)).sum(-1).mean()


def bce(logit, y):
    return jnp.mean(jnp.maximum(logit, 0) - logit * y + jnp.log1p(jnp.exp(-jnp.abs(logit))))


def train(loss, p, *batch, rate=0.02):
    value, grads = jax.value_and_grad(loss)(p, *batch)
    return jax.tree.map(lambda p, g: p - jnp.asarray(rate, p.dtype) * g, p, grads), value


def moments(g, p):
    """Moments as after some steps, so that an update does not divide by rounding noise."""
    return (jax.tree.map(lambda x: g.normal(*x.shape, scale=1e-2), p),
            jax.tree.map(lambda x: g.uniform(*x.shape, lo=1e-3, hi=1e-2), p))  # fmt: skip


def adamw(loss, p, m, v, count, *batch, rate=1e-3):
    value, grads = jax.value_and_grad(loss)(p, *batch)
    norm = jnp.sqrt(sum(jnp.square(g).sum() for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), grads)
    count = count + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, grads)
    a, b = 1 - 0.9**count, 1 - 0.999**count
    p = jax.tree.map(lambda p, m, v: p - rate * (m / a / (jnp.sqrt(v / b) + 1e-8) + 0.01 * p), p, m, v)
    return p, m, v, count, value


def with_adam(params, *batch):
    def make(g):
        p = params(g)
        return p, *moments(g, p), np.int32(10), *(b(g) for b in batch)

    return make


def mlp_params(*sizes):
    return lambda g: [g.dense(a, b) for a, b in zip(sizes[:-1], sizes[1:])]


def mlp(p, x, act=nn.relu):
    for layer in p[:-1]:
        x = act(dense(layer, x))
    return dense(p[-1], x)


def conv(x, w, stride=1, pad="SAME", groups=1, layout=("NHWC", "HWIO", "NHWC")):
    return lax.conv_general_dilated(x, w, (stride,) * (x.ndim - 2), pad, dimension_numbers=layout,
                                    feature_group_count=groups)  # fmt: skip


NCHW = ("NCHW", "OIHW", "NCHW")


def pool(x, k=2, op=lax.max, init=-jnp.inf):
    return lax.reduce_window(x, init, op, (1, k, k, 1), (1, k, k, 1), "VALID")


def upsample(x):
    return jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)


def group_norm(p, x, groups=8):
    y = x.reshape(*x.shape[:-1], groups, -1)
    axes = (*range(1, x.ndim - 1), x.ndim)
    y = (y - y.mean(axes, keepdims=True)) * lax.rsqrt(y.var(axes, keepdims=True) + 1e-5)
    return y.reshape(x.shape) * p["g"] + p["b"]


def attn_params(g, d, dtype="f32"):
    return {k: g.weight(d, d, dtype=dtype) for k in ("q", "k", "v", "o")}


def mha(p, x, heads, mask=None, context=None, bias=None):
    c = x if context is None else context
    split = lambda t: t.reshape(*t.shape[:-1], heads, -1)  # noqa: E731
    y = attend(split(x @ p["q"]), split(c @ p["k"]), split(c @ p["v"]), mask, bias)
    return y.reshape(x.shape) @ p["o"]


def layer_params(g, d, f, cross=False):
    p = {"a": attn_params(g, d), "n1": g.norm(d), "n2": g.norm(d), "up": g.dense(d, f), "down": g.dense(f, d)}
    return p | ({"c": attn_params(g, d), "n3": g.norm(d)} if cross else {})


def layer(p, x, heads, mask=None, context=None, act=nn.gelu):
    x = x + mha(p["a"], layer_norm(p["n1"], x), heads, mask)
    if context is not None:
        x = x + mha(p["c"], layer_norm(p["n3"], x), heads, None, context)
    return x + dense(p["down"], act(dense(p["up"], layer_norm(p["n2"], x))))


# convolutional networks -----------------------------------------------------------------------


@case("model", lambda g: ({"c1": g.weight(12, 3, 3, 3, fan_in=27), "c2": g.weight(24, 12, 3, 3, fan_in=108),
                           "c3": g.weight(40, 24, 3, 3, fan_in=216), "d": g.dense(40, 10)},
                          g.normal(20, 3, 32, 32), g.ints(0, 10, 20)))  # fmt: skip
def cnn_nchw_cifar_train_b20(p, x, y):
    def loss(p, x, y):
        for w in ("c1", "c2", "c3"):
            x = nn.relu(conv(x, p[w], 2, layout=NCHW))
        return xent(dense(p["d"], x.mean((2, 3))), y)

    return train(loss, p, x, y)


@case("model", with_adam(lambda g: {"c1": g.weight(3, 3, 1, 20), "b1": g.zeros(20), "c2": g.weight(3, 3, 20, 36),
                                    "b2": g.zeros(36), "d1": g.dense(36 * 49, 100), "d2": g.dense(100, 10)},
                         lambda g: g.uniform(50, 28, 28, 1), lambda g: g.ints(0, 10, 50)), tol=2e-3)  # fmt: skip
def cnn_mnist_adamw_clipped_b50(p, m, v, count, x, y):
    def loss(p, x, y):
        x = pool(nn.relu(conv(x, p["c1"]) + p["b1"]))
        x = pool(nn.relu(conv(x, p["c2"]) + p["b2"]), op=lax.add, init=0.0) / 4
        return xent(mlp([p["d1"], p["d2"]], x.reshape(x.shape[0], -1)), y)

    return adamw(loss, p, m, v, count, x, y)


VGG = (16, 16, "M", 32, 32, "M", 64, 64, 64, "M", 96, 96, "M")


def vgg_params(g):
    widths = [3] + [w for w in VGG if w != "M"]
    return {"c": [{"w": g.weight(3, 3, a, b), "b": g.zeros(b)} for a, b in zip(widths[:-1], widths[1:])],
            "d": [g.dense(96 * 16, 256), g.dense(256, 100)]}  # fmt: skip


def vgg(p, x):
    layers = iter(p["c"])
    for w in VGG:
        if w == "M":
            x = pool(x)
        else:
            q = next(layers)
            x = nn.relu(conv(x, q["w"]) + q["b"])
    return mlp(p["d"], x.reshape(x.shape[0], -1))


case("model", lambda g: (vgg_params(g), g.normal(3, 64, 64, 3)), name="vgg_small_forward_b3")(vgg)


@case("model", lambda g: (vgg_params(g), g.normal(6, 64, 64, 3), g.ints(0, 100, 6)), ref="cpu", tol=5e-3)
def vgg_small_train_b6(p, x, y):
    return train(lambda p, x, y: xent(vgg(p, x), y), p, x, y)


def batch_norm(p, x, axes=(0, 1, 2)):
    return (x - x.mean(axes)) * lax.rsqrt(x.var(axes) + 1e-3) * p["g"] + p["b"]


MOBILE = ((1, 16, 1), (4, 24, 2), (4, 24, 1), (4, 40, 2), (4, 40, 1), (4, 80, 2), (4, 80, 1))


def mobilenet_params(g):
    # Biases that are not zero: some have no gradient, and rounding noise must not be all they hold.
    def unit(k, i, o, groups=1):
        return {"w": g.weight(k, k, i // groups, o), "n": {"g": g.ones(o), "b": g.normal(o, scale=0.1)}}

    blocks, width = [], 16
    for e, o, _ in MOBILE:
        blocks.append([unit(1, width, width * e), unit(3, width * e, width * e, width * e), unit(1, width * e, o)])
        width = o
    return {"stem": unit(3, 3, 16), "blocks": blocks, "head": g.dense(80, 50)}


def mobilenet(p, x, norm):
    unit = lambda q, x, **k: norm(q["n"], conv(x, q["w"], **k))  # noqa: E731
    x = nn.relu6(unit(p["stem"], x, stride=2))
    for (_, o, s), (a, b, c) in zip(MOBILE, p["blocks"]):
        y = nn.relu6(unit(a, x))
        y = nn.relu6(unit(b, y, stride=s, groups=y.shape[-1]))
        y = unit(c, y)
        x = x + y if s == 1 and x.shape == y.shape else y
    return dense(p["head"], x.mean((1, 2)))


@case("model", lambda g: (mobilenet_params(g), g.normal(2, 160, 160, 3)), ref="cpu")
def mobilenet_v2_like_forward_160(p, x):
    return mobilenet(p, x, lambda n, x: x * n["g"] + n["b"])


@case("model", lambda g: (mobilenet_params(g), g.normal(8, 48, 48, 3), g.ints(0, 50, 8)), ref="cpu", tol=1e-2)
def mobilenet_v2_like_train_b8_48(p, x, y):
    return train(lambda p, x, y: xent(mobilenet(p, x, batch_norm), y), p, x, y)


@case("model", lambda g: ([{"dw": g.weight(7, 7, 1, 96), "n": g.norm(96), "up": g.dense(96, 384),
                            "down": g.dense(384, 96), "scale": g.normal(96, scale=0.1)} for _ in range(3)],
                          g.normal(2, 40, 40, 96)))  # fmt: skip
def convnext_blocks_40_c96(blocks, x):
    for p in blocks:
        y = layer_norm(p["n"], conv(x, p["dw"], groups=96))
        x = x + p["scale"] * dense(p["down"], nn.gelu(dense(p["up"], y), approximate=False))
    return x


@case("model", lambda g: ([{"n": g.norm(24 + 12 * i), "w": g.weight(3, 3, 24 + 12 * i, 12)} for i in range(6)],
                          g.weight(1, 1, 96, 48), g.normal(4, 28, 28, 24)), ref="cpu")  # fmt: skip
def densenet_block_growth_12(layers, transition, x):
    for p in layers:
        y = nn.relu(x * p["n"]["g"] + p["n"]["b"])
        x = jnp.concatenate([x, conv(y, p["w"])], -1)
    return pool(conv(x, transition), op=lax.add, init=0.0) / 4


@case("model", lambda g: ([{"a": g.weight(3, 3, 40, 40), "n": g.norm(40), "s": g.dense(40, 10), "e": g.dense(10, 40)}
                           for _ in range(3)], g.normal(6, 24, 24, 40)), tol=5e-3)  # fmt: skip
def squeeze_excite_group_norm_grad(blocks, x):
    def loss(blocks):
        y = x
        for p in blocks:
            z = nn.silu(group_norm(p["n"], conv(y, p["a"])))
            gate = nn.sigmoid(dense(p["e"], nn.silu(dense(p["s"], z.mean((1, 2))))))
            y = y + z * gate[:, None, None]
        return jnp.square(y).mean()

    return jax.grad(loss)(blocks)


@case("model", lambda g: ({"e": [g.weight(4, 4, 1, 16), g.weight(4, 4, 16, 32)],
                           "d": [g.weight(4, 4, 32, 16), g.weight(4, 4, 16, 1)]},
                          g.uniform(12, 28, 28, 1)))  # fmt: skip
def conv_autoencoder_train_b12(p, x):
    def loss(p, x):
        y = x
        for w in p["e"]:
            y = nn.leaky_relu(conv(y, w, 2))
        for i, w in enumerate(p["d"]):
            y = lax.conv_transpose(y, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            y = nn.leaky_relu(y) if i == 0 else nn.sigmoid(y)
        return jnp.abs(y - x).mean()

    return train(loss, p, x)


@case("model", lambda g: ({"enc": mlp_params(784, 200, 2 * 12)(g), "dec": mlp_params(12, 200, 784)(g)},
                          g.uniform(96, 784), g.key()), ref="cpu", tol=2e-3)  # fmt: skip
def vae_mnist_train_b96(p, x, key):
    def loss(p, x):
        mean, logvar = jnp.split(mlp(p["enc"], x, jnp.tanh), 2, -1)
        z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(key, mean.shape)
        kl = -0.5 * (1 + logvar - mean**2 - jnp.exp(logvar)).sum(-1).mean()
        return 784 * bce(mlp(p["dec"], z, jnp.tanh), x) + kl

    return train(loss, p, x, rate=1e-3)


@case("model", lambda g: ({"d": g.dense(30, 7 * 7 * 24), "up": [g.weight(5, 5, 24, 16), g.weight(5, 5, 16, 1)]},
                          {"c": [g.weight(5, 5, 1, 12), g.weight(5, 5, 12, 24)], "d": g.dense(24 * 49, 1)},
                          g.normal(16, 30), g.uniform(16, 28, 28, 1, lo=-1.0)), tol=2e-3)  # fmt: skip
def dcgan_step_b16(gen, dis, z, real):
    def make(p, z):
        x = nn.relu(dense(p["d"], z)).reshape(-1, 7, 7, 24)
        x = nn.relu(conv(upsample(x), p["up"][0]))
        return jnp.tanh(conv(upsample(x), p["up"][1]))

    def judge(p, x):
        for w in p["c"]:
            x = nn.leaky_relu(conv(x, w, 2), 0.2)
        return dense(p["d"], x.reshape(x.shape[0], -1))[:, 0]

    dis, a = train(lambda p: bce(judge(p, real), 0.9) + bce(judge(p, lax.stop_gradient(make(gen, z))), 0.0), dis)
    gen, b = train(lambda p: bce(judge(dis, make(p, z)), 1.0), gen)
    return gen, dis, a, b


def ddpm_params(g):
    block = lambda i, o: {"n": g.norm(i), "w": g.weight(3, 3, i, o), "t": g.dense(48, o)}  # noqa: E731
    return {"in": g.weight(3, 3, 3, 24), "d1": block(24, 24), "d2": block(24, 48), "mid": block(48, 48),
            "attn": attn_params(g, 48), "an": g.norm(48), "u2": block(96, 24), "u1": block(48, 24),
            "out": g.weight(3, 3, 24, 3), "time": mlp_params(32, 48, 48)(g)}  # fmt: skip


@case("model", lambda g: (ddpm_params(g), g.normal(4, 32, 32, 3), g.normal(4, 32, 32, 3), g.ints(0, 1000, 4)),
      ref="cpu", tol=5e-3)  # fmt: skip
def diffusion_unet_train_b4_32(p, x, noise, t):
    alpha = jnp.cumprod(1 - jnp.linspace(1e-4, 0.02, 1000))[t][:, None, None, None]

    def block(p, x, e):
        y = conv(nn.silu(group_norm(p["n"], x)), p["w"]) + dense(p["t"], nn.silu(e))[:, None, None]
        return y + x if x.shape == y.shape else y

    def loss(p):
        angle = t[:, None] * jnp.exp(-jnp.arange(16) * 0.6)
        e = mlp(p["time"], jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1), nn.silu)
        a = block(p["d1"], conv(jnp.sqrt(alpha) * x + jnp.sqrt(1 - alpha) * noise, p["in"]), e)
        b = block(p["d2"], pool(a, op=lax.add, init=0.0) / 4, e)
        c = block(p["mid"], pool(b, op=lax.add, init=0.0) / 4, e)
        flat = c.reshape(4, 64, 48)
        c = (flat + mha(p["attn"], layer_norm(p["an"], flat), 4)).reshape(c.shape)
        y = block(p["u2"], jnp.concatenate([upsample(c), b], -1), e)
        y = block(p["u1"], jnp.concatenate([upsample(y), a], -1), e)
        return jnp.square(conv(y, p["out"]) - noise).mean()

    return train(loss, p)


# transformers ---------------------------------------------------------------------------------------


def translate_params(g):
    return {"src": g.weight(700, 96, fan_in=96), "dst": g.weight(900, 96, fan_in=96),
            "enc": [layer_params(g, 96, 256) for _ in range(2)],
            "dec": [layer_params(g, 96, 256, cross=True) for _ in range(2)], "head": g.dense(96, 900)}  # fmt: skip


@case("model", lambda g: (translate_params(g), g.ints(0, 700, 5, 37), g.ints(0, 900, 5, 30)), tol=2e-3)
def encoder_decoder_transformer_train(p, source, target):
    at = np.arange(40)[:, None] / 1e4 ** (np.arange(48) / 48)
    position = jnp.asarray(np.concatenate([np.sin(at), np.cos(at)], -1), p["src"].dtype)

    def loss(p):
        x = p["src"][source] * np.sqrt(96).astype(np.float32) + position[:37]
        for q in p["enc"]:
            x = layer(q, x, 6, act=nn.relu)
        y = p["dst"][target[:, :-1]] + position[:29]
        for q in p["dec"]:
            y = layer(q, y, 6, jnp.tri(29, dtype=bool), x, nn.relu)
        smooth = nn.one_hot(target[:, 1:], 900, dtype=y.dtype) * 0.9 + 0.1 / 900
        return -(smooth * nn.log_softmax(dense(p["head"], y))).sum(-1).mean()

    return train(loss, p)


@case("model", lambda g: ({"e": g.weight(3000, 256, fan_in=256), "bias": g.normal(32, 4), "s": g.ones(256),
                           "l": [{"a": attn_params(g, 256), "g0": g.weight(256, 640), "g1": g.weight(256, 640),
                                  "out": g.weight(640, 256), "s1": g.ones(256), "s2": g.ones(256)} for _ in range(4)]},
                          g.ints(0, 3000, 3, 61)))  # fmt: skip
def t5_encoder_gated_gelu_forward(p, tokens):
    d = jnp.arange(61)[None] - jnp.arange(61)[:, None]
    bias = p["bias"][jnp.clip(d + 16, 0, 31)].transpose(2, 0, 1)
    x = p["e"][tokens]
    for q in p["l"]:
        x = x + mha(q["a"], rms_norm(q["s1"], x), 4, bias=bias)
        y = rms_norm(q["s2"], x)
        x = x + (nn.gelu(y @ q["g0"]) * (y @ q["g1"])) @ q["out"]
    return rms_norm(p["s"], x)


@case("model", lambda g: ({"e": g.weight(2000, 192, fan_in=192), "l": [layer_params(g, 192, 512) for _ in range(3)]},
                          [{k: (g.weight(192, 8), g.normal(8, 192, scale=0.01)) for k in "qv"} for _ in range(3)],
                          g.ints(0, 2000, 4, 65)), tol=2e-3)  # fmt: skip
def lora_finetune_rank8(base, lora, tokens):
    def loss(lora):
        x = base["e"][tokens[:, :-1]]
        for p, q in zip(base["l"], lora):
            a = p["a"] | {k: p["a"][k] + 2.0 * q[k][0] @ q[k][1] for k in "qv"}
            x = layer(p | {"a": a}, x, 6, jnp.tri(64, dtype=bool))
        return xent(x @ base["e"].T, tokens[:, 1:])

    return train(loss, lora)


@case("model", lambda g: (g.normal(300, 64), g.weight(64, 8), g.weight(8, 64, 176, fan_in=64),
                          g.weight(8, 176, 64, fan_in=176)), ref="cpu", tol=5e-3)  # fmt: skip
def moe_top2_dense_dispatch_train(x, router, up, down):
    def loss(router, up, down):
        gate = nn.softmax(x @ router)
        top, index = lax.top_k(gate, 2)
        hot = nn.one_hot(index, 8, dtype=x.dtype)
        weight = jnp.einsum("tk,tke->te", top / top.sum(-1, keepdims=True), hot)
        slot = jnp.cumsum(hot.sum(1), 0) * hot.sum(1) - 1
        place = nn.one_hot(slot.astype(jnp.int32), 96, dtype=x.dtype) * hot.sum(1)[..., None]
        y = nn.silu(jnp.einsum("tec,td,edf->ecf", place, x, up))
        y = jnp.einsum("tec,te,ecf,efd->td", place, weight, y, down)
        return jnp.square(y + x).mean() + 0.01 * 8 * (gate.mean(0) * hot.mean((0, 1))).sum()

    return jax.value_and_grad(loss, (0, 1, 2))(router, up, down)


@case("model", lambda g: (g.normal(160, 96), g.weight(96, 6), g.weight(6, 96, 200, fan_in=96),
                          g.weight(6, 200, 96, fan_in=200)), ref="cpu")  # fmt: skip
def moe_sorted_ragged_dot_forward(x, router, up, down):
    gate = nn.softmax(x @ router)
    best = gate.argmax(-1)
    order = jnp.argsort(best, stable=True)
    sizes = jnp.bincount(best, length=6).astype(jnp.int32)
    y = lax.ragged_dot(nn.gelu(lax.ragged_dot(x[order], up, sizes)), down, sizes)
    return jnp.zeros_like(x).at[order].set(y) * gate.max(-1, keepdims=True)


@case("model", lambda g: ({"in": g.weight(64, 256), "conv": g.weight(4, 1, 128), "bc": g.weight(128, 2 * 8 + 4),
                           "dt": g.dense(4, 128), "a": g.uniform(128, 8, hi=2.0), "d": g.ones(128),
                           "out": g.weight(128, 64)}, g.normal(3, 200, 64)), tol=1e-3)  # fmt: skip
def mamba_selective_scan_forward(p, x):
    u, z = jnp.split(x @ p["in"], 2, -1)
    u = lax.conv_general_dilated(u, p["conv"], (1,), [(3, 0)], dimension_numbers=("NWC", "WIO", "NWC"),
                                 feature_group_count=128)  # fmt: skip
    u = nn.silu(u)
    dt, b, c = jnp.split(u @ p["bc"], [4, 12], -1)
    dt = nn.softplus(dense(p["dt"], dt))
    decay = jnp.exp(-dt[..., None] * jnp.exp(p["a"]))

    def step(h, s):
        decay, drive, c = s
        h = decay * h + drive
        return h, jnp.einsum("bdn,bn->bd", h, c)

    time = lambda t: t.swapaxes(0, 1)  # noqa: E731
    drive = (dt * u)[..., None] * b[:, :, None]
    y = lax.scan(step, jnp.zeros((3, 128, 8), x.dtype), (time(decay), time(drive), time(c)))[1]
    return ((time(y) + u * p["d"]) * nn.silu(z)) @ p["out"]


@case("model", lambda g: ({"mix": g.uniform(3, 72), "rkv": g.weight(3, 72, 72, fan_in=72), "o": g.weight(72, 72),
                           "decay": g.uniform(72, lo=-1.0), "bonus": g.normal(72), "n": g.norm(72),
                           "ffn": mlp_params(72, 250, 72)(g)}, g.normal(4, 90, 72)), tol=2e-3)  # fmt: skip
def rwkv_time_mix_train(p, x):
    def loss(p, x):
        y = layer_norm(p["n"], x)
        last = jnp.pad(y, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        r, k, v = (jnp.einsum("btd,de->tbe", y * m + last * (1 - m), w) for m, w in zip(p["mix"], p["rkv"]))
        w = -jnp.exp(p["decay"])

        def step(s, kv):
            a, b, m = s
            k, v = kv
            n = jnp.maximum(m, k + p["bonus"])
            e, f = jnp.exp(m - n), jnp.exp(k + p["bonus"] - n)
            out = (e * a + f * v) / (e * b + f)
            n = jnp.maximum(m + w, k)
            e, f = jnp.exp(m + w - n), jnp.exp(k - n)
            return (e * a + f * v, e * b + f, n), out

        zero = jnp.zeros_like(k[0])
        out = lax.scan(step, (zero, zero, zero - 30.0), (k, v))[1]
        x = x + ((nn.sigmoid(r) * out) @ p["o"]).swapaxes(0, 1)
        return jnp.square(x + mlp(p["ffn"], x, lambda t: jnp.square(nn.relu(t))) - 1.0).mean()

    return train(loss, p, x)


def int8(g, *shape):
    return {"q": g.ints(-127, 128, *shape, dtype="i8"), "s": g.uniform(*shape[:-2], shape[-1], lo=1e-3, hi=2e-3)}


@case("model", lambda g: ({"qkv": int8(g, 6, 320, 960), "o": int8(g, 6, 320, 320), "up": int8(g, 6, 320, 860),
                           "down": int8(g, 6, 860, 320), "n": g.ones(6, 2, 320)},
                          g.normal(6, 2, 5, 400, 64), g.normal(320)), tol=1e-3)  # fmt: skip
def int8_weight_decode_6_layers(p, cache, x):
    def times(x, w):
        return (x @ w["q"].astype(x.dtype)) * w["s"]

    def block(x, pc):
        p, (keys, values) = pc
        q, k, v = jnp.split(times(rms_norm(p["n"][0], x), p["qkv"]), 3)
        keys, values = keys.at[:, 350].set(k.reshape(5, 64)), values.at[:, 350].set(v.reshape(5, 64))
        s = jnp.where(jnp.arange(400) < 351, jnp.einsum("hd,htd->ht", q.reshape(5, 64), keys) / 8, -1e9)
        x = x + times(jnp.einsum("ht,htd->hd", nn.softmax(s), values).reshape(-1), p["o"])
        return x + times(nn.silu(times(rms_norm(p["n"][1], x), p["up"])), p["down"]), keys[:, 350]

    return lax.scan(block, x, (p, cache))


def lm_params(g, layers, d, f, vocab, dtype="f32"):
    w = lambda *s: g.weight(layers, *s, fan_in=s[0], dtype=dtype)  # noqa: E731
    return {"e": g.weight(vocab, d, fan_in=d, dtype=dtype), "n": g.ones(layers, 2, d, dtype=dtype),
            "a": {k: w(d, d) for k in "qkvo"}, "gate": w(d, f), "up": w(d, f), "down": w(f, d)}  # fmt: skip


def lm(p, tokens, heads, remat=False):
    s = tokens.shape[1]

    def block(x, q):
        x = x + mha(q["a"], rms_norm(q["n"][0], x), heads, jnp.tri(s, dtype=bool))
        y = rms_norm(q["n"][1], x)
        return x + (nn.silu(y @ q["gate"]) * (y @ q["up"])) @ q["down"], None

    layers = {k: v for k, v in p.items() if k != "e"}
    x = lax.scan(jax.checkpoint(block) if remat else block, p["e"][tokens], layers)[0]
    return x @ p["e"].T


@case("model", lambda g: (lm_params(g, 5, 320, 864, 5000, "bf16"), g.ints(0, 5000, 2, 100)), tol=8e-2)
def llama_like_scan_bf16_forward(p, tokens):
    return lm(p, tokens, 5)


@case("model", lambda g: (lm_params(g, 3, 128, 344, 1000, "bf16"), g.ints(0, 1000, 4, 51)), ref="cpu", tol=0.1)
def llama_like_scan_bf16_train(p, tokens):
    return train(lambda p, t: xent(lm(p, t[:, :-1], 4).astype(jnp.float32), t[:, 1:]), p, tokens)


@case("model", lambda g: (lm_params(g, 4, 144, 400, 1500), g.ints(0, 1500, 3, 81)), tol=2e-3)
def llama_like_scan_remat_train(p, tokens):
    return train(lambda p, t: xent(lm(p, t[:, :-1], 6, True), t[:, 1:]), p, tokens)


@case("model", lambda g: ({"e": g.weight(8000, 384, fan_in=384), "p": g.weight(96, 384, fan_in=384), "n": g.norm(384),
                           "l": [layer_params(g, 384, 1536) for _ in range(6)], "head": g.dense(384, 3)},
                          g.ints(0, 8000, 4, 96), g.ints(30, 97, 4)))  # fmt: skip
def bert_small_classify_masked_b4(p, tokens, lengths):
    x = layer_norm(p["n"], p["e"][tokens] + p["p"])
    mask = (jnp.arange(96) < lengths[:, None])[:, None, None]
    for q in p["l"]:
        x = layer(q, x, 6, mask)
    return nn.log_softmax(dense(p["head"], x[:, 0]))


@case("model", with_adam(lambda g: {"patch": g.dense(48, 96), "pos": g.normal(65, 96, scale=0.02), "cls": g.zeros(96),
                                    "l": [layer_params(g, 96, 192) for _ in range(3)], "head": g.dense(96, 10)},
                         lambda g: g.normal(10, 32, 32, 3), lambda g: g.ints(0, 10, 10)), tol=5e-3)  # fmt: skip
def vit_cifar_adamw_b10(p, m, v, count, x, y):
    def loss(p, x, y):
        x = x.reshape(-1, 8, 4, 8, 4, 3).swapaxes(2, 3).reshape(-1, 64, 48)
        x = dense(p["patch"], x)
        x = jnp.concatenate([jnp.tile(p["cls"], (x.shape[0], 1, 1)), x], 1) + p["pos"]
        for q in p["l"]:
            x = layer(q, x, 4)
        return xent(dense(p["head"], x[:, 0]), y)

    return adamw(loss, p, m, v, count, x, y)


@case("model", lambda g: ([{"n1": g.norm(80), "t": mlp_params(49, 100, 49)(g), "n2": g.norm(80),
                            "c": mlp_params(80, 160, 80)(g)} for _ in range(3)],
                          g.normal(6, 49, 80)), tol=2e-3)  # fmt: skip
def mlp_mixer_vmapped_blocks_grad(blocks, x):
    def one(blocks, x):
        for p in blocks:
            x = x + mlp(p["t"], layer_norm(p["n1"], x).T, nn.gelu).T
            x = x + mlp(p["c"], layer_norm(p["n2"], x), nn.gelu)
        return x.mean()

    return jax.grad(lambda b: jax.vmap(one, (None, 0))(b, x).mean())(blocks)


@case("model", lambda g: ({"n": [g.norm(112) for _ in range(4)], "f1": mlp_params(112, 300, 112)(g),
                           "a": attn_params(g, 112), "in": g.dense(112, 224), "dw": g.weight(15, 1, 112),
                           "out": g.dense(112, 112), "f2": mlp_params(112, 300, 112)(g)},
                          g.normal(2, 170, 112)))  # fmt: skip
def conformer_block_forward(p, x):
    x = x + 0.5 * mlp(p["f1"], layer_norm(p["n"][0], x), nn.silu)
    x = x + mha(p["a"], layer_norm(p["n"][1], x), 4)
    y = nn.glu(dense(p["in"], layer_norm(p["n"][2], x)))
    y = lax.conv_general_dilated(y, p["dw"], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"),
                                 feature_group_count=112)  # fmt: skip
    x = x + dense(p["out"], nn.silu(y))
    return x + 0.5 * mlp(p["f2"], layer_norm(p["n"][3], x), nn.silu)


@case("model", lambda g: ({"c1": g.weight(3, 40, 64), "c2": g.weight(3, 64, 64), "head": g.dense(64, 29)},
                          g.normal(5, 200, 40), g.ints(1, 29, 5, 20)), ref="cpu", tol=5e-3)  # fmt: skip
def speech_conv_ctc_train(p, x, labels):
    layout = ("NWC", "WIO", "NWC")

    def loss(p):
        y = nn.relu(conv(x, p["c1"], 2, layout=layout))
        logits = dense(p["head"], nn.relu(conv(y, p["c2"], layout=layout)))
        logp = nn.log_softmax(logits)
        wide = jnp.zeros((5, 41), jnp.int32).at[:, 1::2].set(labels)
        skip = jnp.pad((wide[:, 2:] != wide[:, :-2]) & (wide[:, 2:] != 0), ((0, 0), (2, 0)))

        def step(a, lp):
            one = jnp.pad(a, ((0, 0), (1, 0)), constant_values=-1e5)[:, :-1]
            two = jnp.where(skip, jnp.pad(a, ((0, 0), (2, 0)), constant_values=-1e5)[:, :-2], -1e5)
            return jnp.logaddexp(jnp.logaddexp(a, one), two) + jnp.take_along_axis(lp, wide, 1), None

        start = jnp.full((5, 41), -1e5, x.dtype).at[:, 0].set(0.0)
        a = lax.scan(step, start, logp.swapaxes(0, 1))[0]
        return -jnp.logaddexp(a[:, -1], a[:, -2]).mean() / 100

    return train(loss, p)


# recurrent, tabular, recommendation and text --------------------------------------------------------------


def lstm_cell(p, s, x):
    h, c = s
    i, f, o, u = jnp.split(jnp.concatenate([x, h], -1) @ p["w"] + p["b"], 4, -1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(u)
    return nn.sigmoid(o) * jnp.tanh(c), c


@case("model", lambda g: ({"src": g.weight(300, 64, fan_in=64), "dst": g.weight(400, 64, fan_in=64),
                           "enc": g.dense(64 + 90, 360), "dec": g.dense(64 + 90, 360), "head": g.dense(90, 400)},
                          g.ints(0, 300, 14, 25), g.ints(0, 400, 14, 21)), tol=1e-3)  # fmt: skip
def lstm_seq2seq_train_b14(p, source, target):
    def loss(p):
        zero = jnp.zeros((14, 90), p["src"].dtype)
        step = lambda q: lambda s, x: ((s := lstm_cell(q, s, x)), s[0])  # noqa: E731
        s = lax.scan(step(p["enc"]), (zero, zero), p["src"][source].swapaxes(0, 1))[0]
        hs = lax.scan(step(p["dec"]), s, p["dst"][target[:, :-1]].swapaxes(0, 1))[1]
        return xent(dense(p["head"], hs), target[:, 1:].T)

    return train(loss, p)


@case("model", with_adam(lambda g: {"cat": g.normal(9, 60, 6), "m": mlp_params(17 + 54, 150, 70, 1)(g)},
                         lambda g: g.normal(333, 17), lambda g: g.ints(0, 60, 333, 9), lambda g: g.normal(333)),
      tol=2e-3)  # fmt: skip
def tabular_mlp_adamw_b333(p, m, v, count, x, cat, y):
    def loss(p, x, cat, y):
        e = p["cat"][jnp.arange(9), cat].reshape(x.shape[0], -1)
        d = mlp(p["m"], jnp.concatenate([x, e], -1), nn.selu)[:, 0] - y
        return jnp.where(jnp.abs(d) < 1, 0.5 * d * d, jnp.abs(d) - 0.5).mean()

    return adamw(loss, p, m, v, count, x, cat, y)


@case("model", lambda g: (g.normal(5000, 31), g.ints(0, 2, 5000), g.normal(31), np.float32(0.1)))
def logistic_regression_newton_step(x, y, w, b):
    def loss(wb):
        return bce(x @ wb[:-1] + wb[-1], y) + 1e-2 * jnp.square(wb).sum()

    wb = jnp.append(w, b)
    return wb - jnp.linalg.solve(jax.hessian(loss)(wb), jax.grad(loss)(wb))


@case("model", lambda g: (g.weight(4000, 75, fan_in=75), g.weight(4000, 75, fan_in=75), g.ints(0, 4000, 512),
                          g.ints(0, 4000, 512), g.ints(0, 4000, 512, 7)))  # fmt: skip
def word2vec_negative_sampling_b512(words, contexts, w, c, negative):
    def loss(p):
        a = p[0][w]
        good = nn.log_sigmoid((a * p[1][c]).sum(-1))
        bad = nn.log_sigmoid(-jnp.einsum("bd,bnd->bn", a, p[1][negative])).sum(-1)
        return -(good + bad).mean()

    return train(loss, (words, contexts), rate=1.0)


@case("model", lambda g: ({"u": g.normal(1500, 20, scale=0.1), "i": g.normal(1100, 20, scale=0.1),
                           "bu": g.normal(1500), "bi": g.normal(1100)}, g.ints(0, 1500, 3000), g.ints(0, 1100, 3000),
                          g.uniform(3000, lo=1.0, hi=5.0)), tol=1e-3)  # fmt: skip
def matrix_factorisation_epoch_scan(p, user, item, rating):
    def loss(p, u, i, r):
        guess = 3.0 + p["bu"][u] + p["bi"][i] + (p["u"][u] * p["i"][i]).sum(-1)
        return jnp.square(guess - r).sum() + 0.02 * (jnp.square(p["u"][u]).sum() + jnp.square(p["i"][i]).sum())

    step = lambda p, b: train(loss, p, *b, rate=0.01)  # noqa: E731
    return lax.scan(step, p, tuple(x.reshape(12, 250) for x in (user, item, rating)))


@case("model", lambda g: (mlp_params(3, 64, 96)(g), mlp_params(96, 64, 10)(g), g.normal(24, 130, 3),
                          g.ints(0, 10, 24)))  # fmt: skip
def deepsets_points_train(phi, rho, x, y):
    def loss(p, x, y):
        h = jax.vmap(jax.vmap(lambda x: mlp(p[0], x, nn.elu)))(x)
        return xent(mlp(p[1], h.max(1) + h.mean(1)), y)

    return train(loss, (phi, rho), x, y)


@case("model", lambda g: (mlp_params(120, 200, 50)(g), g.normal(64, 120), g.normal(64, 120)))
def siamese_contrastive_info_nce_b64(p, a, b):
    def loss(p):
        unit = lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True)  # noqa: E731
        s = unit(mlp(p, a, nn.gelu)) @ unit(mlp(p, b, nn.gelu)).T / 0.2
        return 0.5 * (xent(s, jnp.arange(64)) + xent(s.T, jnp.arange(64)))

    return train(loss, p)


# reinforcement learning -------------------------------------------------------------------------------------


@case("model", lambda g: (mlp_params(8, 100, 100, 4)(g), mlp_params(8, 100, 100, 4)(g), g.normal(128, 8),
                          g.ints(0, 4, 128), g.normal(128), g.normal(128, 8), g.ints(0, 2, 128)))  # fmt: skip
def dqn_double_update_b128(p, target, s, a, r, s2, done):
    def loss(p):
        q = jnp.take_along_axis(mlp(p, s), a[:, None], 1)[:, 0]
        best = mlp(p, s2).argmax(-1)
        after = mlp(target, s2)[jnp.arange(128), best]
        error = q - lax.stop_gradient(r + 0.99 * (1 - done) * after)
        return jnp.where(jnp.abs(error) < 1, 0.5 * error**2, jnp.abs(error) - 0.5).mean()

    p, value = train(loss, p)
    return p, jax.tree.map(lambda t, p: 0.99 * t + 0.01 * p, target, p), value


@case("model", lambda g: ({"pi": mlp_params(17, 64, 64, 6)(g), "v": mlp_params(17, 64, 64, 1)(g), "std": g.zeros(6)},
                          g.normal(512, 17), g.normal(512, 6), g.normal(512, scale=0.3), g.normal(512), g.normal(512)),
      tol=2e-3)  # fmt: skip
def ppo_4_minibatches_scan(p, obs, action, old, advantage, returns):
    def logp(p, obs, action):
        z = (action - mlp(p["pi"], obs, jnp.tanh)) * jnp.exp(-p["std"])
        return (-0.5 * z * z - p["std"] - 0.919).sum(-1)

    old = old + lax.stop_gradient(logp(p, obs, action))

    def loss(p, obs, action, old, adv, ret):
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        ratio = jnp.exp(logp(p, obs, action) - old)
        policy = -jnp.minimum(ratio * adv, jnp.clip(ratio, 0.8, 1.2) * adv).mean()
        value = jnp.square(mlp(p["v"], obs, jnp.tanh)[:, 0] - ret).mean()
        return policy + 0.5 * value - 0.01 * p["std"].sum()

    batches = jax.tree.map(lambda x: x.reshape(4, 128, *x.shape[1:]), (obs, action, old, advantage, returns))
    return lax.scan(lambda p, b: train(loss, p, *b, rate=1e-2), p, batches)


# fields, graphs and physics ------------------------------------------------------------------------------------


@case("model", lambda g: (mlp_params(3 + 36, 96, 96, 96, 4)(g), g.normal(60, 3, scale=0.2), g.normal(60, 3),
                          g.uniform(60, 3)), tol=5e-3)  # fmt: skip
def nerf_render_train_60_rays(p, origin, direction, colour):
    def field(p, x):
        angle = (x[..., None, :] * 2.0 ** jnp.arange(6, dtype=x.dtype)[:, None]).reshape(*x.shape[:-1], 18)
        y = mlp(p, jnp.concatenate([x, jnp.sin(angle), jnp.cos(angle)], -1))
        return nn.sigmoid(y[..., :3]), nn.softplus(y[..., 3])

    def loss(p):
        t = jnp.linspace(0.5, 3.0, 24, dtype=origin.dtype)
        d = direction / jnp.linalg.norm(direction, axis=-1, keepdims=True)
        rgb, sigma = field(p, origin[:, None] + d[:, None] * t[:, None])
        alpha = 1 - jnp.exp(-sigma * 2.5 / 23)
        through = jnp.cumprod(jnp.concatenate([jnp.ones_like(alpha[:, :1]), 1 - alpha[:, :-1] + 1e-10], 1), 1)
        return jnp.square(((alpha * through)[..., None] * rgb).sum(1) - colour).mean()

    return train(loss, p)


@case("model", lambda g: ([g.weight(90, 8, 12, fan_in=90), g.normal(2, 8, 12)], g.dense(96, 7), g.normal(677, 90),
                          g.ints(0, 677, 3000), g.ints(0, 677, 3000), g.ints(0, 7, 677)), tol=2e-3)  # fmt: skip
def gat_cora_quarter_train(att, head, x, source, target, y):
    def loss(p):
        (w, a), head = p
        h = jnp.einsum("nf,fhd->nhd", x, w)
        score = nn.leaky_relu((h * a[0]).sum(-1)[source] + (h * a[1]).sum(-1)[target], 0.2)
        score = jnp.exp(score - jax.ops.segment_max(score, target, 677)[target])
        weight = score / (jax.ops.segment_sum(score, target, 677)[target] + 1e-9)
        h = jax.ops.segment_sum(weight[..., None] * h[source], target, 677)
        return xent(dense(head, nn.elu(h.reshape(677, 96))), y)

    return train(loss, (att, head))


@case("model", lambda g: (g.weight(64, 48), g.weight(48, 5), g.normal(450, 64),
                          (g.uniform(450, 450) < 0.02).astype(np.float32), g.ints(0, 5, 450)))  # fmt: skip
def gcn_dense_adjacency_train(w1, w2, x, adjacency, y):
    def loss(p):
        a = jnp.maximum(adjacency, adjacency.T) + jnp.eye(450, dtype=x.dtype)
        d = lax.rsqrt(a.sum(1))
        a = d[:, None] * a * d[None, :]
        return xent(a @ (nn.relu(a @ (x @ p[0])) @ p[1]), y)

    return train(loss, (w1, w2))


@case("model", lambda g: (mlp_params(2, 50, 2)(g), g.normal(60, 2), g.normal(20, 60, 2)), tol=2e-3)
def neural_ode_rk4_train(p, y0, path):
    def loss(p):
        f = lambda y: mlp(p, y**3, jnp.tanh)  # noqa: E731

        def step(y, _):
            k1 = f(y)
            k2 = f(y + 0.025 * k1)
            k3 = f(y + 0.025 * k2)
            y = y + 0.05 / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + 0.05 * k3))
            return y, y

        return jnp.abs(lax.scan(step, y0, None, length=20)[1] - path).mean()

    return train(loss, p, rate=1e-3)


@case("model", lambda g: (g.normal(140, 4), g.normal(140), g.normal(90, 4), g.uniform(3, lo=0.3, hi=0.6)), tol=5e-3)
def gaussian_process_fit_predict_140(x, y, test, theta):
    def kernel(a, b, t):
        d = jnp.square(a[:, None] - b[None]).sum(-1)
        return t[0] * jnp.exp(-0.5 * d / (t[1] + 0.5))

    def nll(t):
        chol = jnp.linalg.cholesky(kernel(x, x, t) + t[2] * jnp.eye(140, dtype=x.dtype))
        z = jax.scipy.linalg.solve_triangular(chol, y, lower=True)
        return (0.5 * z @ z + jnp.log(jnp.diagonal(chol)).sum()) / 140

    t = theta - 0.01 * jax.grad(nll)(theta)
    chol = jax.scipy.linalg.cho_factor(kernel(x, x, t) + t[2] * jnp.eye(140, dtype=x.dtype), lower=True)
    cross = kernel(test, x, t)
    mean = cross @ jax.scipy.linalg.cho_solve(chol, y)
    return mean, t[0] - (cross * jax.scipy.linalg.cho_solve(chol, cross.T).T).sum(1)


@case("model", lambda g: ([mlp_params(3, 48, 48, 6)(g) for _ in range(4)], g.normal(200, 6)), tol=1e-3)
def realnvp_flow_train_b200(layers, x):
    def loss(layers):
        y, logdet = x, 0.0
        for i, p in enumerate(layers):
            a, b = (y[:, :3], y[:, 3:]) if i % 2 else (y[:, 3:], y[:, :3])
            s, t = jnp.split(mlp(p, a, jnp.tanh), 2, -1)
            s = jnp.tanh(s)
            y = jnp.concatenate([b * jnp.exp(s) + t, a], -1)
            logdet = logdet + s.sum(-1)
        return (0.5 * jnp.square(y).sum(-1) - logdet).mean()

    return train(loss, layers)


@case("model", lambda g: (mlp_params(2, 40, 40, 1)(g), g.uniform(300, 2), g.uniform(100, 2)), tol=2e-3)
def pinn_poisson_hessian_train(p, inner, edge):
    u = lambda p, x: mlp(p, x, jnp.sin)[0]  # noqa: E731

    def loss(p):
        lap = jax.vmap(lambda x: jnp.trace(jax.hessian(u, 1)(p, x)))(inner)
        residual = lap + jnp.sin(3 * inner.sum(-1))
        return jnp.square(residual).mean() + jnp.square(jax.vmap(u, (None, 0))(p, edge)).mean()

    return train(loss, p, rate=1e-3)


@case("model", lambda g: (mlp_params(4, 48, 48, 1)(g), g.normal(150, 4), g.normal(150, 4)), tol=2e-3)
def hamiltonian_network_jvp_train(p, x, dx):
    def loss(p):
        grad = jax.vmap(jax.grad(lambda x: mlp(p, x, jnp.tanh)[0]))(x)
        field = jnp.concatenate([grad[:, 2:], -grad[:, :2]], -1)
        along = jax.jvp(lambda x: mlp(p, x, jnp.tanh), (x,), (dx,))[1]
        return jnp.square(field - dx).mean() + 0.1 * jnp.square(along).mean()

    return train(loss, p)


@case("model", lambda g: ({"lift": g.dense(2, 20), "re": g.normal(3, 12, 20, 20, scale=0.05),
                           "im": g.normal(3, 12, 20, 20, scale=0.05), "w": g.weight(3, 20, 20, fan_in=20),
                           "out": g.dense(20, 1)}, g.normal(8, 128), g.normal(8, 128)), tol=2e-3)  # fmt: skip
def fourier_neural_operator_1d_train(p, x, y):
    def loss(p):
        grid = jnp.broadcast_to(jnp.linspace(0, 1, 128, dtype=x.dtype), x.shape)
        h = dense(p["lift"], jnp.stack([x, grid], -1))
        for re, im, w in zip(p["re"], p["im"], p["w"]):
            f = jnp.einsum("bki,kio->bko", jnp.fft.rfft(h, axis=1)[:, :12], lax.complex(re, im))
            h = nn.gelu(jnp.fft.irfft(jnp.pad(f, ((0, 0), (0, 53), (0, 0))), n=128, axis=1) + h @ w)
        return jnp.square(dense(p["out"], h)[..., 0] - y).mean()

    return train(loss, p)


@case("model", lambda g: (jax.tree.map(lambda *x: np.stack(x), *[mlp_params(11, 32, 32, 1)(g) for _ in range(10)]),
                          g.normal(100, 11), g.normal(100)))  # fmt: skip
def ensemble_vmapped_10_train(p, x, y):
    def step(p):
        return train(lambda p: jnp.square(mlp(p, x, nn.swish)[:, 0] - y).mean(), p)

    return jax.vmap(step)(p)


@case("model", lambda g: (mlp_params(1, 40, 40, 1)(g), g.uniform(16, 2, 10, 1, lo=-3.0, hi=3.0), g.normal(16)),
      tol=2e-3)  # fmt: skip
def maml_sine_meta_gradient(p, x, phase):
    def loss(p, x, phase):
        return jnp.square(mlp(p, x, jnp.tanh) - jnp.sin(x + phase)).mean()

    def task(p, x, phase):
        fast = p
        for _ in range(2):
            fast = jax.tree.map(lambda p, g: p - 0.05 * g, fast, jax.grad(loss)(fast, x[0], phase))
        return loss(fast, x[1], phase)

    return jax.value_and_grad(lambda p: jax.vmap(task, (None, 0, 0))(p, x, phase).mean())(p)


@case("model", lambda g: (g.weight(100, 64), g.normal(64, 64, scale=0.02), g.uniform(32, 40, 100, hi=0.5),
                          g.ints(0, 10, 32), g.weight(64, 10)), ref="cpu", tol=5e-3)  # fmt: skip
def spiking_network_surrogate_train(w, rec, spikes, y, out):
    @jax.custom_vjp
    def fire(v):
        return (v > 0).astype(v.dtype)

    fire.defvjp(lambda v: (fire(v), v), lambda v, g: (g / jnp.square(1 + 5 * jnp.abs(v)),))

    def loss(p):
        w, rec, out = p

        def step(s, x):
            v, z = s
            v = 0.9 * v * (1 - z) + x @ w + z @ rec
            z = fire(v - 1.0)
            return (v, z), z

        zero = jnp.zeros((32, 64), w.dtype)
        return xent(lax.scan(step, (zero, zero), spikes.swapaxes(0, 1))[1].mean(0) @ out, y)

    return train(loss, (w, rec, out))
