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

# 126 layers of weights, a scan over them; a table of constants; a call that wants memory for itself.
LOOP = """HloModule loop
condition {
  p = (s32[], f32[64], f32[126,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  trips = s32[] constant(126)
  ROOT more = pred[] compare(i, trips), direction=LT
}
body {
  p = (s32[], f32[64], f32[126,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  w = f32[126,64] get-tuple-element(p), index=2
  last = s32[] constant(125)
  zero = s32[] constant(0)
  at = s32[] minimum(i, last)
  layer = f32[1,64] dynamic-slice(w, at, zero), dynamic_slice_sizes={1,64}
  row = f32[64] reshape(layer)
  y = f32[64] add(x, row)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[64], f32[126,64]) tuple(next, y, w)
}
ENTRY main {
  w = f32[126,64] parameter(0)
  start = s32[] constant(0)
  table = f32[64] constant({NUMBERS})
  called = (f32[64], u8[1077936179]) custom-call(table), custom_call_target="attention"
  x = f32[64] get-tuple-element(called), index=0
  t = (s32[], f32[64], f32[126,64]) tuple(start, x, w)
  l = (s32[], f32[64], f32[126,64]) while(t), condition=condition, body=body
  ROOT y = f32[64] get-tuple-element(l), index=1
}
""".replace("NUMBERS", ", ".join(str(n) for n in range(64)))


def test_sizes_are_cut_to_a_program():
    smaller = dict(optimizer_sizes.smaller(LARGE))["sizes from 32 on divided by 8"]
    for expected in ("x = f32[2,8192] ", "size=1x255 pad=0_0x127_127", "f32[16384] reshape", "slice={[128:256]}", "constant(-1024)"):
        assert expected in smaller, smaller
    assert optimizer_sizes.with_sizes("f32[?,4]") == "f32[8,4]"


def test_lists_and_scratch_memory_are_cut_with_the_sizes():
    smaller = dict(optimizer_sizes.smaller(LOOP))["sizes from 64 on divided by 16"]
    assert "table = f32[4] constant({0, 1, 2, 3})" in smaller, smaller
    assert "u8[67371011]" in smaller, smaller  # no multiple of 16, and no matter


def test_loops_make_two_trips():
    smaller = dict(optimizer_sizes.smaller(LOOP))["two trips, sizes from 64 on divided by 16"]
    for expected in ("trips = s32[] constant(2)", "last = s32[] constant(1)", "w = f32[2,4] parameter(0)", "dynamic_slice_sizes={1,4}"):
        assert expected in smaller, smaller
    assert "start = s32[] constant(0)" in smaller and "f32[126" not in smaller, smaller


def test_what_is_told(folder):
    program = folder / "program.hlo"
    program.write_text(optimizer_sizes.cut(LARGE, 256, 32))
    assert optimizer.outcome(program, folder) == ("same", ""), program.read_text()
    program.write_text(dict(optimizer_sizes.smaller(LOOP))["two trips, sizes from 64 on divided by 64"])
    assert optimizer.outcome(program, folder) == ("same", ""), program.read_text()
    program.write_text("HloModule m\nENTRY main {\n  x = f32[?] parameter(0)\n  ROOT y = f32[?] negate(x)\n}\n")
    what, said = optimizer.outcome(program, folder)
    assert what == "cut" and said.startswith("unknown sizes are 8; as it stands: "), (what, said)


test_sizes_are_cut_to_a_program()
test_lists_and_scratch_memory_are_cut_with_the_sizes()
test_loops_make_two_trips()
with tempfile.TemporaryDirectory() as name:
    test_what_is_told(Path(name))
