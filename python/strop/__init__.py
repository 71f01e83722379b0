"""Strop: an XLA-compatible compiler and runtime, as a plugin for JAX, PyTorch/XLA and TensorFlow.

    JAX_PLATFORMS=strop python program.py         JAX on Strop; nothing else to change
    jax.devices("strop")                          Strop beside the other platforms
    python -m strop                               what is installed, and who finds it
"""

import os
import pathlib

from strop._version import __version__

__all__ = ["__version__", "library_path"]

_NAME = "libstrop_pjrt.so"


def library_path() -> pathlib.Path:
    """The PJRT plugin: STROP_PLUGIN if that is set, else the one in this package.

    Raises FileNotFoundError that says where it was looked for.
    """
    chosen = os.environ.get("STROP_PLUGIN")
    path = pathlib.Path(chosen) if chosen else pathlib.Path(__file__).parent / "lib" / _NAME
    if not path.is_file():
        hint = "STROP_PLUGIN names it" if chosen else "install the wheel, or set STROP_PLUGIN to the library of a build"
        raise FileNotFoundError(f"no Strop plugin at {path} ({hint})")
    return path
