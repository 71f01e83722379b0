"""./dev setup: Debian packages from packages.txt, the private Python environment from requirements.txt, and the sources in sources.txt. Quick
when nothing is missing. ./dev test --frameworks makes environments for PyTorch/XLA and TensorFlow as well, from requirements-torch.txt and requirements-tensorflow.txt."""
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from progress import ROOT, Failure, Step, run

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PACKAGES = ROOT / "dev_tools" / "packages.txt"
REQUIREMENTS = ROOT / "dev_tools" / "requirements.txt"
TORCH_VENV = ROOT / ".venv-torch"
TORCH_REQUIREMENTS = ROOT / "dev_tools" / "requirements-torch.txt"
TENSORFLOW_VENV = ROOT / ".venv-tensorflow"
TENSORFLOW_REQUIREMENTS = ROOT / "dev_tools" / "requirements-tensorflow.txt"
SOURCES = ROOT / "dev_tools" / "sources.txt"
# Where unpacked sources lie, for all work trees of a user; cmake/strop_ducc0.cmake looks there.
SOURCE_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strop"


def wanted_packages():
    lines = (line.split("#")[0].strip() for line in PACKAGES.read_text().splitlines())
    return [line for line in lines if line]


def missing_packages(wanted):
    query = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *wanted], capture_output=True, text=True)
    installed = {line.split()[0] for line in query.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in wanted if name not in installed]


def install(wanted):
    """Installs those of the Debian packages that are missing"""
    if not shutil.which("dpkg-query"):
        raise Failure("this is no Debian system: install the equivalents of dev_tools/packages.txt, then run ./dev build")
    missing = missing_packages(wanted)
    if not missing:
        return
    root = [] if os.geteuid() == 0 else ["sudo"]
    if root and not shutil.which("sudo"):
        raise Failure("packages are missing and there is no sudo; as root: apt-get install " + " ".join(missing))
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    with Step("installing Debian packages: " + " ".join(missing)):
        run([*root, "apt-get", "update", "-q"], "apt-get update failed: is the network there?", env=environment)
        run([*root, "apt-get", "install", "-y", "-q", "--no-install-recommends", *missing],
            "apt-get could not install them; LLVM 22 needs Debian 12 with its security archive, or Debian 13", env=environment)


def make_python_environment(venv=VENV, requirements=REQUIREMENTS, contents="jax and what the examples need, about 150 MB"):
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    stamp = venv / "strop-requirements.sha256"
    python = venv / "bin" / "python"
    if stamp.is_file() and stamp.read_text() == wanted and python.exists():
        return
    if venv.is_symlink():
        venv.unlink()  # what it leads to is somebody else's: `venv --clear` would empty that
    with Step(f"making the Python environment {venv.name} ({contents})"):
        run([sys.executable, "-m", "venv", "--clear", venv], f"could not make {venv.name}: is python3-venv installed?")
        run([python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", "-r", requirements],
            f"pip could not install dev_tools/{requirements.name}: is the network there?")
    stamp.write_text(wanted)


def make_framework_environments():
    make_python_environment(TORCH_VENV, TORCH_REQUIREMENTS, "torch and torch_xla, some gigabytes")
    make_python_environment(TENSORFLOW_VENV, TENSORFLOW_REQUIREMENTS, "tensorflow, some gigabytes")


def wanted_sources():
    """Pairs of a folder's name (name-version) and pip's requirement with the hash"""
    lines = (line.split("#")[0].strip() for line in SOURCES.read_text().splitlines())
    return [(line.split()[0].replace("==", "-"), line) for line in lines if line]


def fetch_sources():
    missing = [(folder, line) for folder, line in wanted_sources() if not (SOURCE_CACHE / folder).is_dir()]
    if not missing:
        return
    SOURCE_CACHE.mkdir(parents=True, exist_ok=True)
    with Step("fetching sources: " + " ".join(folder for folder, _ in missing)), tempfile.TemporaryDirectory(dir=SOURCE_CACHE) as name:
        work = Path(name)
        (work / "wanted.txt").write_text("".join(line + "\n" for _, line in missing))
        names = ",".join(line.split("==")[0] for _, line in missing)
        # pip refuses what does not have the hash; it also asks each source distribution for its metadata, which takes the most time.
        run([PYTHON, "-m", "pip", "download", "--disable-pip-version-check", "--progress-bar", "off", "--no-deps", "--no-binary", names,
             "--require-hashes", "-d", work, "-r", work / "wanted.txt"],
            "pip could not fetch the sources in dev_tools/sources.txt: is the network there?")
        for folder, _ in missing:
            with tarfile.open(work / f"{folder}.tar.gz") as archive:
                archive.extractall(work, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
            if not (SOURCE_CACHE / folder).is_dir():
                (work / folder).rename(SOURCE_CACHE / folder)


def setup(arguments=()):
    if arguments:
        raise Failure("setup takes no arguments")
    os.environ.setdefault("HOME", str(Path.home()))  # CMake looks there for the sources, too
    install(wanted_packages())
    make_python_environment()
    fetch_sources()
    return 0
