"""Products and reductions with a short side, for bench/turns.py: few rows by many columns (layers of small batches), sums of few terms, tall matrices by
narrow ones, long sums, gradients of kernels, magnitudes of complex numbers, and rows of a few elements."""
import jax
import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(0)
CASES = []


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def complexes(*shape):
    return (floats(*shape) + 1j * floats(*shape)).astype(np.complex64)


def products(kind, make, shapes):
    for m, k, n in shapes:
        CASES.append((f"{kind}_{m}x{k}x{n}", lambda a, b: a @ b, (make(m, k), make(k, n))))


products("few_rows", floats, [(128, 768, 3072), (128, 3072, 768), (128, 768, 768), (128, 768, 2304), (64, 768, 3072), (100, 1024, 1024), (256, 768, 3072),
                              (64, 1024, 4096), (48, 512, 2048), (196, 384, 1536), (77, 512, 512), (40, 1024, 4096), (50, 512, 512)])  # fmt: skip
products("few_terms", floats, [(200, 40, 3000), (200, 64, 3000), (128, 24, 8200), (128, 24, 8192), (64, 40, 3000), (100, 100, 3000), (50, 40, 10000), (200, 80, 900),
                               (48, 64, 4000), (300, 30, 900), (100, 64, 1000), (256, 64, 4096), (2000, 20, 700)])  # fmt: skip
products("fewer_rows", floats, [(16, 1024, 1024), (16, 2048, 2048), (32, 768, 768), (24, 1024, 4096), (13, 1024, 2048), (36, 768, 768), (20, 3072, 768), (32, 700, 700)])
products("long_sums", floats, [(96, 8192, 96), (128, 8192, 128), (128, 2048, 128), (200, 8192, 200), (256, 4096, 256), (100, 5000, 96), (30, 4000, 300), (200, 8000, 60)])
products("tall", floats, [(3072, 768, 32), (2000, 512, 32), (1000, 1000, 32), (500, 700, 24), (256, 768, 32), (4096, 1000, 28), (4096, 1024, 32)])
products("complex", complexes, [(17, 9000, 40), (64, 4000, 64), (8, 20000, 8), (100, 1100, 60), (4, 3000, 100), (1, 4000, 300)])
for m, k, n in [(64, 768, 768), (128, 3072, 768), (64, 512, 2000)]:
    CASES.append((f"few_rows_nt_{m}x{k}x{n}", lambda a, b: a @ b.T, (floats(m, k), floats(n, k))))
    CASES.append((f"few_rows_tn_{m}x{k}x{n}", lambda a, b: a.T @ b, (floats(k, m), floats(k, n))))

for size, kernel, features, batch in [(28, 3, 64, 8), (56, 3, 64, 8), (56, 1, 64, 8), (32, 5, 32, 8), (56, 7, 24, 4), (256, 3, 16, 2)]:
    x, dy = floats(batch, size, size, features), floats(batch, size, size, features)
    w = floats(kernel, kernel, features, features)

    def gradient(x, dy, w=w):
        return jax.vjp(lambda w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), w)[1](dy)[0]

    CASES.append((f"kernel_gradient_{batch}x{size}x{features}_k{kernel}", gradient, (x, dy)))

for n in (1 << 16, 1 << 20):
    CASES.append((f"magnitudes_{n}", jnp.abs, (complexes(n),)))
    CASES.append((f"gelu_f16_{n}", jax.nn.gelu, (floats(n).astype(np.float16),)))

for n in (10, 11, 13, 15, 16, 20, 24, 31):
    x = floats(300_000 // n, n)
    CASES.append((f"rows_max_{n}", lambda a: a.max(-1), (x,)))
    CASES.append((f"rows_sum_{n}", lambda a: a.sum(-1), (x,)))
    CASES.append((f"rows_softmax_{n}", lambda a: jax.nn.softmax(a, -1), (x,)))
    CASES.append((f"rows_layer_norm_{n}", lambda a: (a - a.mean(-1, keepdims=True)) / jnp.sqrt(a.var(-1, keepdims=True) + 1e-5), (x,)))
for n in (3, 7, 12, 24):
    bits = random.random((30_000, n)) < 0.999
    CASES.append((f"columns_all_{n}", lambda a: a.all(0), (bits,)))
    CASES.append((f"columns_max_s8_{n}", lambda a: a.max(0), ((floats(30_000, n) * 30).astype(np.int8),)))
for n in (2, 3, 4):
    for kind in (np.float32, np.int8, np.float16):
        x = (floats(100_000 // n, n) * 3).astype(kind)
        CASES.append((f"rows_cumsum_{np.dtype(kind).name}_{n}", lambda a: jnp.cumsum(a, -1, dtype=a.dtype), (x,)))
