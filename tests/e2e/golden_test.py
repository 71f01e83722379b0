"""Programs with recorded results, from JAX on the plugin and from a file through `strop run`: both must give the record, from machine code only.

The records were made with XLA:CPU (jaxlib 0.10.2) and NumPy; each says how closely it must be met.
"""
import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "strop,cpu"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

STROP = Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop"
DEVICE = jax.devices("strop")[0]
failures = []


def check(name, good, told=""):
    print(f"  {'ok  ' if good else 'FAIL'} {name} {told}", flush=True)
    if not good:
        failures.append(name)


def strop(*arguments):
    result = subprocess.run([STROP, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"strop {' '.join(map(str, arguments))}\n{result.stdout}{result.stderr}")
    return result.stdout


def stored(array):
    """As .npy files hold types that NumPy does not have: their bytes"""
    array = np.asarray(array)
    return array.view(f"V{array.dtype.itemsize}") if array.dtype == ml_dtypes.bfloat16 else array


def run_file(text, suffix, arguments, dtypes):
    """What `strop run` makes of a program text"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / f"program{suffix}"
        program.write_text(text)
        np.savez(folder / "in.npz", **{f"arg{n}": stored(a) for n, a in enumerate(arguments)})
        strop("run", program, f"--in={folder / 'in.npz'}", f"--out={folder / 'out.npz'}")
        with np.load(folder / "out.npz") as out:
            return [out[key].view(dtype) for key, dtype in zip(out.files, dtypes, strict=True)]


def everywhere(name, function, arguments, accept):
    """Runs a function on the plugin, and its lowered texts through `strop run`; `accept` says what is wrong with a list of results, or ''"""
    leaves = jax.tree_util.tree_leaves(arguments)
    lowered = jax.jit(function).lower(*jax.device_put(arguments, DEVICE))
    compiled = lowered.compile()
    out = [np.asarray(x) for x in jax.tree_util.tree_leaves(compiled(*jax.device_put(arguments, DEVICE)))]
    wrong = accept(out)
    check(f"{name}: JAX", not wrong, wrong)
    interpreted = (compiled.cost_analysis() or {}).get("interpreted instructions")
    check(f"{name}: everything is machine code", interpreted == 0, f"({interpreted} interpreted)")
    for dialect, suffix in (("hlo", ".hlo"), ("stablehlo", ".mlir")):
        wrong = accept(run_file(lowered.as_text(dialect=dialect), suffix, leaves, [x.dtype for x in out]))
        check(f"{name}: strop run, {dialect}", not wrong, wrong)
    return out


def close(got, want, **tolerance):
    return "" if np.allclose(np.asarray(got, np.float64), want, **tolerance) else f"{np.asarray(got)} instead of {np.asarray(want)}"


def bfloat16_steps(x, y):
    """How many bfloat16 values lie between x and y"""
    bits = [v.view(np.int16).astype(np.int32) for v in (x, y)]
    line = [np.where(b < 0, -(b & 0x7FFF), b) for b in bits]
    return np.abs(line[0] - line[1])


def scaled_product(a, b):
    return -((a @ b) * 0.125)


def e01():
    """int8 by bfloat16: summed in float32, rounded to bfloat16 before the multiplication"""
    with jax.default_device(DEVICE):
        key = jax.random.PRNGKey(1701)
        a = np.asarray(jax.random.randint(key, (1024, 512), dtype=jnp.int8, minval=0, maxval=255))
        b = np.asarray(jax.random.normal(key, (512, 2048), dtype=jnp.bfloat16))
    check("E01: random int8", int(a.astype(np.int64).sum()) == 33312676 and zlib.crc32(a.tobytes()) == 0xC3221BDA)
    check("E01: random bfloat16", zlib.crc32(b.tobytes()) == 0x7C19C020)
    exact = -((a.astype(np.float64) @ b.astype(np.float64)) * 0.125)
    first = np.array([88.5, -123, 276, -71.5, 215, 130], ml_dtypes.bfloat16)

    def accept(out):
        error = np.abs(out[0].astype(np.float64) - exact).max()
        steps = bfloat16_steps(out[0][0, :6], first).max()
        total = out[0].astype(np.float64).sum()
        return "" if error <= 2 and steps <= 1 and abs(total / 92512126.99 - 1) < 1e-5 else f"error {error}, {steps} steps, sum {total}"

    everywhere("E01", scaled_product, (a, b), accept)


def e02():
    """A fusion as another compiler's GPU back end left it: its kind and its configuration mean nothing here, its computation does"""
    text = """HloModule fused, is_scheduled=true, entry_computation_layout={(s8[3,2]{1,0}, bf16[2,3]{1,0})->bf16[3,3]{1,0} }
%inside (p0: s8[3,2], p1: bf16[2,3]) -> bf16[3,3] {
%p0 = s8[3,2]{1,0} parameter(0)
%left = bf16[3,2]{1,0} convert(s8[3,2]{1,0} %p0)
%p1 = bf16[2,3]{1,0} parameter(1)
%product = bf16[3,3]{1,0} dot(bf16[3,2]{1,0} %left, bf16[2,3]{1,0} %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
%wide = f32[3,3]{1,0} convert(bf16[3,3]{1,0} %product)
%eighth = bf16[] constant(0.125)
%eighths = bf16[3,3]{1,0} broadcast(bf16[] %eighth), dimensions={}
%wide_eighths = f32[3,3]{1,0} convert(bf16[3,3]{1,0} %eighths)
%scaled = f32[3,3]{1,0} multiply(f32[3,3]{1,0} %wide, f32[3,3]{1,0} %wide_eighths)
%negated = f32[3,3]{1,0} negate(f32[3,3]{1,0} %scaled)
ROOT %narrow = bf16[3,3]{1,0} convert(f32[3,3]{1,0} %negated)
}
ENTRY %main (b: bf16[2,3], a: s8[3,2]) -> bf16[3,3] {
%b = bf16[2,3]{1,0} parameter(1), sharding={replicated}
%a = s8[3,2]{1,0} parameter(0), sharding={replicated}
ROOT %gemm = bf16[3,3]{1,0} fusion(s8[3,2]{1,0} %a, bf16[2,3]{1,0} %b), kind=kCustom, calls=%inside, backend_config={"kind":"__triton_gemm","triton_gemm_config":{"block_m":"64","split_k":"1"} }
}
"""
    a = np.array([[1, 2], [3, 4], [5, 6]], np.int8)
    b = np.array([[1, 2, 3], [4, 5, 6]], ml_dtypes.bfloat16)
    want = np.array([[-1.125, -1.5, -1.875], [-2.375, -3.25, -4.125], [-3.625, -5, -6.375]])
    # The entry's signature lists b before a; parameter numbers decide.
    text = text.replace("(b: bf16[2,3], a: s8[3,2])", "(a: s8[3,2], b: bf16[2,3])")
    wrong = close(run_file(text, ".hlo", (a, b), [ml_dtypes.bfloat16])[0], want, rtol=0, atol=0)
    check("E02: strop run", not wrong, wrong)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "e02.hlo"
        program.write_text(text)
        again = Path(folder) / "again.hlo"
        again.write_text(strop("translate", "--to=hlo", program))
        check("E02: what is printed reads as the same", strop("translate", "--to=hlo", again) == again.read_text() and '{"block_m":"64","split_k":"1"} }' in again.read_text())
    everywhere("E02 as JAX", scaled_product, (a, b), lambda out: close(out[0], want, rtol=0, atol=0))


def e03():
    """A convolution that reads one order of dimensions and writes another"""
    random = np.random.RandomState(0)
    x, w = (random.randn(*shape).astype(np.float32) for shape in ((16, 1, 28, 28), (6, 1, 5, 5)))

    def accept(out):
        first = [-7.5161757, 4.2917285, -0.12888207, -4.8473544, -5.5624733, 2.5637243]
        return close(out[0][0, 0, 0, :6], first, rtol=1e-5, atol=1e-6) or close(out[0].astype(np.float64).sum(), 1265.640118340787, rtol=1e-5) or \
            ("" if out[0].shape == (16, 24, 24, 6) else str(out[0].shape))

    everywhere("E03", lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NHWC")), (x, w), accept)


def e05():
    """A program with sharding annotations, compiled for one device"""
    with jax.default_device(DEVICE):
        key = jax.random.PRNGKey(1701)
        a = np.asarray(jax.random.randint(key, (1024, 512), -128, 127, jnp.int8))
        b = np.asarray(jax.random.normal(key, (512, 2048), jnp.float32))
    mesh = Mesh(np.array([[DEVICE]]), ("x", "y"))
    exact = -((a.astype(np.float64) @ b.astype(np.float64)) * 0.125)

    def f(a, b):
        return jax.lax.with_sharding_constraint(scaled_product(a, b), NamedSharding(mesh, PartitionSpec("x", "y")))

    def accept(out):
        return close(np.abs(out[0] - exact).max(), 0, atol=0.0015) or close(out[0].sum(dtype=np.float64), -207329.7, atol=0.1)

    everywhere("E05", f, (a, b), accept)


def e07():
    """softmax over the last dimension"""
    x = np.random.RandomState(0).randn(4, 100, 100).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    want = powers / powers.sum(-1, keepdims=True)

    def softmax(x):
        raised = jnp.exp(x - jax.lax.stop_gradient(x.max(axis=-1, keepdims=True)))
        return raised / raised.sum(axis=-1, keepdims=True)

    everywhere("E07", softmax, (x,), lambda out: close(out[0], want, rtol=2e-6, atol=0) or close(out[0].sum(-1, dtype=np.float64), 1, atol=1e-5))
    # The first rows of the full-size program are enough for its recorded values.
    full = np.random.RandomState(0).randn(1, 1000, 1000).astype(np.float32)
    y = np.asarray(jax.jit(softmax)(jax.device_put(full, DEVICE)))
    wrong = close(y[0, 0, :4], [0.00375057, 0.00095888, 0.00171017, 0.00604208], rtol=0, atol=1e-8) or close(y.sum(dtype=np.float64), 1000, atol=1e-2)
    check("E07: recorded values", not wrong, wrong)


def e08():
    """A training step in one executable: convolutions, batch norm, pooling, dense layers, AdamW; six steps against XLA:CPU"""
    random, weights = np.random.RandomState(123), np.random.RandomState(7)

    def normal(*s):
        return (weights.randn(*s) * np.sqrt(2.0 / np.prod(s[1:] if len(s) == 4 else s[:1]))).astype(np.float32)

    ones, zeros = (lambda n: np.ones(n, np.float32)), (lambda n: np.zeros(n, np.float32))
    start = dict(c1=normal(6, 3, 5, 5), g1=ones(6), b1=zeros(6), c2=normal(16, 6, 5, 5), g2=ones(16), b2=zeros(16), f1=normal(400, 120),
                 fb1=zeros(120), f2=normal(120, 84), fb2=zeros(84), f3=normal(84, 10), fb3=zeros(10))
    batches = random.randn(3, 8, 3, 32, 32).astype(np.float32), random.randint(0, 10, (3, 8)).astype(np.int32)

    def block(x, w, g, b):
        x = jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        mean, variance = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        x = (x - mean) * jax.lax.rsqrt(variance + 1e-5) * g[:, None, None] + b[:, None, None]
        return jax.lax.reduce_window(x, 0., jax.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4

    def loss(p, x, y):
        x = block(block(x, p["c1"], p["g1"], p["b1"]), p["c2"], p["g2"], p["b2"]).reshape(x.shape[0], -1)
        x = ((x @ p["f1"] + p["fb1"]) @ p["f2"] + p["fb2"]) @ p["f3"] + p["fb3"]
        return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()

    def step(state, rate, x, y):
        """AdamW (Loshchilov and Hutter 2019), weight decay 1e-4"""
        p, m, v, t = state
        value, g = jax.value_and_grad(loss)(p, x, y)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        p = jax.tree.map(lambda p, m, v: p - rate * (m / (1 - 0.9 ** t) / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8) + 1e-4 * p), p, m, v)
        return (p, m, v, t), value

    def train(device):
        nothing = jax.tree.map(np.zeros_like, start)
        state = jax.device_put((start, nothing, nothing, np.float32(0)), device)
        train_step, losses = jax.jit(step, donate_argnums=0), []
        for i in range(6):
            rate = np.float32(0.012 if i < 5 else 0.006)
            state, value = train_step(state, *jax.device_put((rate, batches[0][i % 3], batches[1][i % 3]), device))
            losses.append(float(value))
        return losses, state, train_step._cache_size()

    ours, state, compilations = train(DEVICE)
    theirs, wanted, _ = train(jax.devices("cpu")[0])
    check("E08: losses of six steps", np.allclose(ours, theirs, rtol=5e-4), f"{ours}")
    check("E08: another learning rate does not compile again", compilations == 1)
    moments = [np.abs(np.asarray(a) - np.asarray(b)).max() for a, b in zip(jax.tree.leaves(state[1]), jax.tree.leaves(wanted[1]), strict=True)]
    check("E08: first moments", max(moments) < 5e-4, f"{max(moments)}")

    nothing = jax.tree.map(np.zeros_like, start)
    arguments = ((start, nothing, nothing, np.float32(0)), np.float32(0.012), batches[0][0], batches[1][0])
    everywhere("E08, one step", step, arguments, lambda out: close(out[-1], theirs[0], rtol=5e-4))


for example in (e01, e02, e03, e05, e07, e08):
    print(f"{example.__name__.upper()} {example.__doc__}")
    example()
print("failed: " + ", ".join(failures) if failures else "all as recorded")
sys.exit(bool(failures))
