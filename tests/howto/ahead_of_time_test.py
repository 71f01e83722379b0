"""docs/how-to/compile-ahead-of-time.md, followed literally in a folder that has the page and its example, with the build installed."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

from follow import SOURCE, follow

PAGE = "docs/how-to/compile-ahead-of-time.md"

build = Path(os.environ.get("STROP_BUILD_DIR", SOURCE / "build" / "dev"))
if not (build / "bin" / "strop").is_file():
    print(f"{build}/bin/strop is not built: the page needs it")
    sys.exit(77)
prefix, target = build / "embed" / "prefix", build / "embed" / "ahead_of_time"
subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
shutil.rmtree(target, ignore_errors=True)
(target / PAGE).parent.mkdir(parents=True)
shutil.copy(SOURCE / PAGE, target / PAGE)
shutil.copytree(SOURCE / "examples" / "aot", target / "examples" / "aot")
os.environ.update(PREFIX=str(prefix), PATH=f"{prefix / 'bin'}:{os.environ['PATH']}")
follow(PAGE, target)
sys.exit(0)
