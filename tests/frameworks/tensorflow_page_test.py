"""docs/tensorflow.md, followed word for word: each `sh` block runs from the root, with the package and TensorFlow's library in sight as if they were installed."""
import os
import re
import sys
from pathlib import Path

import interpreter

interpreter.require_tensorflow()

PAGE = "docs/tensorflow.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)


def main():
    checks = interpreter.Checks()
    library = str(Path(os.environ["STROP_PLUGIN"]).with_name("libstrop_tensorflow.so"))
    for commands in BLOCK.findall((interpreter.SOURCE / PAGE).read_text()):
        code, output = interpreter.run(["bash", "-euo", "pipefail", "-c", commands], TF_PLUGGABLE_DEVICE_LIBRARY_PATH=library)
        checks(f"{PAGE}: {commands.splitlines()[0]}", code == 0, f"exit code {code} of\n{commands}\n{output}")
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
