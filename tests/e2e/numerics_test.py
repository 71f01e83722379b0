"""Mathematical functions: a short form of ./dev numerics, which fails where a bound is exceeded; the same bits for any number of threads and from run to run; products that are
added unrounded, whatever is fused with them, and chains of bf16, unless excess precision is not allowed."""
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ["STROP_SOURCE_DIR"])
TOOL = ROOT / "dev_tools" / "numerics.py"
FUNCTIONS = ["exponential", "log", "log_plus_one", "tanh", "power", "sqrt", "cbrt", "sinh", "asin", "acosh", "erf", "cosine"]

PROGRAM = """
import hashlib, os
import jax, numpy as np
from jax import lax, numpy as jnp
jax.config.update("jax_enable_x64", True)
digest = hashlib.sha256()
for dtype in ("float32", "float64", "complex64"):
    x = np.random.default_rng(3).standard_normal((700, 1031)).astype(dtype)
    if dtype == "complex64":
        x = x + 1j * np.random.default_rng(4).standard_normal(x.shape).astype("float32")
    programs = [lambda x: jnp.exp(x) * jnp.tanh(x), lambda x: jnp.log(x * x + 2), jnp.sin, lambda x: jnp.cumsum(jnp.cos(x), axis=1),
                lambda x: jnp.sum(x, axis=0), jnp.sum, lambda x: x[:, :600] @ x[:600, :300], lambda x: jax.nn.softmax(x.real, axis=1), lambda x: jnp.sort(x.real)]
    if dtype != "complex64":
        programs += [lax.erf, lax.lgamma, jnp.var, lambda x: lax.pow(abs(x), x)]
    for program in programs:
        digest.update(np.asarray(jax.jit(program)(x)).tobytes())
print(digest.hexdigest())
"""

CONTRACTION = """
import jax, numpy as np
from jax import lax, numpy as jnp
x, y = (jnp.full((8, 256), v, jnp.float32) for v in (1 + 2**-12, 1 + 2**-11))  # x x - y is 2^-24; rounded, x x is y
left = lambda x, y: x * x - y
programs = {"alone": left, "reduced": lambda x, y: jnp.max(left(x, y), axis=1), "in a loop": lambda x, y: lax.fori_loop(0, 3, lambda i, s: left(x, y) + 0 * s, x),
            "scalars in a loop": lambda x, y: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, left(x[0, 0] + 0 * s[1], y[0, 0])), (0, x[0, 0]))[1],
            "from the right": lambda x, y: -(y - x * x), "moved": lambda x, y: left(x, y).T, "sorted": lambda x, y: jnp.sort(left(x, y))}
wrong = {name: got for name, f in programs.items() if not np.all((got := np.asarray(jax.jit(f)(x, y))) == 2.0**-24)}
rounded = jax.jit(left, compiler_options={"xla_allow_excess_precision": False})(x, y)
if np.any(np.asarray(rounded)):
    wrong["rounded"] = rounded
shared = jax.jit(lambda x, y: (left(x, y), x * x))(x, y)  # the product is a result
if np.any(np.asarray(shared[0])):
    wrong["shared"] = shared
print(wrong or "contracted")
"""

UNROUNDED = """
import jax, numpy as np
from jax import numpy as jnp
x = jnp.full((8, 256), 1 + 2**-7, jnp.bfloat16)  # x x is 1 + 2^-6 + 2^-14, rounded 1 + 2^-6
y = jnp.full((8, 256), 1 + 2**-6, jnp.bfloat16)
left = lambda x, y: x * x - y
programs = {"alone": (left, 2.0**-14), "widened": (lambda x, y: (x * x).astype(jnp.float32) - y, 2.0**-14), "compared": (lambda x, y: x * x == y, 1), "converted": (lambda x, y: (x.astype(jnp.float32) * x).astype(x.dtype) - y, 0),
            "a largest element and who is it": (lambda x, y: jax.grad(lambda x: jnp.max(x * x * jnp.arange(1, 257, dtype=x.dtype), axis=1).sum())(x)[:, 255], 516)}
wrong = {name: got for name, (f, want) in programs.items() if not np.all((got := np.asarray(jax.jit(f)(x, y)).astype(np.float32)) == want)}
rounded = jax.jit(left, compiler_options={"xla_allow_excess_precision": False})(x, y)
if np.any(np.asarray(rounded).astype(np.float32)):
    wrong["rounded"] = rounded
print(wrong or "unrounded")
"""


def main():
    missing = [module for module in ("jax", "gmpy2", "mpmath") if not __import__("importlib.util").util.find_spec(module)]
    if missing:
        print(f"skipped: {', '.join(missing)} is not installed (./dev setup installs it)")
        return 77
    failed = []
    measured = subprocess.run([sys.executable, TOOL, "--quick", *FUNCTIONS, "--types=float32,float64,bfloat16,complex64"], capture_output=True, text=True)
    print(measured.stdout, measured.stderr[-2000:] if measured.returncode else "", sep="")
    if measured.returncode:
        failed.append("a bound is exceeded, or a special value is wrong")
    unknown = subprocess.run([sys.executable, TOOL, "no_such_function"], capture_output=True, text=True)
    if unknown.returncode != 2 or "no such function" not in unknown.stderr:
        failed.append("an unknown function is not refused")
    digests = {}
    for threads in (1, 2, 8, 8):
        run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=dict(os.environ, JAX_PLATFORMS="strop", STROP_NUM_THREADS=str(threads)))
        digests.setdefault(run.stdout.strip() or run.stderr[-1000:], []).append(threads)
    print("digests by number of threads:", digests)
    if len(digests) != 1 or len(next(iter(digests))) != hashlib.sha256().digest_size * 2:
        failed.append("results depend on the number of threads, or on the run")
    contraction = subprocess.run([sys.executable, "-c", CONTRACTION], capture_output=True, text=True, env=dict(os.environ, JAX_PLATFORMS="strop"))
    if contraction.stdout.strip() != "contracted":
        failed.append("products that are added: " + contraction.stdout + contraction.stderr[-1000:])
    unrounded = subprocess.run([sys.executable, "-c", UNROUNDED], capture_output=True, text=True, env=dict(os.environ, JAX_PLATFORMS="strop"))
    if unrounded.stdout.strip() != "unrounded":
        failed.append("chains of bf16: " + unrounded.stdout + unrounded.stderr[-1000:])
    print("FAILED: " + "; ".join(failed) if failed else "all as it should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
