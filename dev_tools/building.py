"""./dev build: CMake and Ninja behind one command. The build folder of preset P is build/P."""
import json
import os
import sys

from progress import ROOT, Failure, Step, run

DEFAULT_PRESET = os.environ.get("STROP_PRESET", "dev")


def presets():
    return [p["name"] for p in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"] if not p.get("hidden")]


def folder(preset):
    return ROOT / "build" / preset


def configure(preset):
    if preset not in presets():
        raise Failure(f"no preset '{preset}'; there are: {', '.join(presets())}")
    if not (folder(preset) / "build.ninja").is_file():
        with Step(f"configuring ({preset})"):
            run(["cmake", "--preset", preset], "CMake could not configure the build")


def build_targets(preset, targets=()):
    configure(preset)
    environment = dict(os.environ)
    environment.setdefault("NINJA_STATUS", "[%f/%t, %es] ")
    # Objects do not depend on where the tree lies: a second work tree, or the copy that tests/howto makes, finds them in the cache.
    environment.setdefault("CCACHE_BASEDIR", str(ROOT))
    environment.setdefault("CCACHE_NOHASHDIR", "1")
    environment.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros,include_file_mtime,include_file_ctime")  # precompiled headers
    environment.setdefault("CCACHE_DEPEND", "1")  # what the preprocessor leaves out, such as line breaks, is in a precompiled header nonetheless
    with Step(f"building ({preset})"):
        run(["ninja", "-C", folder(preset), *targets], "the build failed; the first error is above", env=environment)


def build(arguments):
    arguments = list(arguments)
    preset = arguments.pop(0) if arguments and arguments[0] in presets() else DEFAULT_PRESET
    build_targets(preset, arguments)
    print(f"built: {(folder(preset)).relative_to(ROOT)}", file=sys.stderr)
    return 0
