"""Every rule of simplify has a text test that would fail without it: the rule fires in a file beside it, and with the rule switched off the file's program
comes out otherwise."""
import os
import re
import subprocess
from pathlib import Path

STROP = Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop"
PASSES = Path(__file__).resolve().parents[2] / "strop" / "passes"


def opt(*arguments):
    told = subprocess.run([STROP, "opt", *arguments], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, f"strop opt {arguments}: {told.stderr}"
    return told


def test_every_rule_has_a_test():
    rules = opt("--list-rules").stdout.split()
    assert len(rules) > 100, rules
    fired = {}  # rule -> what shows it: file and the passes that the file's test runs
    for path in sorted(PASSES.rglob("*.hlo")):
        line = re.search(r"RUN: strop opt %s (--passes=\S*simplify\S*)", path.read_text())
        if not line:
            continue
        for name in re.findall(r"^\s*\d+\s+(\S+)$", opt(path, line.group(1), "--explain").stderr, re.M):
            fired.setdefault(name, []).append((path, line.group(1)))
    idle = [rule for rule in rules if rule not in fired]
    assert not idle, f"no text test in which these fire: {idle}"
    idle = []
    for rule in rules:
        if all(opt(path, passes).stdout == opt(path, passes, f"--disable-rule={rule}").stdout for path, passes in fired[rule]):
            idle.append(rule)
    assert not idle, f"no text test would fail without {idle}"


if __name__ == "__main__":
    test_every_rule_has_a_test()
