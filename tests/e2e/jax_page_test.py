"""docs/jax.md, followed word for word: each `sh` block runs from the root, with the package in sight as if it were installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

try:
    import jax  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

SOURCE, BUILD = Path(os.environ["STROP_SOURCE_DIR"]), Path(os.environ["STROP_BUILD_DIR"])
PAGE = "docs/jax.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)


def main():
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for name in ("STROP_NUM_DEVICES", "STROP_CACHE_DIR", "JAX_PLATFORMS"):
        environment.pop(name, None)
    blocks = BLOCK.findall((SOURCE / PAGE).read_text())
    assert len(blocks) >= 6, f"{PAGE} has {len(blocks)} blocks of commands"
    failures = 0
    for commands in blocks:
        commands = commands.replace("build/dev/", f"{BUILD}/")  # the page names the usual build
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands], cwd=SOURCE, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600
        )
        failures += result.returncode != 0
        said = "as it says" if result.returncode == 0 else f"exit code {result.returncode} of\n{commands}\n{result.stdout}{result.stderr}"
        print(f"{PAGE}: {commands.splitlines()[0]}: {said}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
