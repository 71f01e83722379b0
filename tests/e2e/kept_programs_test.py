"""Programs that are kept: `strop compile` and what loads it, the folder of compiled programs (option cache_dir), and JAX's own cache."""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STROP = Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop"
# Everything that a step can be: a product, a fusion, a convolution, sorts in a known order and by a comparator, a loop with a product in it, a
# branch, a scan, random bits, a transform, a factorisation, a band of attention, a branch, a constant.
PROGRAM = """HloModule all
less { p = f32[] parameter(0) q = f32[] parameter(1) r = s32[] parameter(2) s = s32[] parameter(3)
  a = f32[] abs(p) b = f32[] abs(q) ROOT l = pred[] compare(a, b), direction=LT }
plain { p = f32[] parameter(0) q = f32[] parameter(1) ROOT l = pred[] compare(p, q), direction=LT }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
condition { t = (s32[], f32[8,8]) parameter(0) i = s32[] get-tuple-element(t), index=0 n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT }
body { t = (s32[], f32[8,8]) parameter(0) i = s32[] get-tuple-element(t), index=0 one = s32[] constant(1)
  j = s32[] add(i, one) x = f32[8,8] get-tuple-element(t), index=1
  y = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} z = f32[8,8] tanh(y)
  ROOT u = (s32[], f32[8,8]) tuple(j, z) }
yes { x = f32[8,8] parameter(0) ROOT y = f32[8,8] sine(x) }
no { x = f32[8,8] parameter(0) ROOT y = f32[8,8] negate(x) }
ENTRY main {
  x = f32[64,64] parameter(0) k = f32[1,9,9,4] parameter(1) m = f32[8,8] parameter(2) p = pred[] parameter(3)
  w = f32[3,3,4,8] parameter(4) q = f32[4,2048,64] parameter(5)
  conv = f32[1,7,7,8] convolution(k, w), window={size=3x3}, dim_labels=b01f_01io->b01f
  d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i = s32[64,64] iota(), iota_dimension=1
  s = (f32[64,64], s32[64,64]) sort(d, i), dimensions={1}, to_apply=less
  o = f32[64,64] sort(x), dimensions={0}, to_apply=plain
  zero = s32[] constant(0) t = (s32[], f32[8,8]) tuple(zero, m) l = (s32[], f32[8,8]) while(t), condition=condition, body=body
  f = c64[64,33] fft(x), fft_type=RFFT, fft_length={64}
  z = f32[] constant(0) c = f32[64,64] reduce-window(x, z), window={size=1x64 pad=0_0x63_0}, to_apply=add
  h = f32[8,8] cholesky(m), lower=true
  g = f32[8,8] triangular-solve(m, m), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
  b = f32[8,8] conditional(p, m, m), true_computation=yes, false_computation=no
  key = u64[2] constant({3, 4}) r = (u64[2], u32[100]) rng-bit-generator(key), algorithm=rng_three_fry
  scores = f32[4,2048,2048] dot(q, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  inf = f32[] constant(-inf) top = f32[4,2048] reduce(scores, inf), dimensions={2}, to_apply=max
  tops = f32[4,2048,2048] broadcast(top), dimensions={0,1} less = f32[4,2048,2048] subtract(scores, tops)
  e = f32[4,2048,2048] exponential(less) sum = f32[4,2048] reduce(e, z), dimensions={2}, to_apply=add
  sums = f32[4,2048,2048] broadcast(sum), dimensions={0,1} soft = f32[4,2048,2048] divide(e, sums)
  mixed = f32[4,2048,64] dot(soft, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  big = f32[3,5] constant({{1,2,3,4,5},{6,7,8,9,10},{11,12,13,14,15}})
  ROOT out = (f32[1,7,7,8], (f32[64,64], s32[64,64]), f32[64,64], (s32[], f32[8,8]), c64[64,33], f32[64,64], f32[8,8], f32[8,8], f32[8,8],
    (u64[2], u32[100]), f32[4,2048,64], f32[3,5]) tuple(conv, s, o, l, f, c, h, g, b, r, mixed, big)
}
"""
SMALL = "HloModule small\nENTRY main { x = f32[%d] parameter(0) ROOT y = f32[%d] cosine(x) }\n"


def strop(*words, code=0, **environment):
    ran = subprocess.run([STROP, *words], capture_output=True, text=True, env={**os.environ, **environment})
    assert ran.returncode == code, (words, ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout if code == 0 else ran.stderr


def entries(folder):
    return sorted(folder.glob("*.strop"))


def same_bits_ahead_of_time(folder):
    (folder / "all.hlo").write_text(PROGRAM)
    compiled = strop("run", folder / "all.hlo", "--random-inputs=3")
    strop("compile", folder / "all.hlo", "-o", folder / "all.aot")
    assert strop("run", folder / "all.aot", "--random-inputs=3") == compiled
    assert strop("run", folder / "all.aot", "--random-inputs=3", STROP_NUM_THREADS="1") == compiled


def refusals_of_artifacts(folder):
    bytes_ = (folder / "all.aot").read_bytes()
    (folder / "bad.aot").write_bytes(bytes_[:999] + bytes([bytes_[999] ^ 1]) + bytes_[1000:])
    assert "is damaged" in strop("run", folder / "bad.aot", "--random-inputs", code=2)
    (folder / "bad.aot").write_bytes(bytes_[:-1])
    assert "of which there are" in strop("run", folder / "bad.aot", "--random-inputs", code=2)
    assert "compiled for backend cpu, this is null" in strop("run", folder / "all.aot", "--random-inputs", "--backend=null", code=1)
    assert "there is no program to evaluate" in strop("run", folder / "all.aot", "--random-inputs", "--interpret", code=2)
    assert ".aot for strop run" in strop("compile", folder / "all.hlo", "-o", folder / "all.bin", code=2)


def a_folder_is_used_again(folder):
    cache, program = folder / "made" / "for" / "this", folder / "all.hlo"
    run = ("run", program, "--random-inputs=3", f"--cache-dir={cache}")
    first = strop(*run)
    (entry,) = entries(cache)
    assert cache.stat().st_mode & 0o777 == 0o700 and entry.stat().st_mode & 0o777 == 0o600
    before = entry.stat().st_mtime_ns
    time.sleep(0.01)
    assert strop(*run) == first and entries(cache) == [entry]
    assert entry.stat().st_mtime_ns > before  # it was used
    # Damage is found, told, and mended.
    good = entry.read_bytes()
    entry.write_bytes(good[: len(good) // 2])
    ran = subprocess.run([STROP, *run], capture_output=True, text=True, env={**os.environ, "STROP_LOG": "1"})
    assert ran.stdout == first and "removed from the folder of compiled programs" in ran.stderr, ran
    assert len(entries(cache)[0].read_bytes()) == len(good)
    # Other options, another program.
    strop(*run, "--memory-limit=4GiB")
    assert len(entries(cache)) == 2
    # Reports are made by compiling.
    assert "kernels" in strop("explain", program, f"--cache-dir={cache}")


def a_folder_of_others_is_refused(folder):
    cache = folder / "shared"
    cache.mkdir()
    cache.chmod(0o770)
    assert "may be written by others" in strop("run", folder / "all.hlo", "--random-inputs", f"--cache-dir={cache}", code=1)
    cache.chmod(0o700)
    # Where there can be no folder, programs run all the same.
    (folder / "file").write_text("")
    strop("run", folder / "all.hlo", "--random-inputs", f"--cache-dir={folder / 'file'}")


def the_oldest_go(folder):
    cache = folder / "bounded"
    for n in range(1, 4):
        (folder / f"small{n}.hlo").write_text(SMALL % (n, n))
        strop("run", folder / f"small{n}.hlo", "--random-inputs", f"--cache-dir={cache}")
    kept = entries(cache)
    size = sum(e.stat().st_size for e in kept)
    assert len(kept) == 3 and size < 1 << 20
    first = min(kept, key=lambda e: e.stat().st_mtime_ns)
    # Two programs with large constants, which do not both fit beside the rest.
    for n in (80000, 80001):
        (folder / "large.hlo").write_text("HloModule large\nENTRY main { x = f32[%d] constant({%s}) y = f32[] parameter(0) ROOT t = (f32[%d], f32[]) tuple(x, y) }\n" % (
            n, ",".join(str(k % 7) for k in range(n)), n))
        strop("run", folder / "large.hlo", "--random-inputs", f"--cache-dir={cache}", "--cache-megabytes=1")
    left = entries(cache)
    assert not first.exists() and left and sum(e.stat().st_size for e in left) <= 1 << 20


def many_at_once(folder):
    """50 processes that start at once on one empty folder, some of which are killed."""
    cache, program = folder / "many", folder / "all.hlo"
    command = [STROP, "run", program, "--random-inputs=3", f"--cache-dir={cache}"]
    right = strop(*command[1:3], "--random-inputs=3")
    alone = {**os.environ, "STROP_NUM_THREADS": "1"}
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=alone) for _ in range(50)]
    for n, process in enumerate(running):
        if n % 5 == 0:
            time.sleep(0.013)
            process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL) and (process.returncode != 0 or out == right), (process.returncode, err)
    assert len(entries(cache)) == 1
    assert strop(*command[1:]) == right


def killed_at_any_moment(folder):
    cache = folder / "killed"
    for n in range(40):
        process = subprocess.Popen([STROP, "run", folder / f"small{1 + n % 3}.hlo", "--random-inputs", f"--cache-dir={cache}"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.001 * n)
        process.kill()
        process.wait()
        if n % 10 == 9:
            for entry in entries(cache) if cache.exists() else []:
                entry.unlink()
    for n in range(1, 4):
        ran = subprocess.run([STROP, "run", folder / f"small{n}.hlo", "--random-inputs", f"--cache-dir={cache}"], capture_output=True, text=True,
                             env={**os.environ, "STROP_LOG": "1"})
        assert ran.returncode == 0 and "damaged" not in ran.stderr, ran


JAX = """
import sys, hashlib, numpy as np, jax, jax.numpy as jnp
def loss(w, x):
    for _ in range(3): x = jnp.tanh(x @ w)
    return jnp.sort(x, axis=1).sum()
w = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
f = jax.jit(jax.value_and_grad(loss))
value, gradient = f(w, w)
compiled = f.lower(w, w).compile()
print(hashlib.md5(np.asarray(gradient).tobytes()).hexdigest(), float(value), len(compiled.as_text()), compiled.cost_analysis()["flops"],
      compiled.memory_analysis().argument_size_in_bytes, compiled.input_shardings, compiled.output_layouts if hasattr(compiled, "output_layouts") else "")
"""


def jax_programs(folder, **variables):
    environment = {**os.environ, "JAX_PLATFORMS": "strop", **variables}
    ran = subprocess.run([sys.executable, "-c", JAX], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


def frameworks(folder):
    right, _ = jax_programs(folder)
    cache = folder / "framework"
    for _ in range(2):
        out, log = jax_programs(folder, STROP_CACHE_DIR=str(cache), STROP_LOG="2")
        assert out == right, (out, right)
    assert "kept in" not in log and entries(cache)  # the second time nothing was compiled
    # JAX's own cache, which is given serialised executables.
    jaxs = {"JAX_COMPILATION_CACHE_DIR": str(folder / "jax"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1", "STROP_LOG": "1"}
    for _ in range(2):
        out, log = jax_programs(folder, **jaxs)
        assert out == right and "compiled again" not in log, (out, right, log)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for check in (same_bits_ahead_of_time, refusals_of_artifacts, a_folder_is_used_again, a_folder_of_others_is_refused, the_oldest_go, many_at_once,
                      killed_at_any_moment, frameworks):
            start = time.time()
            check(folder)
            print(f"{check.__name__}: {time.time() - start:.1f} s")


main()
