"""docs/distributed.md, followed word for word: each `sh` block runs from the root, with the package in sight as if it were installed. What needs a
library that was not built is left out."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

try:
    import jax  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

SOURCE = Path(os.environ["STROP_SOURCE_DIR"])
PAGE = "docs/distributed.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
LIBRARIES = Path(os.environ["STROP_PLUGIN"]).parent


def missing(commands):
    if "mpirun" in commands:
        return not shutil.which("mpirun") or not (LIBRARIES / "libstrop_mpi.so").exists()
    return "--processes" in commands and not (LIBRARIES / "libstrop_gloo.so").exists()


def main():
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    # A build machine may be root and have one processor.
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    for name in ("STROP_NUM_DEVICES", "JAX_PLATFORMS"):
        environment.pop(name, None)
    blocks = BLOCK.findall((SOURCE / PAGE).read_text())
    assert len(blocks) == 3, f"{PAGE} has {len(blocks)} blocks of commands"
    failures = 0
    for commands in blocks:
        if missing(commands):
            print(f"left out: {commands}")
            continue
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands], cwd=SOURCE, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600
        )
        output = result.stdout + result.stderr
        agreed = output.count("differs from one device by")
        wanted = commands.count("parallel/$example") * 6 or commands.count("--process ") or 2
        good = result.returncode == 0 and agreed == wanted
        failures += not good
        print(f"{PAGE}: {commands.splitlines()[0]}: {'as it says' if good else f'exit code {result.returncode}, {agreed} of {wanted} agree:{chr(10)}{output}'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
