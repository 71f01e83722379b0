"""docs/pytorch.md, followed word for word: each `sh` block runs from the root, with the package in sight as if it were installed."""
import re
import sys

import interpreter

interpreter.require_torch()

PAGE = "docs/pytorch.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)


def main():
    checks = interpreter.Checks()
    for commands in BLOCK.findall((interpreter.SOURCE / PAGE).read_text()):
        code, output = interpreter.run(["bash", "-euo", "pipefail", "-c", commands])
        checks(f"{PAGE}: {commands.splitlines()[0]}", code == 0, f"exit code {code} of\n{commands}\n{output}")
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
