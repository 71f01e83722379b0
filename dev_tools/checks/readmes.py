"""Every folder says in at most 20 lines what it holds; folders of the library under five fixed headings."""
import re
from pathlib import PurePosixPath

from . import tracked

HEADINGS = ["Holds", "Comes in", "Goes out", "May include", "To add one"]
LIMIT = 20


def check(root):
    folders = set()
    for path in tracked(root, ".h", ".cc", ".def", ".py", ".cmake", ".md", ".hlo", ".mlir"):
        parent = PurePosixPath(path).parent
        if parent.name not in ("", "inputs", "adr", "how-to"):
            folders.add(parent)
    errors = []
    for folder in sorted(folders):
        readme = root / folder / "README.md"
        if not readme.is_file():
            errors.append(f"{folder}: README.md is missing")
            continue
        text = readme.read_text()
        if text.count("\n") > LIMIT:
            errors.append(f"{folder}/README.md: {text.count(chr(10))} lines, the limit is {LIMIT}")
        if not text.startswith("# "):
            errors.append(f"{folder}/README.md: does not start with a heading ('# name')")
        if folder.parts[0] == "strop":
            for heading in HEADINGS:
                if not re.search(rf"\*{heading}\*", text):  # in italics, as a formatter for other languages would not leave it
                    errors.append(f"{folder}/README.md: no heading '{heading}' (all of: {' · '.join(HEADINGS)})")
    return errors, []
