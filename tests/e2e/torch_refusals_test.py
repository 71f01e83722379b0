"""The entry point for PyTorch/XLA without PyTorch: the module can be imported anywhere, and what it refuses it says clearly."""
import os
import sys
import tomllib
from pathlib import Path

sys.modules["torch_xla"] = None  # as if it were not installed

from strop import torch_plugin  # noqa: E402

SOURCE = Path(os.environ["STROP_SOURCE_DIR"])


def refusal(action):
    try:
        action()
    except (AttributeError, FileNotFoundError, ImportError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


def main():
    os.environ["NPU_LIBRARY_PATH"] = "/nowhere/libnpu.so"
    os.environ.pop("TPU2_LIBRARY_PATH", None)
    module, _, name = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["entry-points"]["torch_xla.plugins"]["strop"].partition(":")
    expectations = [
        (lambda: getattr(torch_plugin, name), "ImportError: strop.torch_plugin needs torch_xla: pip install torch_xla"),
        (lambda: torch_plugin.Strop, "AttributeError: module strop.torch_plugin has no attribute Strop"),
        (lambda: torch_plugin.check_version("2.2.0"), "ImportError: Strop needs torch_xla 2.3 or newer, and 2.2.0 is installed: pip install 'torch_xla>=2.3'"),
        (lambda: torch_plugin.check_version("2.9.0+cpu"), "nothing was refused"),
        (lambda: torch_plugin.check_version("3.0"), "nothing was refused"),
        (lambda: torch_plugin.named_library("NPU"), "FileNotFoundError: no PJRT plugin at /nowhere/libnpu.so (NPU_LIBRARY_PATH names it)"),
        (lambda: torch_plugin.named_library("TPU2"),
         "FileNotFoundError: PJRT_DEVICE=TPU2, but TPU2_LIBRARY_PATH is not set: it names the PJRT plugin of that device (a file .so)"),
    ]
    failed = module != torch_plugin.__name__
    for action, expected in expectations:
        said = refusal(action)
        if said != expected:
            failed = True
            print(f"FAILED: expected {expected}\n             got {said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
