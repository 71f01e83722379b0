"""PyTorch/XLA's view of Strop: PJRT_DEVICE=STROP with the wheel installed (entry point group torch_xla.plugins)."""

import strop
from strop import lapack

try:
    from torch_xla.experimental import plugins
except ImportError as error:  # the entry point is only looked up by torch_xla itself
    raise ImportError("strop.torch_plugin needs torch_xla") from error


class StropPlugin(plugins.DevicePlugin):
    def library_path(self) -> str:
        return str(strop.library_path())

    def client_create_options(self) -> dict:
        return lapack.create_options()

    def physical_chip_count(self) -> int:
        return 1

    def requires_xla_coordinator(self) -> bool:
        return False
