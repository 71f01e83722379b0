"""What ./dev optimizer equal tells of a program, and the smaller programs that it makes of those which the evaluator cannot run."""
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "dev_tools"))
import optimizer
import optimizer_sizes

optimizer.STROP = Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop"
LARGE = """HloModule large
larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
ENTRY main {
  x = f32[2,65536] parameter(0)
  low = f32[] constant(-1024)
  w = f32[2,65536] reduce-window(x, low), window={size=1x2047 pad=0_0x1023_1023}, to_apply=larger
  r = f32[131072] reshape(w)
  ROOT s = f32[1024] slice(r), slice={[1024:2048]}
}
"""


def test_sizes_are_cut_to_a_program():
    smaller = dict(optimizer_sizes.smaller(LARGE))["sizes from 32 on divided by 8"]
    for expected in ("x = f32[2,8192] ", "size=1x255 pad=0_0x127_127", "f32[16384] reshape", "slice={[128:256]}", "constant(-1024)"):
        assert expected in smaller, smaller
    assert optimizer_sizes.with_sizes("f32[?,4]") == "f32[8,4]"


def test_what_is_told(folder):
    program = folder / "program.hlo"
    program.write_text(optimizer_sizes.cut(LARGE, 256, 32))
    assert optimizer.outcome(program, folder) == ("same", ""), program.read_text()
    program.write_text("HloModule m\nENTRY main {\n  x = f32[?] parameter(0)\n  ROOT y = f32[?] negate(x)\n}\n")
    what, said = optimizer.outcome(program, folder)
    assert what == "cut" and said.startswith("unknown sizes are 8; as it stands: "), (what, said)


test_sizes_are_cut_to_a_program()
with tempfile.TemporaryDirectory() as name:
    test_what_is_told(Path(name))
