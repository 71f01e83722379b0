"""What a process leaves behind for who wants to see what happened in it: snapshots of JAX's executions by XLA's flag, and programs whose compilation was slow or
failed. Each is given back to `strop run` as it is."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

STROP = Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop"
JAX = """
import jax, jax.numpy as jnp
f = jax.jit(lambda x, y: {"sum": x @ y.T + 1, "turned": y.T}, donate_argnums=0)
x, y = jnp.arange(6.0).reshape(2, 3), jnp.linspace(0.0, 1.0, 12).reshape(4, 3)
for _ in range(2):
    out = f(x + 0, y)
print(out["sum"].tolist())
"""


def environment(folder, **more):
    return {**os.environ, "JAX_PLATFORMS": "strop", "PATH": f"{STROP.parent}:{os.environ['PATH']}", "TMPDIR": str(folder), **more}


def snapshots(folder):
    flags = f"--xla_dump_to={folder}/dump --xla_dump_hlo_snapshots --xla_dump_hlo_module_re=lambda"
    done = subprocess.run([sys.executable, "-c", JAX], env=environment(folder, XLA_FLAGS=flags), capture_output=True, text=True)
    if "No module named 'jax'" in done.stderr:
        print("no JAX: no snapshots")
        return
    assert done.returncode == 0, done.stderr
    files = sorted((folder / "dump").glob("module_*.jit__lambda*.execution_*.hlo_snapshot.pb"))
    assert [f.name.split(".")[2] for f in files] == ["execution_0000", "execution_0001"], files
    ran = subprocess.run([STROP, "run", files[0], "--compare"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    values = done.stdout.strip().replace(" ", "").replace("[", "").replace("]", "").split(",")
    got = ran.stdout.split("\n")[0].split(" ", 2)[2].replace("{", "").replace("}", "").replace(" ", "").split(",")
    assert len(got) == 8 and all(abs(float(a) - float(b)) < 1e-4 for a, b in zip(got, values)), (ran.stdout, values)


def slow_program():
    """Enough different kernels that compiling takes more than a millisecond."""
    lines = ["HloModule slow", "ENTRY %main {", "%x0 = f32[40] parameter(0)"]
    for k in range(30):
        size = 39 - k
        lines += [f"%s{k} = f32[{size}] slice(%x{k}), slice={{[1:{size + 1}]}}", f"%r{k} = f32[{size}] reverse(%s{k}), dimensions={{0}}",
                  f"%o{k} = f32[{size},{size}] dot(%r{k}, %s{k}), lhs_contracting_dims={{}}, rhs_contracting_dims={{}}",
                  f"%x{k + 1} = f32[{size}] dot(%o{k}, %r{k}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"]
    return "\n".join([*lines, "ROOT %out = f32[10] tanh(%x30)", "}"])


def reproducers(folder):
    program = folder / "slow.hlo"
    program.write_text(slow_program())
    command = [STROP, "run", program, "--random-inputs"]
    quiet = subprocess.run(command, env=environment(folder), capture_output=True, text=True)
    assert quiet.returncode == 0 and not list(folder.glob("strop-reproducers-*")), quiet.stderr
    slow = subprocess.run([*command, "--reproducer-ms=1", "--num-threads=1"], env=environment(folder, STROP_LOG="1"), capture_output=True, text=True)
    (written,) = folder.glob(f"strop-reproducers-{os.getuid()}/slow.*.reproducer.hlo")
    assert str(written) in slow.stderr and slow.stdout == quiet.stdout, slow.stderr
    assert written.parent.stat().st_mode & 0o777 == 0o700
    first, second = written.read_text().split("\n")[:2]
    assert first == f"// strop run --random-inputs --backend=cpu '--num-threads=1' '{written}'", first
    assert second.startswith("// compiling took "), second
    pasted = subprocess.run(first.removeprefix("// "), shell=True, env=environment(folder), capture_output=True, text=True)
    assert pasted.returncode == 0 and pasted.stdout == quiet.stdout, pasted.stderr


for test in (snapshots, reproducers):
    with tempfile.TemporaryDirectory() as name:
        test(Path(name))
    print(f"{test.__name__}: ok")
sys.exit(0)
