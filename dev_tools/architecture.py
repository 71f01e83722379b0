"""docs/architecture.svg: frameworks, the rooms by level, and the devices below them, from docs/layers.txt and the links in CMakeLists.txt, drawn by Graphviz.

    python3 dev_tools/architecture.py           draws it anew (needs the program `dot`)
    python3 dev_tools/architecture.py --check   is it of the rooms as they are? (the picture carries a hash of what it was drawn from; no Graphviz needed)
"""
import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "architecture.svg"
# What stands outside the rooms: (name, label, rooms that it enters by).
ABOVE = [("jax", "JAX", ["pjrt"]), ("torch", "PyTorch/XLA", ["pjrt"]), ("program", "C++ programs", ["capi"]), ("user", "the strop program", ["tools"])]
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


def graph():
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


def main():
    source = graph()
    mark = f"<!-- drawn from {hashlib.sha256(source.encode()).hexdigest()[:16]} by dev_tools/architecture.py -->"
    if sys.argv[1:] == ["--check"]:
        if PICTURE.is_file() and mark in PICTURE.read_text():
            return 0
        print(f"{PICTURE.relative_to(ROOT)} is of other rooms than there are: python3 dev_tools/architecture.py draws it anew")
        return 1
    try:
        svg = subprocess.run(["dot", "-Tsvg"], input=source, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        print("this needs Graphviz (the program `dot`, Debian package graphviz)")
        return 1
    PICTURE.write_text(re.sub(r"<!--.*?-->\n?", "", svg, flags=re.S).rstrip() + "\n" + mark + "\n")
    return 0


sys.exit(main())
