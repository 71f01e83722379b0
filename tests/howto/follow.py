"""Follows a how-to page literally in a copy of the repository: runs its shell blocks, makes its edits, and stops at the first that fails.

A page's blocks:

    ```sh        commands, run from the root of the copy
    ```diff      an edit: the first line names the file, lines with - are replaced by lines with +; lines with a blank stand around them

Any other block is only shown.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("STROP_SOURCE_DIR", Path(__file__).resolve().parents[2]))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def copy_repository(target):
    """Brings `target` up to the repository's state, leaving its build folder and unchanged files alone, so that little is rebuilt."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=SOURCE, capture_output=True, text=True, check=True).stdout
    wanted = {name for name in names.split("\0") if name and (SOURCE / name).is_file()}
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(target.rglob("*"), reverse=True):  # what a folder holds before the folder
        name = path.relative_to(target).as_posix()
        if path.is_symlink() or name.split("/")[0] in ("build", ".git"):
            continue
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif name not in wanted:
            path.unlink()
    for name in sorted(wanted):
        source, copy = SOURCE / name, target / name
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    for folder in (".venv",):
        if (SOURCE / folder).is_dir() and not (target / folder).exists():
            (target / folder).symlink_to(SOURCE / folder)
    subprocess.run(["git", "init", "-q", "."], cwd=target, check=True)


def edit(target, block):
    """Replaces the - lines of a diff block by its + lines; the text to be replaced must stand in the file exactly once."""
    first, _, body = block.partition("\n")
    path = target / first.removeprefix("---").strip()
    old = "".join(line[1:] + "\n" for line in body.splitlines() if line[:1] in ("-", " "))
    new = "".join(line[1:] + "\n" for line in body.splitlines() if line[:1] in ("+", " "))
    text = path.read_text()
    if text.count(old) != 1:
        sys.exit(f"the page wants to edit {path.relative_to(target)}, where this stands {text.count(old)} times:\n{old}")
    path.write_text(text.replace(old, new))


def follow(page, target):
    environment = {name: value for name, value in os.environ.items() if name != "CCACHE_BASEDIR"}
    environment["STROP_UNIT_TESTS"] = "OFF"  # about a sixth of the build, and nothing that a page speaks of
    for kind, body in BLOCK.findall((target / page).read_text()):
        if kind == "sh":
            print(f"--- {page}\n{body}", flush=True)
            result = subprocess.run(["bash", "-euo", "pipefail", "-c", body], cwd=target, env=environment)
            if result.returncode:
                sys.exit(f"{page}: these commands fail with exit code {result.returncode}:\n{body}")
        elif kind == "diff":
            edit(target, body)
