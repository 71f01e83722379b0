"""Finds the Python environment of a framework, and runs programs in it as if the wheel of this tree were installed there.

What an installation adds is the modules (python/, by PYTHONPATH) and the entry points (written from pyproject.toml); the plugin is the build's.
"""
import importlib.util
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

SOURCE = Path(os.environ.get("STROP_SOURCE_DIR", Path(__file__).resolve().parents[2]))
SKIPPED = 77


def require(framework, variable, folder):
    """Goes on where this Python has the framework, else starts the program again in an environment that has; ends as skipped if there is none."""
    if importlib.util.find_spec(framework) is not None:
        return
    python = Path(os.environ.get(variable, SOURCE / folder / "bin" / "python3"))
    if os.environ.get("STROP_TEST_ENTERED") or not python.is_file():
        print(f"skipped: no {framework} here; ./dev test --frameworks installs it, or {variable} names a Python that has it")
        sys.exit(SKIPPED)
    os.execve(python, [str(python), *sys.argv], dict(os.environ, STROP_TEST_ENTERED="1"))


def require_torch():
    require("torch_xla", "STROP_TORCH_PYTHON", ".venv-torch")


def require_tensorflow():
    require("tensorflow", "STROP_TF_PYTHON", ".venv-tensorflow")


def has(module):
    return importlib.util.find_spec(module) is not None


def installed(folder):
    """Writes what an installation tells about the package: its entry points"""
    groups = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["entry-points"]
    information = Path(folder) / "strop-0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: strop\nVersion: 0\n")
    lines = (f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()) for group, points in groups.items())
    (information / "entry_points.txt").write_text("\n".join(lines))


def run(command, timeout=600, **variables):
    """Runs a command (a list, or the text of a Python program) with the package in sight; returns (exit code, output and errors together)."""
    with tempfile.TemporaryDirectory() as site:
        installed(site)
        path = os.pathsep.join([str(SOURCE / "python"), site])
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PJRT_", "XLA_", "PT_XLA_", "TF_"))}
        environment.update(PYTHONPATH=path, PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        environment.update({name: value for name, value in variables.items() if value is not None})
        command = [sys.executable, "-c", command] if isinstance(command, str) else command
        result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, cwd=SOURCE)
    return result.returncode, result.stdout


class Checks:
    """checks(what, passed, detail): prints what failed; exit_code() ends the test."""

    def __init__(self):
        self.failed = 0

    def __call__(self, what, passed, detail=""):
        print(("ok     " if passed else "FAILED ") + what, flush=True)
        if not passed:
            self.failed += 1
            print(str(detail)[-2000:], flush=True)

    def exit_code(self):
        return 1 if self.failed else 0
