"""Products, convolutions and attention of halves and bytes, for bench/turns.py: what matrix instructions are for."""
import jax
import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(0)
CASES = []


def numbers(kind, *shape):
    if kind == "s8":
        return random.integers(-128, 127, shape).astype("int8")
    return np.asarray(jnp.asarray(random.standard_normal(shape), dtype={"bf16": jnp.bfloat16, "f16": jnp.float16}[kind]))


def product(kind, m, n, k, layout="nn", sums=None):
    """layout: n or t of each operand, as BLAS has them"""
    sums = jnp.int32 if kind == "s8" else sums
    a = numbers(kind, *((m, k) if layout[0] == "n" else (k, m)))
    b = numbers(kind, *((k, n) if layout[1] == "n" else (n, k)))
    dimensions = (((1 if layout[0] == "n" else 0,), (0 if layout[1] == "n" else 1,)), ((), ()))
    name = f"{layout}_{kind}{'_f32' if sums is jnp.float32 else ''}_{m}x{n}x{k}"
    CASES.append((name, lambda a, b: jax.lax.dot_general(a, b, dimensions, preferred_element_type=sums), (a, b)))


def batch(kind, count, m, n, k):
    sums = jnp.int32 if kind == "s8" else None
    dimensions = (((2,), (1,)), ((0,), (0,)))
    CASES.append((f"batch_{kind}_{count}x{m}x{n}x{k}", lambda a, b: jax.lax.dot_general(a, b, dimensions, preferred_element_type=sums),
                  (numbers(kind, count, m, k), numbers(kind, count, k, n))))


def convolution(kind, images, side, features, outputs, window, stride=1, layout="NHWC"):
    sums = jnp.int32 if kind == "s8" else None
    shape = (images, side, side, features) if layout == "NHWC" else (images, features, side, side)
    kernel = (window, window, features, outputs) if layout == "NHWC" else (outputs, features, window, window)
    letters = (layout, "HWIO" if layout == "NHWC" else "OIHW", layout)
    CASES.append((f"conv_{layout}_{kind}_{images}x{side}x{side}x{features}_{outputs}_{window}s{stride}",
                  lambda x, w: jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=letters, preferred_element_type=sums),
                  (numbers(kind, *shape), numbers(kind, *kernel))))


def attention(images, heads, length, features, causal=False):
    def attend(q, k, v):
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * features**-0.5
        if causal:
            scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)

    CASES.append((f"attention{'_causal' if causal else ''}_{images}x{heads}x{length}x{features}", attend,
                  tuple(numbers("bf16", images, heads, length, features) for _ in "qkv")))


for kind in ("bf16", "s8"):
    for m, n, k in ((128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (128, 3072, 768), (512, 768, 3072),
                    (2048, 768, 768), (64, 1024, 1024), (4096, 64, 64), (1000, 500, 300), (77, 333, 129), (32, 2048, 2048), (17, 512, 512)):
        product(kind, m, n, k)
    for layout in ("nt", "tn", "tt"):
        product(kind, 512, 512, 512, layout)
        product(kind, 1024, 768, 1024, layout)
    batch(kind, 8, 256, 256, 256)
    batch(kind, 64, 64, 64, 64)
    convolution(kind, 8, 28, 128, 128, 3)
    convolution(kind, 4, 56, 64, 64, 3)
    convolution(kind, 4, 14, 256, 256, 3)
    convolution(kind, 8, 28, 256, 64, 1)
    convolution(kind, 4, 28, 48, 96, 3)
    convolution(kind, 4, 56, 64, 128, 3, 2)
    convolution(kind, 4, 28, 128, 128, 3, layout="NCHW")
product("bf16", 512, 512, 512, sums=jnp.float32)
product("bf16", 1024, 1024, 1024, sums=jnp.float32)
product("f16", 512, 512, 512)
product("f16", 1024, 1024, 1024)
attention(2, 8, 256, 64)
attention(1, 8, 512, 64, causal=True)
attention(1, 4, 1024, 128)
