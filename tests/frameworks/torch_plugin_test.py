"""How PyTorch/XLA finds Strop, by each of the ways that docs/pytorch.md names, and what it says when it cannot."""
import os
import sys

import interpreter

interpreter.require_torch()

PROGRAM = """
import torch, torch_xla
import torch_xla.runtime as xr
a = torch.arange(6.).reshape(2, 3)
print("result", (a.to(torch_xla.device()) @ a.T.to(torch_xla.device())).cpu().tolist(), "on", xr.device_type(), xr.global_device_count())
"""
RESULT = "result [[5.0, 14.0], [14.0, 50.0]] on "

# A plugin class of the user's own, given to torch_xla by hand.
REGISTERED = """
import strop, torch, torch_xla
import torch_xla.experimental.plugins as xp
import torch_xla.runtime as xr
class NpuPlugin(xp.DevicePlugin):
    def library_path(self):
        return str(strop.library_path())
xp.use_dynamic_plugins()
xp.register_plugin("npu", NpuPlugin())
xr.set_device_type("npu")
assert xr.device_type() == "npu"
""" + PROGRAM

OLD = """
import importlib.metadata, torch_xla
importlib.metadata.version = lambda name: "1.13"
""" + PROGRAM


def main():
    checks = interpreter.Checks()
    library = os.environ["STROP_PLUGIN"]

    def works(what, expected, program=PROGRAM, **variables):
        code, output = interpreter.run(program, **variables)
        checks(what, code == 0 and RESULT + expected in output, output)

    def refused(what, message, program=PROGRAM, **variables):
        code, output = interpreter.run(program, **variables)
        checks(what, code == 1 and message in output, f"exit code {code}\n{output}")

    works("PJRT_DEVICE=STROP", "STROP 1", PJRT_DEVICE="STROP")
    works("four devices", "STROP 4", PJRT_DEVICE="STROP", STROP_NUM_DEVICES="4")
    works("PJRT_DEVICE=LIBRARY", "LIBRARY 1", PJRT_DEVICE="LIBRARY", PJRT_LIBRARY_PATH=library)
    works("STROP_LIBRARY_PATH", "STROP 1", PJRT_DEVICE="STROP", STROP_PLUGIN="/nowhere", STROP_LIBRARY_PATH=library)
    works("a device of any name", "NPU 1", PJRT_DEVICE="NPU", NPU_LIBRARY_PATH=library)
    works("a plugin of the user's own", "npu 1", program=REGISTERED)
    works("PJRT_DEVICE=CPU stays torch_xla's own", "CPU 1", PJRT_DEVICE="CPU", STROP_PLUGIN="/nowhere")
    refused("the variable is not set", "PJRT_DEVICE=NPU, but NPU_LIBRARY_PATH is not set", PJRT_DEVICE="NPU")
    refused("the file is not there", "no PJRT plugin at /nowhere (NPU_LIBRARY_PATH names it)", PJRT_DEVICE="NPU", NPU_LIBRARY_PATH="/nowhere")
    refused("Strop's file is not there", "no Strop plugin at /nowhere (STROP_PLUGIN names it)", PJRT_DEVICE="STROP", STROP_PLUGIN="/nowhere")
    refused("a torch_xla that is too old", "Strop needs torch_xla 2.3 or newer, and 1.13 is installed", program=OLD, PJRT_DEVICE="STROP")
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
