"""The pictures of docs/, drawn by Graphviz from the sources.

    architecture.svg   frameworks, the rooms by level, and the devices below them, from docs/layers.txt and the links in CMakeLists.txt
    compilation.svg    what a program goes through on its way to the CPU: the passes in their order, the plan, who computes kernels; from the lists of passes in
                       strop/passes/pipelines.cc, strop/driver/pipeline.cc and strop/cpu/cpu_backend.cc, the phases in strop/driver/compile.cc and the kernel families

    python3 dev_tools/architecture.py           draws them anew (needs the program `dot`)
    python3 dev_tools/architecture.py --check   are they of the sources as they are? (a picture carries a hash of what it was drawn from; no Graphviz needed)
"""
import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What stands outside the rooms: (name, label, rooms that it enters by).
ABOVE = [("jax", "JAX", ["pjrt"]), ("torch", "PyTorch/XLA", ["pjrt"]), ("tf", "TensorFlow", ["tensorflow", "pjrt"]), ("program", "C++ programs", ["capi"]), ("user", "the strop program", ["tools"])]
BELOW = [("cpus", "CPUs", ["cpu"])]


def levels():
    out = []
    for line in (ROOT / "docs" / "layers.txt").read_text().splitlines():
        if match := re.match(r"(\d+): (.*)", line):
            out.append([room for room in match.group(2).split() if (ROOT / "strop" / room).is_dir()])
    return out


def links():
    """(room, the rooms that CMake links it with)"""
    out = []
    for match in re.finditer(r"^strop_room\((\w+)(.*)\)", (ROOT / "CMakeLists.txt").read_text(), re.M):
        rooms = re.search(r"ROOMS ([a-z ]+)", match.group(2))
        out.append((match.group(1), rooms.group(1).split() if rooms else []))
    return out


def architecture():
    lines = ["digraph strop {", '  rankdir=TB; fontname="Helvetica"; nodesep=0.25; ranksep=0.4;',
             '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=12, fillcolor="#ffffff"];', '  edge [color="#8a94a3", arrowsize=0.6];']
    for name, label, rooms in ABOVE:
        lines.append(f'  {name} [label="{label}", fillcolor="#fff3cd"];')
        lines += [f"  {name} -> {room};" for room in rooms]
    for number, rooms in reversed(list(enumerate(levels()))):
        lines.append(f"  {{ rank=same; {'; '.join(rooms)}; }}")
        lines += [f'  {room} [label="{room}\\nlevel {number}", fillcolor="#cfe2ff"];' for room in rooms]
    lines += [f"  {room} -> {lower};" for room, lowers in links() for lower in lowers]
    for name, label, rooms in BELOW:
        lines.append(f'  {name} [label="{label}", fillcolor="#d4edda"];')
        lines += [f"  {room} -> {name};" for room in rooms]
    return "\n".join([*lines, "}\n"])


def source(path):
    return (ROOT / path).read_text()


def names_of_passes():
    return dict(re.findall(r'^PASS\((\w+), "([\w-]+)"', source("strop/passes/passes.def"), re.M))


def passes_of(text):
    """The passes that a function adds, in order: single ones as names, repeated groups as lists of names"""
    names = names_of_passes()
    groups = {name: [names[p] for p in re.findall(r"PassId::(\w+)", body)] for name, body in re.findall(r"PassId (\w+)\[\] = \{(.*?)\};", text, re.S)}
    out = []
    for one, group in re.findall(r"\.Add\(PassId::(\w+)\)|\.AddRepeated\((\w+)", text):
        out.append(groups[group] if group else names[one])
    return out


def compilation():
    phases = re.findall(r"  // ---- (\w+): (.*)", source("strop/driver/compile.cc"))
    families = sorted(set(re.findall(r"&k(\w+)Family", source("strop/cpu/families.cc"))))
    library = sorted(path.stem for path in (ROOT / "strop/cpu/library").glob("*.cc") if path.stem != "library")
    blocks = [("passes", "strop/passes", passes_of(source("strop/passes/pipelines.cc"))), ("cpu_passes", "strop/cpu", passes_of(source("strop/cpu/cpu_backend.cc"))),
              ("last_passes", "strop/driver", passes_of(source("strop/driver/pipeline.cc")))]
    lines = ["digraph compilation {", '  rankdir=LR; fontname="Helvetica"; nodesep=0.15; ranksep=0.35;',
             '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11, fillcolor="#cfe2ff"];', '  edge [color="#8a94a3", arrowsize=0.6];',
             '  program [label="StableHLO, HLO\\n(text, bytecode, proto)", fillcolor="#fff3cd"];', '  import [label="reader, verifier\\nstrop/import, text, proto"];',
             "  program -> import;"]
    before = "import"
    for name, room, passes in blocks:
        rows = [p if isinstance(p, str) else "until nothing changes:\\l    " + "\\l    ".join(p) for p in passes]
        lines.append(f'  {name} [label="passes ({room})\\l{chr(92)}l' + "\\l".join(rows) + '\\l"];')
        lines.append(f"  {before} -> {name};")
        before = name
    plan = re.findall(r"STROP_TRY\((\w+Module)\(\*module, |Plan plan, (\w+)\(", source("strop/driver/compile.cc"))
    steps = {"FuseModule": "fusion", "ScheduleModule": "schedule", "PlanFor": "regions, buffers, copies"}
    lines.append('  plan [label="plan (strop/plan)\\l\\l' + "\\l".join(steps[a or b] for a, b in plan if (a or b) in steps) + '\\l"];')
    lines.append(f"  {before} -> plan;")
    makers = [("library", "library kernels\\l\\l" + "\\l".join(library)), ("generated", "generated through LLVM\\l\\l" + "\\l".join(re.sub(r"(?<=.)([A-Z])", r" \1", f).lower() for f in families)),
              ("evaluator", "the evaluator:\\lwhat nobody else has")]
    for name, label in makers:
        lines += [f'  {name} [label="{label}\\l", fillcolor="#d4edda"];', f"  plan -> {name} -> executable;"]
    lines.append('  executable [label="executable:\\lsteps, buffers, constants\\l", fillcolor="#d4edda"];')
    lines.append(f'  label="{"; ".join(name + ": " + what for name, what in phases)}"; fontsize=10;')
    return "\n".join([*lines, "}\n"])


PICTURES = {"architecture.svg": architecture, "compilation.svg": compilation}


def main():
    wrong = 0
    for name, graph in PICTURES.items():
        picture, text = ROOT / "docs" / name, graph()
        mark = f"<!-- drawn from {hashlib.sha256(text.encode()).hexdigest()[:16]} by dev_tools/architecture.py -->"
        if sys.argv[1:] == ["--check"]:
            if not (picture.is_file() and mark in picture.read_text()):
                print(f"{picture.relative_to(ROOT)} is of other sources than there are: python3 dev_tools/architecture.py draws it anew")
                wrong = 1
            continue
        try:
            svg = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True).stdout
        except FileNotFoundError:
            print("this needs Graphviz (the program `dot`, Debian package graphviz)")
            return 1
        picture.write_text(re.sub(r"<!--.*?-->\n?", "", svg, flags=re.S).rstrip() + "\n" + mark + "\n")
    return wrong


sys.exit(main())
