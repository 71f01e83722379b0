"""The optimiser is idempotent: what `strop opt` prints, it leaves as it is. And it comes to rest: no group of passes is stopped by its limit of rounds.

Every HLO file of the sources is tried."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STROP = Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop"


def opt(path):
    return subprocess.run([STROP, "opt", path, "--explain"], capture_output=True, text=True, timeout=60)


def test_idempotent():
    tried, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / "again.hlo"
        for path in sorted((ROOT / "strop").rglob("*.hlo")):
            once = opt(path)
            if once.returncode:  # files about refusals
                continue
            again.write_text(once.stdout)
            twice = opt(again)
            tried += 1
            if twice.returncode or once.stdout != twice.stdout or "not-settled" in once.stderr + twice.stderr:
                wrong.append(str(path.relative_to(ROOT)))
    assert tried > 50, tried
    assert not wrong, f"another run changes, or a run does not come to rest: {wrong}"


if __name__ == "__main__":
    test_idempotent()
    sys.exit(0)
