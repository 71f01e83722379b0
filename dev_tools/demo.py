"""./dev demo and ./dev bench: programs that need the built plugin and the Python environment."""
import os

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


def bench(arguments):
    setup()
    build_targets(DEFAULT_PRESET)
    return run([PYTHON, "bench/bench.py", *arguments], env=plugin_environment())
