"""Programs for eight devices, as JAX users write them: what `./dev collectives` counts the communication of.

Run as `python collectives_cases.py FOLDER [FILE.hlo...]`: writes NAME.mlir as jax.jit lowers it, NAME.xla.txt, XLA:CPU's module after its passes, and
NAME.seconds, what compiling and, of that, its passes that partition took; for each HLO file with shardings NAME.hlo, in which the number of devices stands, in place of NAME.mlir."""
import os
import re
import sys
import tempfile
import time
from pathlib import Path

MOST_DEVICES = 64
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
os.environ["TF_CPP_VMODULE"] = "hlo_pass_pipeline=1"  # XLA writes how long each pass took
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={MOST_DEVICES}"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

import collectives_everyday  # noqa: E402
import collectives_models  # noqa: E402

WIDTH, HEADS, GROUPS, HIDDEN, LENGTH, BATCH, WORDS, LAYERS = 256, 8, 4, 1024, 128, 16, 512, 2
HEAD = WIDTH // HEADS


def shape(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


# ---- GPT and Llama ---------------------------------------------------------------------------------------------------
# A weight's name says which of its dimensions tensor parallelism cuts: columns of what comes first, rows of what comes last.

def gpt_weights():
    block = {"gain1": shape(WIDTH), "bias1": shape(WIDTH), "q": shape(WIDTH, HEADS, HEAD), "k": shape(WIDTH, HEADS, HEAD), "v": shape(WIDTH, HEADS, HEAD),
             "o": shape(HEADS, HEAD, WIDTH), "gain2": shape(WIDTH), "bias2": shape(WIDTH), "up": shape(WIDTH, HIDDEN), "up_bias": shape(HIDDEN),
             "down": shape(HIDDEN, WIDTH), "down_bias": shape(WIDTH)}
    return {"embed": shape(WORDS, WIDTH), "position": shape(LENGTH, WIDTH), "gain": shape(WIDTH), "bias": shape(WIDTH), "blocks": block}


def llama_weights():
    block = {"gain1": shape(WIDTH), "q": shape(WIDTH, HEADS, HEAD), "k": shape(WIDTH, GROUPS, HEAD), "v": shape(WIDTH, GROUPS, HEAD), "o": shape(HEADS, HEAD, WIDTH),
             "gain2": shape(WIDTH), "gate": shape(WIDTH, HIDDEN), "up": shape(WIDTH, HIDDEN), "down": shape(HIDDEN, WIDTH)}
    return {"embed": shape(WORDS, WIDTH), "gain": shape(WIDTH), "head": shape(WIDTH, WORDS), "blocks": block}


def attend(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(HEAD)
    scores = jnp.where(jnp.tril(jnp.ones((q.shape[1], q.shape[1]), bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def layer_norm(x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * gain + bias


def rms_norm(x, gain):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain


def gpt_block(x, p):
    h = layer_norm(x, p["gain1"], p["bias1"])
    q, k, v = (jnp.einsum("btd,dhe->bthe", h, p[n]) for n in "qkv")
    x = x + jnp.einsum("bthe,hed->btd", attend(q, k, v), p["o"])
    h = layer_norm(x, p["gain2"], p["bias2"])
    return x + jax.nn.gelu(h @ p["up"] + p["up_bias"]) @ p["down"] + p["down_bias"]


def rotate(x):
    angle = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(HEAD // 2) / (HEAD // 2))
    sin, cos = jnp.sin(angle)[None, :, None], jnp.cos(angle)[None, :, None]
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def llama_block(x, p):
    h = rms_norm(x, p["gain1"])
    q, k, v = (jnp.einsum("btd,dhe->bthe", h, p[n]) for n in "qkv")
    k, v = (jnp.repeat(t, HEADS // GROUPS, axis=2) for t in (rotate(k), v))
    x = x + jnp.einsum("bthe,hed->btd", attend(rotate(q), k, v), p["o"])
    h = rms_norm(x, p["gain2"])
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]


def run_blocks(block, x, blocks, scanned):
    if scanned:
        return jax.lax.scan(lambda c, p: (block(c, p), None), x, blocks)[0]
    for p in blocks:
        x = block(x, p)
    return x


def gpt(weights, text, scanned):
    x = weights["embed"][text] + weights["position"]
    x = run_blocks(gpt_block, x, weights["blocks"], scanned)
    return layer_norm(x, weights["gain"], weights["bias"]) @ weights["embed"].T


def llama(weights, text, scanned):
    x = run_blocks(llama_block, weights["embed"][text], weights["blocks"], scanned)
    return rms_norm(x, weights["gain"]) @ weights["head"]


CUT_BY_MODEL = {"q": P(None, "m", None), "k": P(None, "m", None), "v": P(None, "m", None), "o": P("m", None, None), "up": P(None, "m"), "gate": P(None, "m"),
                "up_bias": P("m"), "down": P("m", None), "embed": P("m", None), "head": P(None, "m")}
CUT_BY_DATA = {"q": 0, "k": 0, "v": 0, "o": 2, "up": 0, "gate": 0, "down": 1, "embed": 1, "head": 0, "position": 1}


def weight_spec(name, rank, model, data):
    """The spec of a weight, its dimensions cut among the model's axis, and what is left over the data's."""
    spec = list(CUT_BY_MODEL.get(name, P())) if model else []
    spec += [None] * (rank - len(spec))
    if data and name in CUT_BY_DATA:
        spec[CUT_BY_DATA[name]] = "d"
    return P(*spec)


PLANS = {  # (devices along data and model, weights cut along the model's axis, along the data's)
    "dp": ((8, 1), False, False),
    "tp": ((1, 4), True, False),
    "fsdp": ((8, 1), False, True),
    "2d": ((2, 4), True, False),
    "2d_fsdp": ((4, 2), True, True),
}


def mesh_of(d, m):
    return Mesh(np.array(jax.devices()[: d * m]).reshape(d, m), ("d", "m"))


def transformer_cases():
    models = {"gpt": (gpt, gpt_weights), "llama": (llama, llama_weights)}
    for model, (forward, make) in models.items():
        for plan, ((d, m), by_model, by_data) in PLANS.items():
            if plan == "tp" and model == "gpt":
                d, m = 1, 8
            for scanned in (False, True):
                yield f"{model}_{plan}{'_scan' if scanned else ''}", lambda f=forward, w=make, mesh=mesh_of(d, m), bm=by_model, bd=by_data, s=scanned: \
                    transformer(f, w, mesh, bm, bd, s)


def transformer(forward, make, mesh, by_model, by_data, scanned):
    weights = make()
    specs = {n: weight_spec(n, len(w.shape), by_model, by_data) for n, w in weights.items() if n != "blocks"}
    inner = {n: weight_spec(n, len(w.shape), by_model, by_data) for n, w in weights["blocks"].items()}
    if scanned:
        weights["blocks"] = {n: shape(LAYERS, *w.shape) for n, w in weights["blocks"].items()}
        specs["blocks"] = {n: P(None, *s) for n, s in inner.items()}
    else:
        weights["blocks"], specs["blocks"] = [weights["blocks"]] * LAYERS, [inner] * LAYERS
    named = jax.tree.map(lambda s: NamedSharding(mesh, s), specs, is_leaf=lambda s: isinstance(s, P))
    rows = NamedSharding(mesh, P("d", None))

    def loss(w, x, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(forward(w, x, scanned)), y[..., None], -1).mean()

    text = shape(BATCH, LENGTH, dtype=jnp.int32)
    yield "forward", jax.jit(lambda w, x: forward(w, x, scanned), in_shardings=(named, rows)), (weights, text)
    yield "gradient", jax.jit(jax.value_and_grad(loss), in_shardings=(named, rows, rows), out_shardings=(NamedSharding(mesh, P()), named)), (weights, text, text)


# ---- the small programs of JAX's documentation -----------------------------------------------------------------------

def mlp(weights, x):
    for w, b in weights[:-1]:
        x = jax.nn.relu(x @ w + b)
    return x @ weights[-1][0] + weights[-1][1]


def small_cases():
    sizes = [784, 1024, 1024, 16]
    weights = [(shape(a, b), shape(b)) for a, b in zip(sizes, sizes[1:])]
    x, y = shape(256, sizes[0]), shape(256, sizes[-1])
    mesh = mesh_of(4, 2)

    def at(*spec):
        return NamedSharding(mesh, P(*spec))

    def error(w, x, y):
        return ((mlp(w, x) - y) ** 2).mean()

    plans = {"dp": ([(at(), at())] * 3, ("d", "m")), "tp": ([(at(None, "m"), at("m")), (at("m", None), at()), (at(), at())], ("d",)),
             "fsdp": ([(at(("d", "m"), None), at())] * 2 + [(at(("d", "m"), None), at())], (("d", "m"),))}
    for plan, (w, rows) in plans.items():
        rows = at(rows) if plan == "dp" else at(*rows)
        yield f"mlp_{plan}_forward", jax.jit(mlp, in_shardings=(w, rows)), (weights, x)
        yield f"mlp_{plan}_gradient", jax.jit(jax.grad(error), in_shardings=(w, rows, rows), out_shardings=w), (weights, x, y)
    a, b = shape(512, 512), shape(512, 512)
    for name, (left, right, out) in {
            "matmul_rows": (P("d", None), P(), P("d", None)), "matmul_contracting": (P(None, "d"), P("d", None), P()),
            "matmul_scattered": (P(None, "d"), P("d", None), P("d", None)), "matmul_2d": (P("d", "m"), P("d", "m"), P("d", "m")),
            "matmul_2d_free": (P("d", None), P(None, "m"), P("d", "m")), "matmul_gathered": (P("d", None), P("m", None), P()),
            "matmul_moved": (P("d", None), P(None, "m"), P("m", "d"))}.items():
        yield name, jax.jit(jnp.matmul, in_shardings=(at(*left), at(*right)), out_shardings=at(*out)), (a, b)
    image, kernel = shape(16, 64, 64, 32), shape(3, 3, 32, 64)

    def convolve(x, k):
        return jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def pooled(x, k):
        return jax.lax.reduce_window(jax.nn.relu(convolve(x, k)), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")

    for plan, spec, weight in (("batch", P("d"), P()), ("space", P("m", "d"), P()), ("features", P("d"), P(None, None, None, "m"))):
        yield f"convolution_{plan}", jax.jit(convolve, in_shardings=(at(*spec), at(*weight)), out_shardings=at(*spec)), (image, kernel)
        yield f"pooling_{plan}", jax.jit(pooled, in_shardings=(at(*spec), at(*weight))), (image, kernel)
        yield f"convolution_gradient_{plan}", jax.jit(jax.grad(lambda x, k: convolve(x, k).sum() ** 2, (0, 1)), in_shardings=(at(*spec), at(*weight)),
                                                      out_shardings=(at(*spec), at(*weight))), (image, kernel)
    grid = shape(1024, 1024)

    def stencil(x):
        return jax.lax.fori_loop(0, 10, lambda i, x: (jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)) / 4, x)

    def padded(x):
        p = jnp.pad(x, 1)
        return (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2]) / 4

    rows = at(("d", "m"))
    for name, f, args in (("stencil_roll", stencil, (grid,)), ("stencil_pad", padded, (grid,)), ("cumulative_sum", lambda x: jnp.cumsum(x, 0), (grid,)),
                          ("sort_columns", lambda x: jnp.sort(x, 0), (grid,)), ("halves_joined", lambda x: jnp.concatenate([x[512:], x[:512]]), (grid,)),
                          ("doubled", lambda x: jnp.concatenate([x, -x]), (grid,)), ("every_second", lambda x: x[::2], (grid,)), ("reversed_rows", lambda x: x[::-1], (grid,)),
                          ("normalised", lambda x: (x - x.mean(0)) / x.std(0), (grid,)), ("softmax_columns", lambda x: jax.nn.softmax(x, 0), (grid,)),
                          ("transposed", lambda x: x.T + x, (grid,)), ("outer_difference", lambda x: (x[:, None, :8] - x[None, :, :8]).sum(-1), (grid,)),
                          ("first_rows", lambda x: x[:256] * 2, (grid,)), ("argmax_columns", lambda x: jnp.argmax(x, 0), (grid,))):
        yield name, jax.jit(f, in_shardings=(rows,)), args
    words, ids = shape(4096, 256), shape(64, 32, dtype=jnp.int32)
    yield "embedding_rows", jax.jit(lambda t, i: t[i], in_shardings=(at("m"), at("d"))), (words, ids)
    yield "embedding_columns", jax.jit(lambda t, i: t[i], in_shardings=(at(None, "m"), at("d"))), (words, ids)
    yield "embedding_gradient", jax.jit(jax.grad(lambda t, i: (t[i] ** 2).sum()), in_shardings=(at("m"), at("d")), out_shardings=at("m")), (words, ids)
    cache, new, place = shape(8, 1024, 8, 32), shape(8, 1, 8, 32), shape(dtype=jnp.int32)

    def decode(cache, new, place):
        cache = jax.lax.dynamic_update_slice(cache, new, (0, place, 0, 0))
        scores = jnp.einsum("bqhd,bkhd->bhqk", new, cache)
        return cache, jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), cache)

    for plan, spec, row in (("heads", P(None, None, "d"), P(None, None, "d")), ("batch", P("d"), P("d")), ("length", P(None, "d"), P())):
        yield f"decode_{plan}", jax.jit(decode, in_shardings=(at(*spec), at(*row), at()), out_shardings=(at(*spec), at(*row))), (cache, new, place)
    tokens, router, up, down = shape(64, 32, 128), shape(128, 8), shape(8, 128, 512), shape(8, 512, 128)

    def experts(x, router, up, down):
        chosen = jax.nn.one_hot(jnp.argmax(x @ router, -1), 8)
        inside = jnp.einsum("btd,bte->ebtd", x, chosen)
        inside = jax.lax.with_sharding_constraint(inside, at(("d", "m")))
        out = jnp.einsum("ebtf,efd->ebtd", jax.nn.relu(jnp.einsum("ebtd,edf->ebtf", inside, up)), down)
        return jnp.einsum("ebtd,bte->btd", out, chosen)

    yield "experts", jax.jit(experts, in_shardings=(at(("d", "m")), at(), at(("d", "m")), at(("d", "m"))), out_shardings=at(("d", "m"))), (tokens, router, up, down)


def cases():
    for name, make in transformer_cases():
        for part, function, arguments in make():
            yield f"{name}_{part}", function, arguments
    yield from small_cases()
    yield from collectives_models.cases()
    yield from collectives_everyday.cases()


class Log:
    """What is written to the error stream meanwhile, whoever writes it."""
    def __enter__(self):
        self.file = tempfile.TemporaryFile()
        self.kept = os.dup(2)
        os.dup2(self.file.fileno(), 2)
        return self

    def __exit__(self, *_):
        os.dup2(self.kept, 2)
        os.close(self.kept)
        self.file.seek(0)
        self.text = self.file.read().decode(errors="replace")
        self.file.close()


def keep(out, name, compile_):
    begun = time.perf_counter()
    with Log() as log:
        executable = compile_()
    took = time.perf_counter() - begun
    (module,) = executable.hlo_modules()
    passes = re.findall(r"HLO pass: (?:shardy-xla|sharding-propagation|spmd-partitioning) time: .*? \((\d+) us\)", log.text)
    (out / f"{name}.seconds").write_text(f"{took} {sum(map(int, passes)) / 1e6}\n")
    (out / f"{name}.xla.txt").write_text(module.to_string())


# ---- HLO files -------------------------------------------------------------------------------------------------------

def with_devices(text):
    """The text, with the number of devices that its shardings are of in its first line; None where there are none."""
    if "sharding={" not in text:
        return None
    counts = [int(n) for n in re.findall(r"num_partitions=(\d+)", text)]
    if not counts:
        for dims in re.findall(r"devices=\[([\d,]+)\]", text):
            counts.append(int(np.prod([int(d) for d in dims.split(",")])))
        text = re.sub(r"^(HloModule [^\s,]+)", rf"\1, num_partitions={max(counts, default=1)}", text, count=1, flags=re.M)
    return (text, max(counts)) if counts and 1 < max(counts) <= MOST_DEVICES else None


def compile_hlo(text, devices):
    from jaxlib import _hlo, _jax
    from jaxlib.xla_client import CompileOptions, DeviceAssignment
    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    program = _jax.mlir.hlo_to_stablehlo(proto)
    options = CompileOptions()
    options.num_partitions = devices
    options.executable_build_options.num_partitions = devices
    options.executable_build_options.use_spmd_partitioning = True
    options.device_assignment = DeviceAssignment.create(np.arange(devices).reshape(1, devices))
    client = jax.devices()[0].client
    return client.compile_and_load(program, client.devices()[:devices], options)


def hlo_file(out, path):
    """In a process of its own, which XLA may end."""
    found = with_devices(path.read_text())
    if not found or os.fork():
        if found:
            os.wait()
        return
    text, devices = found
    try:
        keep(out, path.stem, lambda: compile_hlo(text, devices))
        (out / f"{path.stem}.hlo").write_text(text)
    except Exception as error:  # what XLA refuses is not compared
        print(f"{path.name}: {str(error)[:200]}", flush=True)
    os._exit(0)


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for path in sys.argv[2:]:
        hlo_file(out, Path(path))
    for name, function, arguments in cases() if len(sys.argv) == 2 else ():
        lowered = function.lower(*arguments)
        (out / f"{name}.mlir").write_text(lowered.as_text())
        keep(out, name, lambda: lowered.compile().runtime_executable())


if __name__ == "__main__":
    main()
