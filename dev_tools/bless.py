"""./dev bless: rewrites what tests expect with what the programs print now. The diff is the review.

Without arguments: the generated documents (docs/options.md and the like). With files: the CHECK lines of text tests whose expectations are
whole outputs, i.e. that carry the line

    // Expected output, written by ./dev bless:

Everything below that line is written anew; a file without CHECK lines gets the line. Files whose CHECK lines somebody chose by hand are left
alone, because choosing is what makes them good.
"""
import os
import re
import shlex
import subprocess

from building import DEFAULT_PRESET, build_targets, folder
from progress import ROOT, Failure, run

MARK = "// Expected output, written by ./dev bless:"
RUN = re.compile(r"^//\s*RUN:\s*(.*)$", re.M)


def output_of(path, text):
    """What the test's RUN line gives to FileCheck"""
    lines = " ".join(RUN.findall(text)).replace("\\ ", " ")
    command, bar, check = lines.rpartition("|")
    if not bar or "FileCheck" not in check or "FileCheck" in command:
        raise Failure(f"{path}: bless needs one RUN line of the form `strop ... | FileCheck %s`")
    if not re.fullmatch(r"\s*FileCheck\s+%s\s*", check):
        raise Failure(f"{path}: bless does not know FileCheck options: {check.strip()}")
    program = shlex.quote(str(folder(DEFAULT_PRESET) / "bin" / "strop"))
    command = re.sub(r"(?<![-\w/.])strop(?=\s)", lambda _: program, command).replace("%s", shlex.quote(str(path)))
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=ROOT, capture_output=True, text=True)
    if result.returncode:
        raise Failure(f"{path}: {command.strip()} fails:\n{result.stderr.strip()}")
    return result.stdout


def check_lines(output):
    """CHECK for the first line, CHECK-NEXT for the others; FileCheck's own {{ and [[ are written as patterns"""
    lines, prefix = [], "CHECK"
    for line in output.rstrip("\n").split("\n"):
        if not line.strip():
            lines += ["// CHECK-EMPTY:"] * (prefix != "CHECK")
            continue
        quoted = line.rstrip().replace("{{", "{{[{][{]}}").replace("[[", "{{\\[\\[}}")
        lines.append(f"// {prefix}: {quoted}")
        prefix = "CHECK-NEXT"
    return "\n".join(lines)


def bless_file(path):
    text = path.read_text()
    head, mark, _ = text.partition(MARK)
    if not mark and re.search(r"^//\s*CHECK", text, re.M):
        raise Failure(f"{path}: its CHECK lines are written by hand (no line '{MARK}'); edit them")
    path.write_text(f"{head.rstrip()}\n\n{MARK}\n{check_lines(output_of(path, text))}\n")


def bless(arguments):
    build_targets(DEFAULT_PRESET)
    if arguments:
        for name in arguments:
            path = (ROOT / name).resolve()
            if not path.is_file():
                raise Failure(f"no file {name}")
            bless_file(path)
            print(f"blessed {path.relative_to(ROOT)}")
        return 0
    environment = dict(os.environ, STROP_BLESS="1")
    for test in sorted(folder(DEFAULT_PRESET).glob("strop_*_test")):
        run([test, "--gtest_filter=*DocumentIsFresh*", "--gtest_brief=1"], f"{test.name} could not write its documents", env=environment)
    run(["git", "diff", "--stat", "--", "docs"])
    return 0
