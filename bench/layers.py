"""Layers one after the other, for bench/turns.py: products of a few rows by weights that no cache has kept since the call before, as in the models that
people serve. Each program multiplies one activation by many matrices."""
import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(0)
CASES = []


def layers(kind, rows, terms, columns, count, turned=False):
    def multiply(x, *weights):
        return tuple(x @ (w.T if turned else w) for w in weights)

    def numbers(*shape):
        return np.asarray(jnp.asarray(random.standard_normal(shape) * 0.05, dtype=kind))

    weights = [numbers(*((columns, terms) if turned else (terms, columns))) for _ in range(count)]
    CASES.append((f"layers_{np.dtype(kind).name}_{rows}x{terms}x{columns}{'_nt' if turned else ''}", multiply, (numbers(rows, terms), *weights)))


for kind in (jnp.float32, jnp.bfloat16):
    for rows in (1, 8, 16, 32, 64, 128):
        layers(kind, rows, 4096, 4096, 4)
    layers(kind, 16, 4096, 4096, 4, turned=True)
    layers(kind, 128, 768, 3072, 40)
    layers(kind, 128, 3072, 768, 40)
    layers(kind, 32, 2048, 5632, 6)
    layers(kind, 16, 1024, 4096, 24)
