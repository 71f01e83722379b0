"""Calls, transfers and compiling of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from sxs.registry import Registrar

case = Registrar("held_out")

# dispatch ---------------------------------------------------------------------------------------------------------


def vector(n, **options):
    return lambda g: (g.normal(n, **options),)


@case("dispatch", lambda g: (g.normal(12), g.normal(12), np.float32(0.3), np.int32(2)))
def scalar_arguments(x, y, rate, n):
    return x - rate * y * n, rate + 1


@case("dispatch", lambda g: (g.normal(64, 6),))
def outputs_30_small(x):
    return [x[i] * (i + 1) for i in range(30)]


@case("dispatch", lambda g: ({"layers": [{"w": g.normal(9, 11), "b": g.zeros(11)} for _ in range(25)]},
                             {"layers": [{"w": g.normal(9, 11), "b": g.ones(11)} for _ in range(25)]}))  # fmt: skip
def tree_50_leaves_sgd(params, grads):
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)


@case("dispatch", lambda g: ({f"k{i}": g.normal(40, 30) for i in range(20)}, g.normal(30)), carry=1, donate=(0,))
def donated_tree_20(tree, x):
    return jax.tree.map(lambda p: p * 0.99 + 0.01 * x, tree), x.sum()


@case("dispatch", lambda g: (g.normal(3, 5), g.ints(0, 9, 3, 5), g.ints(0, 2, 3, 5, dtype="bool"),
                             g.normal(5, dtype="bf16")), tol=2e-2)  # fmt: skip
def mixed_dtypes_tiny(x, i, flag, b):
    return jnp.where(flag, x, x + i), i + 1, ~flag, b * 2


@case.host("put_tree_40_small", lambda g: ({f"a{i}": g.normal(7, 9) for i in range(40)},))
def put_tree_40_small(c):
    tree = c.inputs[0]
    return lambda: c.jax.block_until_ready(c.put(tree))


@case.host("put_u8_image_batch", lambda g: (g.ints(0, 256, 16, 96, 96, 3, dtype="u8"),))
def put_u8_image_batch(c):
    x = c.inputs[0]
    return lambda: c.put(x).block_until_ready()


@case.host("put_bf16_transposed_2mb", lambda g: (g.normal(1024, 1024, dtype="bf16").T,))
def put_bf16_transposed_2mb(c):
    x = c.inputs[0]
    return lambda: c.put(x).block_until_ready()


@case.host("put_and_get_i32_300kb", lambda g: (g.ints(0, 1000, 75000),))
def put_and_get_i32_300kb(c):
    x = c.inputs[0]
    return lambda: np.asarray(c.put(x))


@case.host("get_scalar_loss_20_steps", lambda g: (g.normal(30, 10), g.normal(10)))
def get_scalar_loss_20_steps(c):
    step = c.jax.jit(lambda w, x: (w * 0.99, (x @ w).sum()))
    x, w0 = c.put(c.inputs[0]), c.put(c.inputs[1])

    def run():
        w, total = w0, 0.0
        for _ in range(20):
            w, loss = step(w, x)
            total += float(loss)
        return total

    return run


@case.host("get_bool_mask_1mb", vector(1 << 20))
def get_bool_mask_1mb(c):
    f = c.jax.jit(lambda x: x > 0)
    x = c.put(c.inputs[0])
    return lambda: np.asarray(f(x)).any()


@case.host("chain_of_30_calls_two_arguments", lambda g: (g.normal(33, 17), g.normal(17)))
def chain_of_30_calls_two_arguments(c):
    f = c.jax.jit(lambda x, b: c.jnp.tanh(x + b) * 0.9)
    x0, b = c.put(c.inputs[0]), c.put(c.inputs[1])

    def run():
        x = x0
        for _ in range(30):
            x = f(x, b)
        return x.block_until_ready()

    return run


@case.host("chain_of_two_programs_tree", lambda g: ({"w": g.normal(20, 20), "b": g.normal(20)}, g.normal(8, 20)))
def chain_of_two_programs_tree(c):
    grads = c.jax.jit(c.jax.grad(lambda p, x: c.jnp.square(x @ p["w"] + p["b"]).mean()))
    update = c.jax.jit(lambda p, g: c.jax.tree.map(lambda p, g: p - 0.1 * g, p, g))
    p0, x = c.put(c.inputs[0]), c.put(c.inputs[1])

    def run():
        p = p0
        for _ in range(10):
            p = update(p, grads(p, x))
        return c.jax.block_until_ready(p)

    return run


@case.host("python_number_arguments_20", vector(100))
def python_number_arguments_20(c):
    f = c.jax.jit(lambda x, a, n: x * a + n)
    x0 = c.put(c.inputs[0])

    def run():
        x = x0
        for i in range(20):
            x = f(x, 0.5, i)
        return x.block_until_ready()

    return run


@case.host("eager_indexing_and_reductions", lambda g: (g.normal(50, 40), g.ints(0, 50, 12)))
def eager_indexing_and_reductions(c):
    x, i = c.put(c.inputs[0]), c.put(c.inputs[1])

    def run():
        y = x[3:30] - x.mean(0)
        z = x[i].max(1) + x[:, 0][i]
        w = x.at[2, 5].set(1.0).T * y[:, :7].sum() + z.argmax()
        return c.jax.block_until_ready((w, c.jnp.sort(z)[:3], c.jnp.concatenate([z, y[0]]).std()))

    return run


@case.host("eager_training_step_small_mlp", lambda g: (g.dense(12, 16), g.dense(16, 3), g.normal(20, 12)))
def eager_training_step_small_mlp(c):
    jnp, p0, x = c.jnp, c.put(list(c.inputs[:2])), c.put(c.inputs[2])

    def loss(p):
        return jnp.square(jnp.tanh(x @ p[0]["w"] + p[0]["b"]) @ p[1]["w"] + p[1]["b"]).mean()

    return lambda: c.jax.block_until_ready(c.jax.tree.map(lambda p, g: p - 0.1 * g, p0, c.jax.grad(loss)(p0)))


@case.host("compile_5_small_mixed", lambda g: (g.normal(24, 24), g.ints(0, 24, 10)))
def compile_5_small_mixed(c):
    x, i = c.put(c.inputs[0]), c.put(c.inputs[1])
    jnp, jax = c.jnp, c.jax

    def run():
        jax.clear_caches()
        fs = [lambda x, i: jnp.sort(x, axis=0)[i], lambda x, i: (x @ x.T).max(1),
              lambda x, i: lax.scan(lambda h, r: (jnp.tanh(h + r), h), x[0], x)[1],
              jax.grad(lambda x, i: nn.logsumexp(x[i])), lambda x, i: jnp.linalg.norm(x) + i.sum()]  # fmt: skip
        return jax.block_until_ready([jax.jit(f)(x, i) for f in fs])

    return run


@case.host("compile_mlp_training_step",
           lambda g: ([g.dense(20, 32), g.dense(32, 32), g.dense(32, 1)], g.normal(16, 20)))  # fmt: skip
def compile_mlp_training_step(c):
    p, x = c.put(c.inputs[0]), c.put(c.inputs[1])
    jax, jnp = c.jax, c.jnp

    def run():
        jax.clear_caches()

        def loss(p):
            h = x
            for layer in p[:-1]:
                h = jax.nn.gelu(h @ layer["w"] + layer["b"])
            return jnp.square(h @ p[-1]["w"] + p[-1]["b"]).mean()

        step = jax.jit(lambda p: jax.tree.map(lambda p, g: p - 0.1 * g, p, jax.grad(loss)(p)))
        return jax.block_until_ready(step(p))

    return run
