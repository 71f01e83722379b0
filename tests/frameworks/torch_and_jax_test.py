"""JAX and PyTorch/XLA in one process, both on Strop: each loads the plugin by its own way, and they work side by side."""
import sys

import interpreter

interpreter.require_torch()

PROGRAM = """
import threading
{imports}
import numpy as np

x = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
assert "Strop" in jax.devices()[0].client.platform_version, jax.devices()
assert xr.device_type() == "STROP", xr.device_type()


def with_jax(times):
    step = jax.jit(jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w))))
    w = jnp.eye(4)
    for _ in range(times):
        w = w - 0.1 * step(w, x)
    return np.asarray(w)


def with_torch(times):
    w = torch.eye(4, device=torch_xla.device(), requires_grad=True)
    values = torch.from_numpy(x).to(torch_xla.device())
    for _ in range(times):
        torch.tanh(values @ w).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
        torch_xla.sync()
    return w.detach().cpu().numpy()


# By turns, what one computed handed to the other; then at the same time.
first = with_jax(5)
assert np.allclose(first, with_torch(5), atol=1e-6)
handed = torch.from_numpy(np.array(jnp.exp(jnp.asarray(first)))).to(torch_xla.device())
assert np.allclose(np.log(np.asarray(jnp.asarray(torch.square(handed).cpu().numpy()))), 2 * first, atol=1e-5)
results = {{}}
threads = [threading.Thread(target=lambda f=f: results.setdefault(f, f(200))) for f in (with_jax, with_torch)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert np.allclose(results[with_jax], results[with_torch], atol=1e-4), results
print("side by side")
"""
JAX = "import jax, jax.numpy as jnp"
TORCH = "import torch, torch_xla, torch_xla.runtime as xr"


def main():
    code, output = interpreter.run("import jax")
    if code != 0:
        print("skipped: no jax beside torch_xla; ./dev test --frameworks installs both")
        return interpreter.SKIPPED
    checks = interpreter.Checks()
    for what, imports in (("JAX first", [JAX, "jax.devices()", TORCH]), ("PyTorch first", [TORCH, "torch_xla.device()", JAX])):
        for variables in ({}, {"STROP_NUM_DEVICES": "2"}):
            code, output = interpreter.run(PROGRAM.format(imports="\n".join(imports)), PJRT_DEVICE="STROP", JAX_PLATFORMS="strop", **variables)
            checks(f"{what}, {variables or 'one device'}", code == 0 and "side by side" in output, f"exit code {code}\n{output}")
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
