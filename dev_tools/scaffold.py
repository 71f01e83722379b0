"""./dev new-op, new-pass, new-backend: the files and rows that a new one starts from. What they make builds and passes its tests at once.

Nothing is generated from templates that could grow stale: a new op starts as a copy of an op that exists, in every column that names it, and a new
backend as a copy of strop/null.
"""
import re

from checks import format as clang_format
from progress import ROOT, Failure, run


def words(name):
    return re.split(r"[-_]", name)


def camel(name):
    return "".join(word[:1].upper() + word[1:] for word in words(name))


def snake(name):
    return "_".join(words(name))


def name_argument(arguments, command, example):
    if len(arguments) < 1 or not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", arguments[0]):
        raise Failure(f"usage: ./dev {command} NAME, such as {example}: lower case letters, digits, and - between words")
    return arguments[0]


class Changes:
    """Edits held back until all of them are known to work, then written and listed."""

    def __init__(self):
        self.texts, self.notes = {}, {}

    def read(self, path):
        if path not in self.texts:
            self.texts[path] = (ROOT / path).read_text()
        return self.texts[path]

    def create(self, path, text, note=""):
        if (ROOT / path).exists():
            raise Failure(f"{path} exists already")
        self.texts[path], self.notes[path] = text, note or "new"

    def replace(self, path, old, new, note=""):
        text = self.read(path)
        if text.count(old) != 1:
            raise Failure(f"{path}: expected exactly one '{old.strip()}' and found {text.count(old)}; dev_tools/scaffold.py must follow the change")
        self.texts[path], self.notes[path] = text.replace(old, new), note or "a row"

    def double_lines(self, path, pattern, rename):
        """After each line that matches, the line again with rename(line); returns how many there were"""
        lines, count = [], 0
        for line in self.read(path).splitlines(keepends=True):
            lines.append(line)
            if re.search(pattern, line):
                lines.append(rename(line))
                count += 1
        if count:
            self.texts[path] = "".join(lines)
            self.notes[path] = "a row" if count == 1 else f"{count} rows"
        return count

    def write(self):
        formatted = [path for path in self.notes if path.endswith((".cc", ".h"))]
        for path in self.notes:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(self.texts[path])
            print(f"  {path}: {self.notes[path]}")
        if formatted and clang_format.program():
            run([clang_format.program(), "-i", *formatted], "clang-format failed")


def new_backend(arguments):
    name = snake(name_argument(arguments, "new-backend", "foo"))
    if (ROOT / "strop" / name).exists():
        raise Failure(f"strop/{name} exists already")

    def rename(text):
        text = re.sub(r"\bNull(?=[A-Z])", camel(name), text)
        text = text.replace("null_backend", f"{name}_backend")
        return re.sub(r"\bnull\b(?!ptr)", name, text)

    changes = Changes()
    for path in sorted((ROOT / "strop" / "null").rglob("*")):
        if path.is_file():
            relative = path.relative_to(ROOT / "strop" / "null").as_posix().replace("null", name)
            changes.create(f"strop/{name}/{relative}", rename(path.read_text()))
    changes.double_lines("CMakeLists.txt", r"^strop_room\(null ", rename)
    text = changes.read("CMakeLists.txt")
    changes.texts["CMakeLists.txt"] = re.sub(r"^(strop_room\(driver .*\bnull\b)", rf"\1 {name}", text, flags=re.M)
    changes.replace("docs/layers.txt", "7: cpu gpu null", f"7: cpu gpu null {name}", "its level")
    if not changes.double_lines("strop/driver/registry.cc", r"null_backend\.h|NullBackend", rename):
        raise Failure("strop/driver/registry.cc does not name NullBackend; dev_tools/scaffold.py must follow the change")
    changes.write()
    print(f"Next: ./dev build, then build/dev/bin/strop devices lists '{name}'. docs/how-to/add-a-backend.md goes on from here.")
    return 0


def option(arguments, flag, fallback):
    """The value after `flag`, taken out of the arguments"""
    if flag not in arguments:
        return fallback
    at = arguments.index(flag)
    if at + 1 >= len(arguments):
        raise Failure(f"{flag} needs a value")
    value = arguments[at + 1]
    del arguments[at : at + 2]
    return value


def op_row(text):
    """(enumerator, traits) of the op with this HLO text name"""
    row = re.search(rf'^OP\((\w+), "{re.escape(text)}", [^,]+, ([^,]+),', (ROOT / "strop/ir/ops.def").read_text(), re.M)
    return row and row.groups()


# How a column names an op, each on one line: a pattern for the op that is copied, with what its line becomes in `new`.
def column_line(line, like, new):
    """The line or lines that a line of a column becomes when `new` joins as a copy of `like`; None where it does not name `like`"""
    if re.match(rf"\s*case Op::{like}:.*;\s*(//.*)?$", line):  # case Op::Cosh: return Unary<std::cosh>;
        return line + line.replace(f"Op::{like}", f"Op::{new}", 1)
    if re.match(rf"\s*case Op::{like}:\s*$", line):
        return line + line.replace(like, new)
    if re.match(rf"\s*[A-Z_]+\({like},", line) or re.match(rf"\s*\{{Op::{like},", line):  # STROP_SCALAR(Cosh, ...), {Op::Cosh, ...},
        return line + line.replace(like, new, 1)
    listed = rf"((?:^|[{{,])\s*){like}(?=\s*[,}}])"  # Set(kF, {Cos, Cosh, Exp});
    if re.search(listed, line) and not re.match(r"\s*//", line):
        return re.sub(listed, rf"\g<1>{like}, {new}", line, count=1)
    return None


def new_op(arguments):
    arguments = list(arguments)
    like_text = option(arguments, "--like", "cosh")
    text = name_argument(arguments, "new-op", "gaussian --like erf")
    like = op_row(like_text)
    if not like or "kUnary" not in like[1] and "kBinary" not in like[1]:
        raise Failure(f"--like names an elementwise op of strop/ir/ops.def; '{like_text}' is none")
    if op_row(text):
        raise Failure(f"there is an op '{text}' already")
    like, new = like[0], camel(text)

    changes = Changes()
    changes.double_lines("strop/ir/ops.def", rf'^OP\({like}, ', lambda line: line.replace(f'OP({like}, "{like_text}"', f'OP({new}, "{text}"'))
    for path in sorted((ROOT / "strop").rglob("*.*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in (".cc", ".h") or name.endswith("_test.cc"):
            continue
        lines = path.read_text().splitlines(keepends=True)
        changed = [column_line(line, like, new) for line in lines]
        if any(changed):
            changes.texts[name] = "".join(after or before for before, after in zip(lines, changed))
            changes.notes[name] = f"as {like_text}"
    like_test = ROOT / f"tests/conformance/{snake(like_text)}.hlo"
    if like_test.is_file():
        tests = like_test.read_text().replace(f"HloModule {snake(like_text)}_", f"HloModule {snake(text)}_").replace(f" {like_text}(", f" {text}(")
        changes.create(f"tests/conformance/{snake(text)}.hlo", tests)
    changes.write()
    print(f"Next: write what {text} means where it still says what {like_text} does. docs/how-to/add-an-op.md goes on from here.")
    return 0


PASS_SOURCE = """// {title}: what it does and why, for somebody who knows HLO and not this pass. Before and after:
//
//   %b = f32[2] negate(%a)
//   %c = f32[2] negate(%b)        %c becomes %a
//
#include "strop/passes/pass.h"

namespace strop {{
namespace {{

// True if it changed the instruction. May replace it; its operands come before it and have been seen.
bool Rewrite(Instruction* instruction) {{ return false; }}

struct {struct} final : Pass {{
  Result<bool> Run(Module& module, PassContext& context) override {{
    int64_t changed = 0;
    for (Computation* computation : module.computations()) {{
      for (Instruction* instruction = computation->first(); instruction;) {{
        Instruction* next = instruction->next();
        changed += Rewrite(instruction);
        instruction = next;
      }}
    }}
    context.Count("{name}.changed", changed);
    return changed > 0;
  }}
}};

}}  // namespace

std::unique_ptr<Pass> Make{struct}() {{ return std::make_unique<{struct}>(); }}

}}  // namespace strop
"""

PASS_TEST = """// RUN: strop opt %s --passes={name} | FileCheck %s

HloModule {file}

ENTRY main {{
  a = f32[2] parameter(0)
  b = f32[2] negate(a)
  ROOT c = f32[2] negate(b)
}}

// Expected output, written by ./dev bless:
// CHECK: HloModule {file}
"""


def new_pass(arguments):
    name = name_argument(arguments, "new-pass", "double-negate").replace("_", "-")
    file, struct = snake(name), camel(name)
    changes = Changes()
    changes.create(f"strop/passes/{file}.cc", PASS_SOURCE.format(title=name.replace("-", " ").capitalize(), struct=struct, name=name))
    changes.create(f"strop/passes/{file}.hlo", PASS_TEST.format(name=name, file=file))
    rows = changes.read("strop/passes/passes.def")
    if re.search(rf'^PASS\({struct},', rows, re.M):
        raise Failure(f"there is a pass {struct} already")
    changes.texts["strop/passes/passes.def"] = rows.rstrip("\n") + f'\nPASS({struct}, "{name}", Imported, "Says here in one sentence what it does.")\n'
    changes.notes["strop/passes/passes.def"] = "a row"
    changes.write()
    print(f"Next: write Rewrite() in strop/passes/{file}.cc. docs/how-to/add-a-pass.md goes on from here.")
    return 0
