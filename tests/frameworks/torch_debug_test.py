"""What a user of PyTorch/XLA sees of a program on Strop: names and lines in HLO, plans, profiles and errors, dumps, reports, counters, fx graphs.

Each check names the rows of the feature list that it covers.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import interpreter

interpreter.require_torch()

MODEL = """
import torch, torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
device = torch_xla.device()
torch.manual_seed(0)
layer = torch.nn.Linear(64, 32).to(device)
x = torch.ones(16, 64, device=device)
torch_xla.sync()
def forward():
    return torch.tanh(layer(x))  # the user's line
y = forward()
"""

NAMES = MODEL + """
assert torch_xla._XLAC._set_xla_custom_op_name_prefix(y, "net/layer7/", 3)
print(torch_xla._XLAC._get_xla_tensors_hlo([y]), torch_xla._XLAC._get_xla_tensors_text([y]))
torch_xla.sync()
"""

FAILS = """
import torch, torch_xla
from torch_xla.experimental.stablehlo_custom_call import stablehlo_custom_call
x = torch.ones(4, device=torch_xla.device())
y = stablehlo_custom_call([x], "nobody_knows_this", [[4]], [torch.float32], False, "", 0)  # the user's line
print(y.cpu())
"""

BEHAVIOUR = MODEL + """
# PT-03: a graph is built, nothing compiled or run
compiled = lambda: met.metric_data("CompileTime")[0] if met.metric_data("CompileTime") else 0
before = compiled()
z = layer(x) * 2
assert compiled() == before
print(torch_xla._XLAC._get_xla_tensors_text([z]).count("aten::addmm"), "addmm")
print(z.cpu().shape)
assert compiled() == before + 1
# PT-06: a step between makes two programs of one
def two(step):
    torch_xla.sync()
    start = compiled()
    a = torch.sin(x * (3 if step else 5))
    if step: xm.mark_step()
    b = (torch.cos(a) + (7 if step else 9)).cpu()
    return compiled() - start
assert (two(True), two(False)) == (2, 1)
# PT-08, PT-09: views and hooks
base = torch.zeros(4, device=device)
base.view(2, 2)[0].add_(1)
assert base.cpu().tolist() == [1, 1, 0, 0]
w = torch.ones(3, device=device, requires_grad=True)
seen = []
v = w * 2
v.retain_grad(); v.register_hook(lambda g: seen.append(g.cpu().tolist()))
(v * 3).sum().backward()
assert seen == [[3, 3, 3]] and v.grad.cpu().tolist() == [3, 3, 3] and w.grad.cpu().tolist() == [6, 6, 6]
# PT-12: no locations unless they are asked for; PT-17: 64 bits
assert "location=" not in torch_xla._XLAC._get_xla_tensors_text([layer(x)])
assert "s64[3]" in torch_xla._XLAC._get_xla_tensors_hlo([torch.arange(3, device=device) + 1])
# PT-20: compiled once
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.ReLU()).to(device).eval(), backend="openxla")
with torch.no_grad():
    ones = torch.ones(2, 5, device=device)
    torch_xla.sync()
    first = model(ones).cpu()
    start = compiled()
    assert torch.equal(first, model(ones).cpu()) and compiled() == start
# PT-21, PT-22: what the bridge is given
graph = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.ReLU()))
try:
    import tabulate, pydot
except ImportError:
    print("no tabulate or pydot: fx pictures not looked at")
else:
    graph.graph.print_tabular()
    from torch.fx.passes.graph_drawer import FxGraphDrawer
    assert len(FxGraphDrawer(graph, "model").get_dot_graph().get_nodes()) >= len(graph.graph.nodes)
# PT-27
names = met.metric_names() + met.counter_names()
for name in ("CompileTime", "ExecuteTime", "TransferToDeviceTime", "UncachedCompile"):
    assert name in names, (name, names)
print("all seen")
"""


def main():
    checks = interpreter.Checks()
    strop = Path(os.environ.get("STROP_BUILD_DIR", interpreter.SOURCE / "build" / "dev")) / "bin" / "strop"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"

        def run(text, **variables):
            program.write_text(text)
            code, output = interpreter.run([sys.executable, program], PJRT_DEVICE="STROP", **variables)
            return code, output, 1 + next((k for k, line in enumerate(text.splitlines()) if "# the user's line" in line), -1)

        code, output, line = run(NAMES, XLA_IR_DEBUG="1", XLA_HLO_DEBUG="1", STROP_XLA_DUMP_TO=folder)
        checks("source lines in the HLO (PT-10, PT-13)", re.search(rf'aten__tanh.*source_file="{program}" source_line={line}\b', output), output)
        checks("and in the IR (PT-11, PT-12)", re.search(rf"aten::tanh.*location=forward@program.py:{line}\b", output), output)
        checks("names with a prefix (PT-18)", 'op_name="net/layer7/aten__addmm"' in output, output)
        for dump in Path(folder).glob("*.SyncTensorsGraph.*.before_optimizations.txt") if strop.is_file() else []:
            if " tanh(" not in dump.read_text():
                continue
            explained = subprocess.run([strop, "explain", dump], stdout=subprocess.PIPE, text=True).stdout
            named = f"program.py:{line}" in explained and "net/layer7/aten__addmm" in explained and "site-packages" not in explained
            checks("strop explain names kernels and lines, the user's where a layer of PyTorch made the op (PT-10, DB-09)", named, explained)
        code, output, line = run(FAILS, XLA_IR_DEBUG="1", XLA_HLO_DEBUG="1")
        checks("an error at the sync names the line that made the op (PT-28)", "nobody_knows_this" in output and f"{program}:{line}" in output, output)
        code, output, line = run(BEHAVIOUR)
        checks("lazy graphs, steps, views, hooks, 64 bits, torch.compile, fx pictures, counters (PT-03, 06, 08, 09, 12, 17, 20-22, 27)",
               code == 0 and "all seen" in output, output)
        code, output, line = run(MODEL + "print(torch_xla._XLAC._get_xla_tensors_hlo([torch.arange(3, device=device) + 1]))", XLA_USE_32BIT_LONG="1")
        checks("32 bits for long (PT-17)", "s32[3]" in output and "s64" not in output, output)
        code, output, line = run(MODEL + "torch_xla.sync()", PT_XLA_DEBUG="1", STROP_XLA_DUMP_TO=folder)
        checks("PT_XLA_DEBUG tells causes (PT-16)", all(f"{kind} Analysis: " in output for kind in ("Compilation", "Post Compilation", "Execution")), output)
        checks("dumps are named after the graph (PT-04)", list(Path(folder).glob("*.SyncTensorsGraph.*.before_optimizations.txt")))
        for form, mark in (("text", "aten::addmm"), ("hlo", "= f32[16,32]{1,0} tanh("), ("dot", "digraph"), ("stablehlo", "stablehlo.dot_general")):
            run(MODEL + "torch_xla.sync()", XLA_SAVE_TENSORS_FILE=f"{folder}/{form}.txt", XLA_SAVE_TENSORS_FMT=form)
            saved = Path(folder) / f"{form}.txt.0"
            text = saved.read_text() if saved.is_file() else "no file"
            checks(f"saved graphs: {form} (PT-14, PT-15)", mark in text and "## END_GRAPH" in text, text)
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
