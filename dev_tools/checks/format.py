"""C++ is formatted as .clang-format says. `./dev fmt` does it."""
import re
import shutil
import subprocess

from . import tracked


def sources(root):
    return tracked(root, ".h", ".cc")


def program():
    return shutil.which("clang-format-22")


def check(root):
    if not program():
        return None, ["clang-format-22 is not installed (./dev setup installs it)"]
    run = subprocess.run([program(), "--dry-run", "-Werror", *sources(root)], cwd=root, capture_output=True, text=True)
    files = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error:", run.stderr, re.M)))
    return [f"{f}: not formatted (./dev fmt)" for f in files], []
