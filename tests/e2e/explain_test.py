"""The page and the JSON of `strop explain`: complete, self-contained, and (where Chromium is installed) alive in a browser."""
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

STROP = Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop"
PROGRAM = """HloModule explained, entry_computation_layout={(f32[64,64]{1,0})->f32[64,64]{1,0}}
ENTRY %main (p: f32[64,64]) -> f32[64,64] {
  %p = f32[64,64]{1,0} parameter(0)
  %d = f32[64,64]{1,0} dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="</script><b>" source_file="train.py" source_line=7}
  %e = f32[64,64]{1,0} exponential(%d)
  %s = f32[64,64]{1,0} dot(%e, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %n = f32[64,64]{1,0} subtract(%s, %e)
}
"""


def explain(*arguments):
    told = subprocess.run([STROP, "explain", *arguments], capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_json_says_what_the_page_of_docs_says(program):
    report = json.loads(explain(program, "--json", "--profile=2"))
    documented = (Path(__file__).resolve().parents[2] / "docs" / "explain.md").read_text()
    table, text = documented.split("A kernel has")
    for key in report:
        assert re.search(rf"^\|[^|]*`{key}`", table, re.M), f"docs/explain.md does not say what {key} is"
    for part in [report["memory"], report["memory"]["at_peak"][0], report["memory"]["timeline"][0], report["not_fused"][0], report["machine"]]:
        assert all(f"`{key}`" in table for key in part), f"docs/explain.md does not have all of {sorted(part)}"
    for kernel in report["kernels"]:
        assert all(f"`{key}`" in text for key in kernel), f"docs/explain.md does not have all of {sorted(kernel)}"
    times = [k.get("measured_seconds", 0) for k in report["kernels"]]
    assert times == sorted(times, reverse=True) and all(t > 0 for t in times), times
    memory = report["memory"]
    assert memory["peak"] <= memory["temporaries"] < memory["unshared"], memory
    assert sum(v["bytes"] for v in memory["at_peak"]) == memory["peak"] == max(t["bytes"] for t in memory["timeline"]), memory


def test_page(program, folder):
    path = Path(folder) / "x.html"
    explain(program, "-o", path)
    html = path.read_text()
    outside = re.findall(r'(?:src|href)\s*=|url\(|https?://|import\(|fetch\(', html)
    assert not outside, f"the page reads {outside}"
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', html, re.S).group(1))
    assert any(k["op_name"] == "</script><b>" for k in data["kernels"]), data["kernels"]
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("no Chromium: the page was read, not opened")
        return
    dom = subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom", f"file://{path}"],
                         capture_output=True, text=True, timeout=120).stdout
    for text in ("explained on cpu", "Kernels: ", "train.py:7", "<circle", "<rect", "Copies: 0", "compiling: "):
        assert text in dom, (text, dom[-3000:])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.hlo"
        program.write_text(PROGRAM)
        test_json_says_what_the_page_of_docs_says(program)
        test_page(program, folder)
