"""docs/how-to, followed literally, one page after the other in one copy of the repository: what they promise must build and pass.

The op comes last: its row rebuilds nearly everything, the other two almost nothing where a compiler cache is warm.
"""
import os
import sys
from pathlib import Path

from follow import SOURCE, copy_repository, follow

PAGES = ["docs/how-to/add-a-backend.md", "docs/how-to/add-a-pass.md", "docs/how-to/add-an-op.md"]

build = Path(os.environ.get("STROP_BUILD_DIR", SOURCE / "build" / "dev"))
if not (build / "bin" / "strop").is_file():
    print(f"{build}/bin/strop is not built: the pages need it")
    sys.exit(77)
target = build / "howto"
copy_repository(target)
for page in sys.argv[1:] or PAGES:
    follow(page, target)
    print(f"{page}: as it says", flush=True)
sys.exit(0)
