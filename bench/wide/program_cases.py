"""Whole programs of users that combine what other files of the wide set have apart: losses over lattices, routing,
message passing, flows, trees, filters over images and signals; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from model_cases import dense, mlp, mlp_params, train, xent
from sxs.registry import Registrar

case = Registrar("held_out")

# losses and searches over lattices ------------------------------------------------------------------


@case("model", lambda g: (g.normal(6, 50, 40), g.ints(1, 40, 6, 9)), tol=2e-3)
def ctc_loss_grad_50x40(logits, labels):
    batch, length = labels.shape

    def loss(logits):
        log_p = nn.log_softmax(logits)
        blanked = jnp.zeros((batch, 2 * length + 1), jnp.int32).at[:, 1::2].set(labels)
        skips = jnp.pad((blanked[:, 2:] != 0) & (blanked[:, 2:] != blanked[:, :-2]), ((0, 0), (2, 0)))
        start = jnp.full(blanked.shape, -1e5, log_p.dtype).at[:, 0].set(log_p[:, 0, 0])
        start = start.at[:, 1].set(jnp.take_along_axis(log_p[:, 0], labels[:, :1], 1)[:, 0])

        def step(a, l):  # noqa: E741
            one = jnp.pad(a[:, :-1], ((0, 0), (1, 0)), constant_values=-1e5)
            two = jnp.pad(a[:, :-2], ((0, 0), (2, 0)), constant_values=-1e5)
            new = jnp.logaddexp(a, one)
            new = jnp.where(skips, jnp.logaddexp(new, two), new)
            return new + jnp.take_along_axis(l, blanked, 1), None

        a, _ = lax.scan(step, start, jnp.moveaxis(log_p, 1, 0)[1:])
        return -jnp.logaddexp(a[:, -1], a[:, -2]).mean()

    return jax.value_and_grad(loss)(logits)


@case("model", lambda g: (g.normal(11, 11), g.normal(20, 40, 11), g.ints(0, 11, 20, 40)), tol=2e-3)
def crf_gradient_and_viterbi_40x11(moves, scores, tags):
    def loss(moves, scores):
        def step(a, e):
            return nn.logsumexp(a[:, :, None] + moves[None] + e[:, None, :], 1), None

        a, _ = lax.scan(step, scores[:, 0], jnp.moveaxis(scores, 1, 0)[1:])
        gold = jnp.take_along_axis(scores, tags[..., None], -1)[..., 0].sum(1)
        return (nn.logsumexp(a, -1) - gold - moves[tags[:, :-1], tags[:, 1:]].sum(1)).mean()

    def step(a, e):
        s = a[:, :, None] + moves[None]
        return s.max(1) + e, s.argmax(1)

    def back(tag, came_from):
        return jnp.take_along_axis(came_from, tag[:, None], 1)[:, 0], tag

    last, came_from = lax.scan(step, scores[:, 0], jnp.moveaxis(scores, 1, 0)[1:])
    first, path = lax.scan(back, last.argmax(-1), came_from, reverse=True)
    return jax.value_and_grad(loss, (0, 1))(moves, scores), jnp.concatenate([first[None], path])


@case("model", lambda g: (g.normal(3, 24, 13, 20), g.ints(1, 20, 3, 12)), tol=2e-3)
def rnn_transducer_loss_grad_24x12(logits, labels):
    def loss(logits):
        log_p = nn.log_softmax(logits)
        blank = log_p[..., 0]
        emit = jnp.take_along_axis(log_p[:, :, :-1], labels[:, None, :, None], -1)[..., 0]

        def cell(left, x):
            new = jnp.logaddexp(x[0], left + x[1])
            return new, new

        def row(a, x):
            base = a + x[0]
            _, rest = lax.scan(cell, base[:, 0], (base[:, 1:].T, x[1].T))
            return jnp.concatenate([base[:, :1], rest.T], 1), None

        start = jnp.pad(jnp.cumsum(emit[:, 0], 1), ((0, 0), (1, 0)))
        a, _ = lax.scan(row, start, (jnp.moveaxis(blank, 1, 0)[:-1], jnp.moveaxis(emit, 1, 0)[1:]))
        return -(a[:, -1] + blank[:, -1, -1]).mean()

    return jax.value_and_grad(loss)(logits)


# routing and message passing --------------------------------------------------------------------------


def experts(g, d, n):
    return {"r": g.weight(d, n), "a": g.weight(n, d, 2 * d, fan_in=d), "b": g.weight(n, 2 * d, d, fan_in=2 * d)}


@case("model", lambda g: (experts(g, 96, 6), g.normal(330, 96)), tol=2e-3)
def moe_sorted_into_slots_330(p, x):
    tokens, slots = x.shape[0], 110
    weight, expert = lax.top_k(nn.softmax(x @ p["r"]), 2)
    weight = weight / weight.sum(-1, keepdims=True)
    order = jnp.argsort(expert.reshape(-1))
    expert = expert.reshape(-1)[order]
    slot = jnp.arange(2 * tokens) - jnp.searchsorted(expert, jnp.arange(6))[expert]
    inputs = jnp.zeros((6, slots, x.shape[1]), x.dtype).at[expert, slot].set(x[order // 2], mode="drop")
    y = jnp.einsum("ecf,efd->ecd", nn.relu(jnp.einsum("ecd,edf->ecf", inputs, p["a"])), p["b"])
    y = jnp.where((slot < slots)[:, None], y[expert, jnp.minimum(slot, slots - 1)], 0)
    return jnp.zeros_like(x).at[order // 2].add(y * weight.reshape(-1)[order][:, None])


def attention_layers(g, d, heads):
    return [{"l": g.weight(d, d), "r": g.weight(d, d), "a": g.normal(heads, d // heads), "b": g.zeros(d)}
            for _ in range(2)]  # fmt: skip


@case("model", lambda g: (attention_layers(g, 24, 4), g.normal(900, 24), g.ints(0, 900, 5000), g.ints(0, 900, 5000),
                          g.ints(0, 6, 900)), tol=3e-3)  # fmt: skip
def graph_attention_v2_train_900(p, x, source, target, y):
    n = x.shape[0]

    def loss(p, x):
        for layer in p:
            l, r = ((x @ layer[k]).reshape(n, *layer["a"].shape) for k in "lr")  # noqa: E741
            e = (nn.leaky_relu(l[source] + r[target], 0.2) * layer["a"]).sum(-1)
            most = jax.ops.segment_max(e, target, n)
            w = jnp.exp(e - jnp.where(jnp.isfinite(most), most, 0)[target])
            w = w / (jax.ops.segment_sum(w, target, n)[target] + 1e-9)
            x = nn.elu(jax.ops.segment_sum(w[..., None] * l[source], target, n).reshape(n, -1) + layer["b"])
        return xent(x[:, :6], y)

    return train(loss, p, x)


@case("model", lambda g: ({"t": g.normal(3, 4096, 2), "m": mlp_params(6, 32, 3)(g)}, g.uniform(1500, 3),
                          g.uniform(1500, 3)), tol=3e-3)  # fmt: skip
def hashed_grid_features_train_1500(p, x, y):
    def loss(p, x):
        features = []
        for level, table in enumerate(p["t"]):
            scaled = x * (12 * 2**level)
            low = jnp.floor(scaled)
            part, low, sum_ = scaled - low, low.astype(jnp.uint32), 0
            for corner in range(8):
                offset = np.array([(corner >> k) & 1 for k in range(3)], np.uint32)
                at = low + offset
                key = at[:, 0] ^ (at[:, 1] * np.uint32(2654435761)) ^ (at[:, 2] * np.uint32(805459861))
                weight = jnp.prod(jnp.where(offset == 1, part, 1 - part), -1)
                sum_ = sum_ + weight[:, None] * table[key % 4096]
            features.append(sum_)
        return jnp.square(mlp(p["m"], jnp.concatenate(features, -1)) - y).mean()

    return train(loss, p, x)


# densities --------------------------------------------------------------------------------------------


@case("model", lambda g: ([mlp_params(3, 40, 3 * 23)(g) for _ in range(2)], g.normal(400, 6)), tol=2e-3)
def rational_spline_flow_train_400(p, x):
    bins, half = 8, 3

    def spline(x, raw):
        w, h = (jnp.pad(jnp.cumsum(nn.softmax(raw[..., k * bins : (k + 1) * bins]) * 6, -1),
                        ((0, 0), (0, 0), (1, 0))) - 3 for k in range(2))  # fmt: skip
        slope = jnp.pad(nn.softplus(raw[..., 2 * bins :]) + 1e-3, ((0, 0), (0, 0), (1, 1)), constant_values=1.0)
        inside, at = (x > -3) & (x < 3), jnp.clip(x, -2.999, 2.999)
        k = jnp.clip((at[..., None] >= w).sum(-1) - 1, 0, bins - 1)[..., None]
        pick = lambda a, k=k: jnp.take_along_axis(a, k, -1)[..., 0]  # noqa: E731
        x0, x1, y0, y1, s0, s1 = pick(w), pick(w, k + 1), pick(h), pick(h, k + 1), pick(slope), pick(slope, k + 1)
        s, z = (y1 - y0) / (x1 - x0), (at - x0) / (x1 - x0)
        below = s + (s1 + s0 - 2 * s) * z * (1 - z)
        y = y0 + (y1 - y0) * (s * z * z + s0 * z * (1 - z)) / below
        log = 2 * jnp.log(s) + jnp.log(s1 * z * z + 2 * s * z * (1 - z) + s0 * (1 - z) ** 2) - 2 * jnp.log(below)
        return jnp.where(inside, y, x), jnp.where(inside, log, 0.0)

    def loss(p, x):
        total = 0
        for net in p:
            fixed, moved = x[:, :half], x[:, half:]
            moved, log = spline(moved, mlp(net, fixed).reshape(-1, half, 3 * bins - 1))
            x, total = jnp.concatenate([moved, fixed], -1), total + log.sum(-1)
        return (0.5 * jnp.square(x).sum(-1) - total).mean()

    return train(loss, p, x)


@case("model", lambda g: (g.uniform(350, 350), g.normal(350, 2)), tol=5e-3)
def tsne_steps_350(p, y):
    p = p / p.sum()

    def step(s, _):
        y, v = s
        q = jnp.square(y).sum(1)
        near = 1 / (1 + q[:, None] + q - 2 * y @ y.T) * (1 - jnp.eye(y.shape[0], dtype=y.dtype))
        w = (p - near / near.sum()) * near
        v = 0.5 * v - 40 * (w.sum(1)[:, None] * y - w @ y)
        return (y + v, v), None

    return lax.scan(step, (y, jnp.zeros_like(y)), None, length=8)[0]


# trees and tables -------------------------------------------------------------------------------------


@case("model", lambda g: (g.normal(800, 24), g.ints(0, 24, 60, 8), g.normal(60, 8), g.normal(60, 256)), ref="cpu",
      tol=2e-3)  # fmt: skip
def oblivious_trees_800x60(x, feature, threshold, values):
    leaf = ((x[:, feature] > threshold).astype(jnp.int32) * (2 ** jnp.arange(8))).sum(-1)
    return nn.sigmoid(jnp.take_along_axis(values[None], leaf[:, :, None], 2)[..., 0].sum(1))


@case("model", lambda g: (g.normal(1500, 14), g.ints(0, 14, 15, 255), g.normal(15, 255), g.normal(15, 255)),
      ref="cpu", tol=2e-3)  # fmt: skip
def forest_walk_1500x15(x, feature, threshold, values):
    def tree(feature, threshold, values):
        def step(_, i):
            return 2 * i + 1 + (jnp.take_along_axis(x, feature[i][:, None], 1)[:, 0] > threshold[i])

        return values[lax.fori_loop(0, 7, step, jnp.zeros(x.shape[0], jnp.int32))]

    return jax.vmap(tree)(feature, threshold, values).mean(0)


@case("indexing", lambda g: (g.ints(0, 256, 700, 720, dtype="u8"), g.normal(16), g.normal(700, 45)))
def four_bit_codes_by_table_and_scale(packed, table, scale):
    codes = jnp.stack([packed & 15, packed >> 4], -1).reshape(700, 45, 32)
    return table[codes.astype(jnp.int32)] * scale[..., None]


@case("indexing", lambda g: (g.ints(0, 27, 300000), g.normal(27), g.normal(5000, 20), g.ints(0, 20, 5000, 6)))
def look_up_27_and_in_rows_of_20(kind, table, rows, columns):
    return table[kind], jnp.take_along_axis(rows, columns, 1)


@case("model", lambda g: (g.normal(3000, 12), g.ints(0, 12, 3000)), ref="cpu", tol=3e-3)
def classification_report_3000x12(logits, y):
    n, classes = logits.shape
    p = nn.softmax(logits)
    guess = p.argmax(-1)
    table = jnp.zeros((classes, classes), jnp.int32).at[y, guess].add(1)
    f1 = 2 * jnp.diagonal(table) / jnp.maximum(table.sum(0) + table.sum(1), 1)

    def area(score, is_one):
        rank = jnp.zeros(n).at[jnp.argsort(score)].set(jnp.arange(1, n + 1, dtype=jnp.float32))
        ones = is_one.sum()
        return (jnp.where(is_one, rank, 0).sum() - ones * (ones + 1) / 2) / jnp.maximum(ones * (n - ones), 1)

    sure = p.max(-1)
    error = jax.ops.segment_sum((guess == y) - sure, jnp.minimum((sure * 10).astype(int), 9), 10)
    return f1, jax.vmap(area, (1, 0))(p, jnp.arange(classes)[:, None] == y), jnp.abs(error).sum() / n


# sums of what differs from row to row -----------------------------------------------------------------


@case("reduction", lambda g: (g.normal(900, 230), g.normal(900), g.normal(230)))
def squares_of_centred_rows_900x230(x, mean, scale):
    return jnp.square(x - mean[:, None]).sum(), jnp.abs(x * scale).mean()


@case("reduction", lambda g: (g.normal(4000, 10), g.ints(0, 10, 4000), g.normal(6, 700, 27), g.normal(6, 700)))
def losses_of_ten_classes_and_of_27(logits, y, x, weight):
    picked = jnp.take_along_axis(nn.log_softmax(logits), y[:, None], 1)
    return -picked.mean(), jnp.square(nn.softmax(logits) - nn.one_hot(y, 10)).sum(), (x * weight[..., None]).sum((1, 2))


# fields, images, signals ------------------------------------------------------------------------------


@case("control", lambda g: (g.uniform(90, 110, lo=1, hi=4),))
def maxwell_yee_grid_90x110(permittivity):
    def step(s, i):
        e, hx, hy = s
        hx = hx.at[:, :-1].add(-0.5 * (e[:, 1:] - e[:, :-1]))
        hy = hy.at[:-1].add(0.5 * (e[1:] - e[:-1]))
        curl = hy[1:, 1:] - hy[:-1, 1:] - hx[1:, 1:] + hx[1:, :-1]
        e = e.at[1:, 1:].add(0.5 * curl / permittivity[1:, 1:])
        e = e.at[45, 55].add(jnp.sin(0.3 * i))
        return (e, hx, hy), e[30, 40]

    start = jnp.zeros_like(permittivity)
    return lax.scan(step, (start, start, start), jnp.arange(50, dtype=permittivity.dtype))


@case("control", lambda g: (g.normal(120, 90),))
def relaxation_between_borders_120x90(u):
    def step(_, u):
        new = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u = u.at[1:-1, 1:-1].add(0.8 * (new - u[1:-1, 1:-1]))
        u = u.at[0].multiply(0.99)
        return u.at[:, -1].set(u[:, -2])

    return lax.fori_loop(0, 60, step, u)


@case("conv", lambda g: (g.normal(2, 9000), g.normal(72)), tol=1e-3)
def resample_by_three_halves_9000(x, taps):
    y = lax.conv_general_dilated(x[:, None], taps[None, None], (2,), [(36, 36)], lhs_dilation=(3,))
    return y[:, 0]


@case("conv", lambda g: (g.normal(3, 21, 33, 24), g.weight(5, 5, 24, 16)), tol=1e-3)
def dilated_by_four_strided_by_six(x, w):
    return lax.conv_general_dilated(x, w, (6, 2), ((7, 7), (4, 5)), lhs_dilation=(4, 3),
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))  # fmt: skip


@case("conv", lambda g: (g.uniform(120, 100, 3),))
def bilateral_filter_120x100(x):
    h, w = x.shape[:2]
    padded = jnp.pad(x, ((3, 3), (3, 3), (0, 0)), mode="edge")
    sums = weights = 0
    for i in range(7):
        for j in range(7):
            s = padded[i : i + h, j : j + w]
            near = jnp.exp(-((i - 3) ** 2 + (j - 3) ** 2) / 18 - jnp.square(s - x).sum(-1, keepdims=True) / 0.02)
            sums, weights = sums + near * s, weights + near
    return sums / weights


@case("conv", lambda g: (g.uniform(2, 150, 170),))
def edges_thinned_along_gradients(x):
    _, h, w = x.shape
    p = jnp.pad(x, ((0, 0), (1, 1), (1, 1)), mode="edge")
    at = lambda a, i, j: a[:, 1 + i : 1 + i + h, 1 + j : 1 + j + w]  # noqa: E731
    gx = sum(k * (at(p, i, 1) - at(p, i, -1)) for i, k in ((-1, 1), (0, 2), (1, 1)))
    gy = sum(k * (at(p, 1, j) - at(p, -1, j)) for j, k in ((-1, 1), (0, 2), (1, 1)))
    size = jnp.sqrt(gx * gx + gy * gy + 1e-12)
    way = jnp.round(jnp.arctan2(gy, gx) * np.float32(4 / np.pi)).astype(jnp.int32) % 4
    padded = jnp.pad(size, ((0, 0), (1, 1), (1, 1)))
    ahead, behind = (
        jnp.select([way == k for k in range(3)], [at(padded, *d) for d in ds[:3]], at(padded, *ds[3]))
        for ds in (((0, 1), (1, 1), (1, 0), (1, -1)), ((0, -1), (-1, -1), (-1, 0), (-1, 1)))
    )
    return jnp.where((size >= ahead) & (size >= behind), size, 0)


@case("indexing", lambda g: (g.uniform(90, 70, 3), np.float32(0.4)), tol=3e-3)
def rotate_by_map_coordinates_90x70(x, angle):
    h, w = x.shape[:2]
    i, j = jnp.meshgrid(jnp.arange(h, dtype=x.dtype) - h / 2, jnp.arange(w, dtype=x.dtype) - w / 2, indexing="ij")
    c, s = jnp.cos(angle), jnp.sin(angle)
    at = [c * i - s * j + h / 2, s * i + c * j + w / 2]
    one = lambda plane: jax.scipy.ndimage.map_coordinates(plane, at, order=1, mode="nearest")  # noqa: E731
    return jax.vmap(one, 2, 2)(x)


@case("model", lambda g: (g.normal(3, 8000), g.uniform(257, 26), g.normal(26, 13)), tol=5e-3)
def cepstra_of_frames_8000(x, mel, cosines):
    frames = x[:, np.arange(48)[:, None] * 160 + np.arange(400)] * jnp.hanning(400).astype(x.dtype)
    power = jnp.square(jnp.abs(jnp.fft.rfft(frames, 512)))
    logs = jnp.log(power @ mel + 1e-6)
    return (logs - logs.mean(1, keepdims=True)) @ cosines


# training steps ---------------------------------------------------------------------------------------


@case("model", lambda g: ([{"v": g.weight(28, 28, 3, fan_in=84), "g": g.ones(28), "b": g.zeros(28)} for _ in range(4)],
                          g.normal(5, 28, 300), g.normal(5)), tol=2e-3)  # fmt: skip
def temporal_convolutions_weight_norm_train(p, x, y):
    def loss(p, x):
        for k, layer in enumerate(p):
            norm = jnp.sqrt(jnp.square(layer["v"]).sum((1, 2)) + 1e-12)
            w = layer["v"] * (layer["g"] / norm)[:, None, None]
            h = lax.conv_general_dilated(x, w, (1,), [(2 * 2**k, 0)], rhs_dilation=(2**k,))
            x = nn.relu(x + h + layer["b"][:, None])
        return jnp.square(x[:, :, -1].sum(1) - y).mean()

    return train(loss, p, x)


@case("model", lambda g: ({"a": g.weight(4, 4, 3, 20), "b": g.weight(4, 4, 20, 40), "h": g.dense(6 * 6 * 40, 1)},
                          g.normal(10, 24, 24, 3), g.normal(10, 24, 24, 3), g.uniform(10, 1, 1, 1)), tol=2e-3)  # fmt: skip
def critic_with_gradient_penalty_b10(p, real, fake, part):
    def critic(p, x):
        for k in "ab":
            x = lax.conv_general_dilated(x, p[k], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = nn.leaky_relu(x, 0.2)
        return dense(p["h"], x.reshape(x.shape[0], -1))[:, 0]

    def loss(p, real, fake):
        slope = jax.grad(lambda x: critic(p, x).sum())(part * real + (1 - part) * fake)
        penalty = jnp.square(jnp.sqrt(jnp.square(slope).sum((1, 2, 3)) + 1e-8) - 1).mean()
        return critic(p, fake).mean() - critic(p, real).mean() + 10 * penalty

    return train(loss, p, real, fake)


@case("model", lambda g: (g.weight(160, 48), g.spd(160), g.spd(48), g.normal(70, 160), g.normal(70, 48)), tol=5e-3)
def shampoo_step_160x48(w, left, right, x, y):
    value, grad = jax.value_and_grad(lambda w: jnp.square(x @ w - y).mean())(w)
    left, right = 0.95 * left + grad @ grad.T, 0.95 * right + grad.T @ grad

    def root(m):
        values, vectors = jnp.linalg.eigh(m + 1e-2 * jnp.eye(m.shape[0], dtype=m.dtype))
        return (vectors * jnp.maximum(values, 1e-6) ** -0.25) @ vectors.T

    return w - 0.01 * root(left) @ grad @ root(right), left, right, value
