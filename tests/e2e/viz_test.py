"""The page that `strop viz -o x.html` writes: complete, self-contained, and (where Chromium is installed) alive in a browser."""
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

STROP = Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop"
PROGRAM = """HloModule drawn</script>, entry_computation_layout={(f32[8]{0})->f32[8]{0}}
%fused (q: f32[8]) -> f32[8] {
  %q = f32[8]{0} parameter(0)
  ROOT %e = f32[8]{0} exponential(%q), metadata={op_name="jit(f)/exp" source_file="train.py" source_line=7}
}
ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0), sharding={devices=[2]0,1}
  %zero = f32[] constant(0)
  %zeros = f32[8]{0} broadcast(%zero), dimensions={}
  %f = f32[8]{0} fusion(%p), kind=kLoop, calls=%fused
  ROOT %n = f32[8]{0} subtract(%f, %zeros)
}
""".replace("drawn</script>", "drawn")


def page(folder, *arguments):
    path = Path(folder) / "x.html"
    told = subprocess.run([STROP, "viz", *arguments, "-o", path], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stderr
    return path, path.read_text()


def data_of(html):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', html, re.S).group(1))["modules"]


def test_page(folder):
    program = Path(folder) / "program.hlo"
    program.write_text(PROGRAM.replace('op_name="jit(f)/exp"', 'op_name="</script><b>"'))
    path, html = page(folder, program, "--passes=simplify")
    outside = re.findall(r'(?:src|href)\s*=|url\(|https?://|import\(|fetch\(', html)
    assert not outside, f"the page reads {outside}"
    before, *after = data_of(html)
    assert [i["name"] for c in before["computations"] for i in c["instructions"]] == ["q", "e", "p", "zero", "zeros", "f", "n"]
    exp = before["computations"][0]["instructions"][1]
    assert (exp["source"], exp["op_name"], exp["bytes"]) == ("train.py:7", "</script><b>", 64), exp
    parameter = before["computations"][1]["instructions"][0]
    assert parameter["sharding"] and parameter["layout"] == "{0}", parameter
    assert [m["title"] for m in after] == ["1 after simplify"], [m["title"] for m in after]
    assert len(after[-1]["computations"][-1]["instructions"]) == 2  # x - 0 is x
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("no Chromium: the page was read, not opened")
        return
    dom = subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom", f"file://{path}"],
                         capture_output=True, text=True, timeout=120).stdout
    assert "drawn as read \u00b7 7 instructions" in dom, dom[-2000:]  # the script ran to its end:
    assert "most bytes" in dom and "after simplify" in dom and 'class="view"' in dom, dom[-2000:]


def test_files_side_by_side(folder):
    one, two = Path(folder) / "one.hlo", Path(folder) / "two.hlo"
    one.write_text(PROGRAM)
    two.write_text(PROGRAM.replace("exponential", "tanh"))
    _, html = page(folder, one, two)
    assert [m["title"] for m in data_of(html)] == [str(one), str(two)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        test_page(folder)
        test_files_side_by_side(folder)
