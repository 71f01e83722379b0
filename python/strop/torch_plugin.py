"""PyTorch/XLA's view of Strop: PJRT_DEVICE=STROP with the wheel installed (entry point group torch_xla.plugins).

torch_xla loads every plugin's entry point while it is imported, whatever device the user chose. So nothing is refused before the device is
asked for: StropPlugin.library_path is the first thing that torch_xla calls then, and its error reaches the user.

    PJRT_DEVICE=STROP                              the plugin of this package; STROP_LIBRARY_PATH names another file
    PJRT_DEVICE=NPU NPU_LIBRARY_PATH=/a/file.so    any PJRT plugin under any name that torch_xla does not know
"""

import functools
import importlib.metadata
import os
import pathlib

import strop
from strop import lapack, processes

__all__ = ["LibraryPlugin", "StropPlugin"]

# The oldest release whose plugins are made with create options; what is tested is in docs/pytorch.md.
OLDEST = (2, 3)
# What torch_xla finds without a plugin's help; it has variables of its own for these.
BUILT_IN = {"CPU", "CUDA", "LIBRARY", "NEURON", "TPU", "XPU"}


def check_version(version: str) -> None:
    """Raises ImportError for a torch_xla that cannot work with Strop."""
    numbers = tuple(int(part) if part.isdigit() else 0 for part in version.split(".")[:2])
    if numbers < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise ImportError(f"Strop needs torch_xla {wanted} or newer, and {version} is installed: pip install 'torch_xla>={wanted}'")


def named_library(device: str) -> pathlib.Path:
    """The plugin that <DEVICE>_LIBRARY_PATH names; raises FileNotFoundError that says which variable to set."""
    variable = f"{device}_LIBRARY_PATH"
    chosen = os.environ.get(variable)
    if not chosen:
        raise FileNotFoundError(f"PJRT_DEVICE={device}, but {variable} is not set: it names the PJRT plugin of that device (a file .so)")
    if not pathlib.Path(chosen).is_file():
        raise FileNotFoundError(f"no PJRT plugin at {chosen} ({variable} names it)")
    return pathlib.Path(chosen)


@functools.cache
def _classes() -> dict:
    """The classes, made when they are first asked for: their base is torch_xla's."""
    try:
        from torch_xla.experimental import plugins
    except ImportError as error:
        raise ImportError("strop.torch_plugin needs torch_xla: pip install torch_xla") from error

    class LibraryPlugin(plugins.DevicePlugin):
        """The PJRT plugin that <DEVICE>_LIBRARY_PATH names."""

        def __init__(self, device: str):
            super().__init__()
            self.device = device

        def library_path(self) -> str:
            return str(named_library(self.device))

        def configure_single_process(self) -> None:
            """One process sees all devices; there is nothing to divide."""

    class StropPlugin(LibraryPlugin):
        """Strop's own; STROP_NUM_DEVICES and every other option of docs/options.md are read by the library itself."""

        def __init__(self):
            super().__init__("STROP")
            register_named_library(plugins)

        def library_path(self) -> str:
            check_version(importlib.metadata.version("torch_xla"))
            return super().library_path() if os.environ.get("STROP_LIBRARY_PATH") else str(strop.library_path())

        def client_create_options(self) -> dict:
            return lapack.create_options() | processes.torchrun_options()

        def physical_chip_count(self) -> int:
            return 1  # processes that xmp.spawn starts: the devices share a process, and its threads

        def host_index(self) -> int:
            return processes.torchrun_place()[0]

        def requires_xla_coordinator(self) -> bool:
            return processes.torchrun_place()[1] > 1  # it has the store in which the processes find each other

    def register_named_library(plugins) -> None:
        device = os.environ.get("PJRT_DEVICE", "").split("_")[0].upper()
        others = {point.name.upper() for point in importlib.metadata.entry_points(group="torch_xla.plugins")}
        if device and device not in BUILT_IN | others | {"STROP"}:
            plugins.register_plugin(device, LibraryPlugin(device))

    return {"LibraryPlugin": LibraryPlugin, "StropPlugin": StropPlugin}


def __getattr__(name: str):
    if name in __all__:
        return _classes()[name]
    raise AttributeError(f"module {__name__} has no attribute {name}")
