"""Programs shown in documents are files that tests run: `<!-- from PATH -->` above a code block says which, and the two are the same text."""
import re

from . import tracked

SHOWN = re.compile(r"^<!-- from (\S+) -->\n```\w*\n(.*?)^```$", re.M | re.S)


def check(root):
    errors = []
    for path in tracked(root, ".md"):
        for name, shown in SHOWN.findall((root / path).read_text()):
            source = root / name
            if not source.is_file():
                errors.append(f"{path}: shows {name}, which is not there")
            elif source.read_text() != shown:
                errors.append(f"{path}: what it shows is not {name} any more: copy the file's text there")
    return errors, []
