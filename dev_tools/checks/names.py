"""Names say what a thing is. No file, type, namespace or target is called after nothing in particular."""
import re

from . import tracked

FORBIDDEN = {"util", "utils", "utility", "helper", "helpers", "manager", "misc", "common", "legacy", "v2", "stuff"}
DECLARED = re.compile(r"\b(?:class|struct|enum(?:\s+class)?|namespace|union|concept)\s+(?:\[\[\w+\]\]\s*)?([A-Za-z_]\w*)")
FOREIGN = ("PJRT_", "XLA_")  # names that a binary interface of others fixes
FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_.]*|README\.md|CMakeLists\.txt|[A-Z]+(\.md)?|CMakePresets\.json|\d{4}-[a-z0-9-]+\.md|[a-z0-9-]+\.(md|hlo|mlir)|\..*")


def words(name):
    return {w.lower() for w in re.split(r"[_.\-/]|(?<=[a-z0-9])(?=[A-Z])", name) if w}


def check(root):
    errors = []
    for path in tracked(root, ""):
        bad = words(path) & FORBIDDEN
        if bad:
            errors.append(f"{path}: a file is not called '{bad.pop()}': name what it holds")
        name = path.rsplit("/", 1)[-1]
        if path.startswith("strop/") and (not FILE_NAME.fullmatch(name) or re.search(r"_\d\.(cc|h)$", name)):
            errors.append(f"{path}: file names are snake_case, and a file is split by op or stage, not by number")
        if path.endswith((".h", ".cc")):
            for number, line in enumerate((root / path).read_text().splitlines(), 1):
                for found in DECLARED.findall(line.split("//")[0]):
                    if found.startswith(FOREIGN):
                        continue
                    bad = words(found) & FORBIDDEN
                    if bad:
                        errors.append(f"{path}:{number}: {found}: a name is not '{bad.pop()}': say what it is")
    return errors, []
