"""python -m strop: what is installed, who finds it, what it runs on."""

import importlib.metadata
import importlib.util
import os
import sys

import strop
from strop import c_api, lapack, tensorflow_plugin


def _framework(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _tensorflow() -> str:
    """TensorFlow comes in wheels of several names."""
    versions = [_framework(name) for name in ("tensorflow", "tensorflow-cpu")]
    return next((version for version in versions if version != "not installed"), versions[0])


def _registered(group: str) -> bool:
    return any(point.name.lower() == "strop" for point in importlib.metadata.entry_points(group=group))


def _jax_finds_it() -> str:
    if importlib.util.find_spec("jax") is None:
        return "no (jax is not installed)"
    try:
        found = importlib.util.find_spec("jax_plugins.strop") is not None
    except ModuleNotFoundError:
        found = False
    return 'yes: JAX_PLATFORMS=strop, or jax.devices("strop")' if found or _registered("jax_plugins") else "no"


def _devices() -> list[str]:
    """The devices as JAX shows them, in a process of its own: this page must not initialise anybody's backend."""
    import subprocess

    program = (
        "import jax; d = jax.devices('strop'); c = d[0].client; "
        "print(c.platform_version.splitlines()[-1]); print(len(d), 'device(s):', ', '.join(map(str, d)))"
    )
    environment = dict(os.environ, JAX_PLATFORMS="strop")
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    lines = (result.stdout if result.returncode == 0 else result.stderr).strip().splitlines()
    return lines[:2] if result.returncode == 0 else ["JAX cannot start it: " + (lines[-1] if lines else "no message")]


def main() -> int:
    print(f"Strop {strop.__version__}")
    try:
        path = strop.library_path()
    except FileNotFoundError as error:
        print(f"plugin       {error}")
        return 1
    try:
        major, minor = c_api.Api.load(path).version()
    except OSError as error:
        print(f"plugin       {path} cannot be loaded: {error}")
        return 1
    threads = os.environ.get("STROP_NUM_THREADS", "0")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"plugin       {path} ({path.stat().st_size / 1e6:.1f} MB, PJRT C API {major}.{minor})")
    print(f"jax          {_framework('jax')}; finds Strop: {_jax_finds_it()}")
    print(f"torch_xla    {_framework('torch_xla')}; finds Strop: {'yes' if _registered('torch_xla.plugins') else 'no'}")
    print(f"tensorflow   {_tensorflow()}; finds Strop: {'yes' if tensorflow_plugin.found_by_tensorflow() else 'no'}")
    print(f"threads      {usable if threads in ('', '0') else threads} (STROP_NUM_THREADS={threads}, {usable} usable CPUs)")
    named = os.environ.get("STROP_LAPACK_LIBRARY")
    print(f"lapack       {named or lapack.library_path() or 'libopenblas.so.0 or liblapack.so.3, if the system has one'}")
    if importlib.util.find_spec("jax") is not None:
        for line in _devices():
            print(f"runs on      {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
