"""./dev demo and ./dev bench: programs that need the built plugin and the Python environment."""
import os
import tempfile
from pathlib import Path

import performance
from building import DEFAULT_PRESET, build_targets, folder
from environment import PYTHON, setup
from progress import ROOT, Failure, Step, run


def plugin_environment(preset=DEFAULT_PRESET):
    """The environment in which the private Python finds the plugin of a build, without installing anything"""
    return dict(os.environ, PYTHONPATH=str(ROOT / "python"), STROP_PLUGIN=str(folder(preset) / "lib" / "libstrop_pjrt.so"))


def demo(arguments):
    setup()
    build_targets(DEFAULT_PRESET)
    with Step("LeNet-5 on Strop and on XLA:CPU"):
        code = run([PYTHON, "examples/lenet.py", *arguments], env=plugin_environment())
    if code:
        raise Failure("the demo did not come out as it should; the lines marked FAILED say why")
    return 0


def suite(script, options):
    """The side-by-side benchmark beside the checkout; all of it becomes docs/performance.md"""
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch) / "result.json"
        code = run([PYTHON, script, "--platforms", "cpu,strop", "--json", result, *options], env=dict(plugin_environment(), JAX_PLATFORMS="strop,cpu"))
        if not result.is_file():
            raise Failure(f"sidebyside.py ended with {code} and no result")
        if any(option.split("=")[0] in ("--group", "--only", "--splits") for option in options):
            print("only a run of all cases is written to docs/performance.md")
            return code
        return code or performance.report(result)


def bench(arguments):
    values = {name: value for name, _, value in (a.partition("=") for a in arguments)}
    if "--report" in values:
        return performance.report(values["--report"])
    script = Path(values.get("--suite", "")).resolve() / "sidebyside.py"
    if "--suite" in values and not script.is_file():
        raise Failure(f"there is no sidebyside.py in '{values['--suite']}'")
    setup()
    if "--kernels" in arguments:
        build_targets(DEFAULT_PRESET, ["strop_bench"])
        return run([folder(DEFAULT_PRESET) / "bin" / "strop_bench", *(a for a in arguments if a != "--kernels")])
    build_targets(DEFAULT_PRESET)
    if "--suite" in values:
        return suite(script, [a for a in arguments if not a.startswith("--suite=")])
    return run([PYTHON, "bench/bench.py", *arguments], env=plugin_environment())
