"""Programs drawn at random, family by family, for turns.py: shapes, types and axes that nobody chose.

  SEED=7 COUNT=200 [FAMILIES=moves,updates] python bench/turns.py bench/drawn_programs.py --lib=LIB --seconds=0.2

The same seed draws the same programs. What it is for: a class of programs that is slower than XLA:CPU, or takes long to compile, shows up in
some hundred of them (rows of 25 bytes, columns of long rows, and gradients of single channels did). Times so short are noisy; look at what is
below 1 again, alone and for longer. drawn_models.py draws products, loops, layers and chains of ops.
"""

from __future__ import annotations

import os
import random

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

draw = random.Random(int(os.environ.get("SEED", "1")))
numbers = np.random.RandomState(int(os.environ.get("SEED", "1")))
FAMILIES = {}
ANY = ["f32"] * 5 + ["s32", "u8", "pred", "f16", "bf16"]
FLOATS = ["f32"] * 4 + ["f16", "bf16"]


def family(f):
    FAMILIES[f.__name__] = f
    return f


def shape(rank, elements=None):
    """About so many elements; the last dimension is short, half of the time"""
    elements = elements or 10 ** draw.uniform(3.5, 6.2)
    weights = [draw.uniform(0.3, 1) for _ in range(rank)]
    sizes = [max(2, round(elements ** (w / sum(weights)))) for w in weights]
    if rank > 1 and draw.random() < 0.5:
        sizes[-1] = draw.randint(2, 70)
    return tuple(sizes)


def array(sizes, kind="f32"):
    if kind == "s32":
        return numbers.randint(-1000, 1000, sizes).astype("int32")
    if kind == "u8":
        return numbers.randint(0, 255, sizes).astype("uint8")
    if kind == "pred":
        return numbers.rand(*sizes) > 0.5
    x = numbers.randn(*sizes).astype("float32")
    return jnp.asarray(x).astype(jnp.bfloat16) if kind == "bf16" else x.astype({"f32": "float32", "f16": "float16"}[kind])


def places(below, *sizes):
    return numbers.randint(0, below, sizes).astype("int32")


@family
def reductions():
    kind, sizes = draw.choice(ANY), shape(draw.choice([1, 2, 2, 3, 4]))
    axes = tuple(sorted(draw.sample(range(len(sizes)), draw.randint(1, len(sizes)))))
    op = draw.choice(["sum", "max", "min", "mean", "any", "argmax", "var", "logsumexp", "median"])
    axis = axes[0] if op in ("argmax", "median") else axes
    wide = op in ("mean", "var", "logsumexp", "median")
    f = {"any": lambda x: (x > 0).any(axis), "logsumexp": lambda x: jax.nn.logsumexp(x, axis)}.get(op, lambda x: getattr(jnp, op)(x, axis=axis))
    return f"{op}_{axis}", lambda x: f(x.astype("float32") if wide else x), [array(sizes, kind)]


@family
def cumulations():
    sizes = shape(draw.choice([1, 2, 3]))
    op, axis, back = draw.choice(["cumsum", "cumprod", "cummax"]), draw.randrange(len(sizes)), draw.random() < 0.3
    return f"{op}_{axis}_{back}", lambda x: getattr(lax, op)(x, axis=axis, reverse=back), [array(sizes, draw.choice(["f32", "s32", "bf16"]))]


@family
def gathers():
    kind, sizes = draw.choice(ANY), shape(draw.choice([1, 2, 3]))
    axis = draw.randrange(len(sizes))
    if draw.random() < 0.3:
        return f"along_{axis}", lambda x, i: jnp.take_along_axis(x, i, axis), [array(sizes, kind), places(sizes[axis], *sizes)]
    count = max(2, int(sizes[axis] * draw.uniform(0.1, 2)))
    return f"take_{axis}", lambda x, i: jnp.take(x, i, axis=axis), [array(sizes, kind), places(sizes[axis], count)]


@family
def moves():
    sizes = shape(draw.choice([2, 3, 4]))
    axis, by = draw.randrange(len(sizes)), draw.randint(1, 3)
    order = draw.sample(range(len(sizes)), len(sizes))
    pads = [(draw.randint(0, 3), draw.randint(0, 3)) for _ in sizes]
    inner = [(min(low, n - 1), min(high, n - 1)) for (low, high), n in zip(pads, sizes, strict=True)]
    begins = [draw.randint(0, n // 3) for n in sizes]
    steps = [draw.randint(1, 3) for _ in sizes]
    ops = {
        "transpose": lambda x: jnp.transpose(x, order),
        "roll": lambda x: jnp.roll(x, by, axis),
        "flip": lambda x: jnp.flip(x, axis),
        "pad": lambda x: jnp.pad(x, pads),
        "reflect": lambda x: jnp.pad(x, inner, mode="reflect"),
        "edge": lambda x: jnp.pad(x, pads, mode="edge"),
        "tile": lambda x: jnp.tile(x, (2,) + (1,) * (len(sizes) - 1)),
        "repeat": lambda x: jnp.repeat(x, 3, axis),
        "stack": lambda x: jnp.stack([x, x[::-1]], axis),
        "concatenate": lambda x: jnp.concatenate([x, x[::-1]], axis),
        "slice": lambda x: lax.slice(x, begins, sizes),
        "strided": lambda x: lax.slice(x, begins, sizes, steps),
        "column": lambda x: x[..., -1] | x[..., 0] if x.dtype == bool else x[..., -1] + x[..., 0],
    }
    op = draw.choice(list(ops))
    return f"{op}_{axis}_{by}", ops[op], [array(sizes, draw.choice(ANY))]


@family
def orders():
    sizes = shape(draw.choice([1, 2, 3]), 10 ** draw.uniform(3.3, 5.5))
    axis, few = draw.randrange(len(sizes)), draw.randint(1, min(16, sizes[-1]))
    ops = {
        "sort": lambda x: jnp.sort(x, axis),
        "argsort": lambda x: jnp.argsort(x, axis),
        "top_k": lambda x: lax.top_k(x, few),
        "pairs": lambda x: lax.sort([x, x[::-1]], dimension=axis, num_keys=1),
    }
    op = draw.choice(list(ops))
    return f"{op}_{axis}_{few}", ops[op], [array(sizes, draw.choice(["f32", "f32", "s32", "u8", "bf16"]))]


@family
def elements():
    sizes = shape(draw.choice([1, 2, 3]))
    ops = {
        "gelu": jax.nn.gelu,
        "softplus": jax.nn.softplus,
        "by_rows": lambda x: x * x[..., :1] + x[:1],
        "where": lambda x: jnp.where(x > 0, x, x * 0.1),
        "norm": lambda x: x / jnp.sqrt((x * x).sum(-1, keepdims=True) + 1e-6),
        "angle": lambda x: jnp.sin(x) * jnp.cos(x),
        "power": lambda x: jnp.abs(x) ** 1.7,
        "mod": lambda x: jnp.mod(x, 0.7),
        "arctan2": lambda x: jnp.arctan2(x, x + 0.5),
        "softmax": lambda x: jax.nn.softmax(x, -1),
        "standardize": jax.nn.standardize,
    }
    op = draw.choice(list(ops))
    return op, ops[op], [array(sizes, draw.choice(FLOATS))]


@family
def updates():
    kind, sizes = draw.choice(["f32", "f32", "s32", "bf16", "u8"]), shape(draw.choice([1, 2, 2, 3]), 10 ** draw.uniform(4, 6))
    count = max(2, int(sizes[0] * draw.uniform(0.1, 2)))
    op = draw.choice(["set", "add", "max", "columns", "block", "segments", "embedding"])
    if op == "columns":
        return op, lambda x, i: x.at[..., i].set(1), [array(sizes, kind), places(sizes[-1], max(1, sizes[-1] // 4))]
    if op == "block":
        return op, lambda x: x.at[tuple(slice(n // 4, n // 2 + 1) for n in sizes)].set(0), [array(sizes, kind)]
    if op == "segments":
        segments = max(2, count // 4)
        return op, lambda x, i: jax.ops.segment_sum(x, i, num_segments=segments), [array(sizes, kind), places(segments, sizes[0])]
    rows = [array(sizes, kind), places(sizes[0], count), array((count, *sizes[1:]), kind)]
    if op == "embedding":
        rows = [np.asarray(rows[0], "float32"), rows[1], np.asarray(rows[2], "float32")]
        return op, lambda x, i, u: jax.vjp(lambda x: x[i], x)[1](u)[0], rows
    return f"{op}_{count}", lambda x, i, u: getattr(x.at[i], op)(u), rows


@family
def convolutions():
    rank, batch, window, stride = draw.choice([1, 2, 2, 3]), draw.choice([1, 2, 4, 8]), draw.choice([1, 2, 3, 5]), draw.choice([1, 1, 2])
    inputs, outputs = draw.choice([1, 3, 4, 8, 12, 16, 24, 48, 64]), draw.choice([1, 4, 8, 16, 24, 32, 64])
    side = max(window, int((draw.choice([3e4, 2e5]) / (batch * max(inputs, outputs))) ** (1 / rank)))
    axes, last = "DHW"[3 - rank :], draw.random() < 0.5
    layout = ("N" + axes + "C", axes + "IO", "N" + axes + "C") if last else ("NC" + axes, "OI" + axes, "NC" + axes)
    space, taps = (side,) * rank, (window,) * rank
    x = array((batch, *space, inputs) if last else (batch, inputs, *space))
    w = array((*taps, inputs, outputs) if last else (outputs, inputs, *taps))

    def f(x, w):
        return lax.conv_general_dilated(x, w, (stride,) * rank, "SAME", dimension_numbers=layout)

    name = f"{rank}d_{layout[0]}_{window}_{stride}"
    if draw.random() < 0.5:
        return name, f, [x, w]
    dy = array(jax.eval_shape(f, x, w).shape)
    return "grad_" + name, lambda x, w, dy: jax.vjp(f, x, w)[1](dy), [x, w, dy]


def cases(families):
    """COUNT programs of FAMILIES, or of all of these"""
    chosen = os.environ.get("FAMILIES", "")
    names = chosen.split(",") if chosen else list(families)
    for _ in range(int(os.environ.get("COUNT", "100"))):
        name = draw.choice(names)
        op, function, values = FAMILIES[name]()
        sizes = "_".join(f"{jnp.asarray(v).dtype}[{','.join(map(str, v.shape))}]" for v in values)
        yield f"{name}.{op}({sizes})".replace(" ", ""), function, values


CASES = cases(list(FAMILIES))
