"""What the developer sees: one line when a long step begins, one when it ends, and plain words when it fails."""
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Failure(SystemExit):
    """Ends the command: says what went wrong and what to do about it."""

    def __init__(self, message):
        print(f"./dev: {message}", file=sys.stderr, flush=True)
        super().__init__(1)


class Step:
    """with Step("building (dev)"): ... prints what is going on and how long it took."""

    def __init__(self, what):
        self.what = what

    def __enter__(self):
        print(f"==> {self.what}", flush=True)
        self.begin = time.monotonic()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            print(f"==> {self.what}: done in {time.monotonic() - self.begin:.1f} s", flush=True)


def run(command, on_failure=None, **options):
    """Runs a command with its output shown; a failure ends ./dev with on_failure."""
    options.setdefault("cwd", ROOT)
    result = subprocess.run([str(part) for part in command], **options)
    if result.returncode and on_failure is not None:
        raise Failure(f"{on_failure} (exit {result.returncode}: {' '.join(str(part) for part in command)})")
    return result.returncode
