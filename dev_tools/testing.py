"""./dev test: the one command that a fresh machine needs to see that everything works. Ends in one line: N passed, N failed[, N skipped].

--frameworks installs the frameworks that are too large for everybody (PyTorch/XLA, TensorFlow), so that their tests are not skipped."""
import os
import xml.etree.ElementTree

from building import DEFAULT_PRESET, build_targets, folder, presets
from environment import make_framework_environments, setup
from progress import Failure, Step, run


def parse(arguments):
    preset, rest = DEFAULT_PRESET, []
    arguments = list(arguments)
    while arguments:
        argument = arguments.pop(0)
        if argument == "--preset" and arguments:
            preset = arguments.pop(0)
        elif argument.startswith("--preset="):
            preset = argument.split("=", 1)[1]
        else:
            rest.append(argument)
    if preset not in presets():
        raise Failure(f"no preset '{preset}'; there are: {', '.join(presets())}")
    return preset, rest


def count(report):
    """(passed, failed, skipped, names of the failed) from ctest's JUnit file"""
    passed = failed = skipped = 0
    names = []
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        status = case.get("status")
        if status == "run":
            passed += 1
        elif status in ("notrun", "disabled") and case.find("skipped") is not None:
            skipped += 1
        else:
            failed += 1
            names.append(case.get("name"))
    return passed, failed, skipped, names


def test(arguments):
    arguments = list(arguments)
    frameworks = "--frameworks" in arguments
    preset, rest = parse([a for a in arguments if a != "--frameworks"])
    setup()
    if frameworks:
        make_framework_environments()
    build_targets(preset)
    report = folder(preset) / "tests.xml"
    report.unlink(missing_ok=True)
    with Step(f"testing ({preset})"):
        code = run(["ctest", "--test-dir", folder(preset), "--output-on-failure", "-j", str(os.cpu_count() or 2), "--no-tests=error", "--timeout", "900",
                    "--output-junit", report, *rest])
    if not report.is_file():
        raise Failure(f"ctest wrote no report (exit {code})")
    passed, failed, skipped, names = count(report)
    for name in names:
        print(f"FAILED {name}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
    return 1 if failed or code or not passed else 0
