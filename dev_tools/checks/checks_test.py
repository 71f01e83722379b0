"""The checks find what they are there for: each is shown a small repository with one thing wrong."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checks import layers, names, readmes, sizes, snippets  # noqa: E402

LAYERS = "0: base\n1: types\n2: ir runtime\nonly llvm/ in cpu\nonly .pb.h in proto\n"
LONG = "int f() {\n" + "  g();\n" * 155 + "}\n"


class Checks(unittest.TestCase):
    def errors(self, check, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            subprocess.run(["git", "init", "-q", folder], check=True)
            for name, text in {"docs/layers.txt": LAYERS, sizes.EXCEPTIONS: "", **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check.check(root)[0]

    def one(self, check, files, words):
        errors = self.errors(check, files)
        self.assertEqual(len(errors), 1, errors)
        self.assertIn(words, errors[0])

    def test_layers(self):
        self.assertEqual(self.errors(layers, {"strop/types/a.cc": '#include "strop/base/status.h"\n#include <vector>\n'}), [])
        self.one(layers, {"strop/base/a.cc": '\n#include "strop/types/shape.h"\n'}, "strop/base/a.cc:2: base (level 0) includes")
        self.one(layers, {"strop/ir/a.cc": '#include "strop/runtime/buffer.h"\n'}, "only lower levels")
        self.one(layers, {"strop/ir/a.cc": "#include <llvm/IR/Module.h>\n"}, "only in cpu")
        self.one(layers, {"strop/ir/a.h": '#include "x/y.pb.h"\n'}, "only in proto")
        self.one(layers, {"strop/shed/a.h": "\n"}, "no level")

    def test_sizes(self):
        self.one(sizes, {"strop/a.cc": LONG}, "strop/a.cc:1: function f has 157 lines")
        self.one(sizes, {"strop/a.cc": "namespace n {\nstruct S {\n " + LONG + "};\n}\n"}, "function f has 157 lines")
        self.one(sizes, {"strop/a.h": "\n" * 1001}, "file has 1001 lines")
        self.assertEqual(self.errors(sizes, {"strop/a.cc": LONG, sizes.EXCEPTIONS: "strop/a.cc:f 160 # a table\n"}), [])
        self.one(sizes, {sizes.EXCEPTIONS: "strop/gone.cc 2000 # was large\n"}, "not there any more")
        table = "const int kTable[] = {\n" + "  1,\n" * 200 + "};\nint f() { return '{'; }  // {\n"
        self.assertEqual(self.errors(sizes, {"strop/a.cc": table}), [])

    def test_readmes(self):
        self.one(readmes, {"strop/ir/a.h": "\n"}, "strop/ir: README.md is missing")
        self.one(readmes, {"strop/ir/README.md": "# ir\n*Holds* *Comes in* *Goes out* *May include*\n"}, "no heading 'To add one'")
        self.one(readmes, {"tests/README.md": "#tests\n"}, "does not start with a heading")
        self.one(readmes, {"tests/README.md": "# x\n" * 21}, "21 lines")

    def test_names(self):
        self.one(names, {"strop/ir/shape_util.h": ""}, "a file is not called 'util'")
        self.one(names, {"strop/ir/dot_2.cc": ""}, "not by number")
        self.one(names, {"strop/ir/a.h": "class BufferManager;\n"}, "'manager'")
        self.assertEqual(self.errors(names, {"strop/ir/a.h": "struct PJRT_TransferManager;\nint common_dims();\n"}), [])

    def test_snippets(self):
        page = "<!-- from a.py -->\n```python\nprint(1)\n```\n"
        self.assertEqual(self.errors(snippets, {"README.md": page, "a.py": "print(1)\n"}), [])
        self.one(snippets, {"README.md": page, "a.py": "print(2)\n"}, "not a.py any more")


if __name__ == "__main__":
    unittest.main()
