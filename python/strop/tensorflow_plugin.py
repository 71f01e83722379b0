"""TensorFlow's view of Strop: libstrop_tensorflow.so, which the wheel puts into site-packages/tensorflow-plugins, where TensorFlow looks when it is imported.

    pip install strop                                        nothing else to do
    TF_PLUGGABLE_DEVICE_LIBRARY_PATH=libstrop_tensorflow.so  the library of a build that is not installed
    STROP_TENSORFLOW=0                                       TensorFlow without Strop
"""

import importlib.util
import os
import pathlib
import sysconfig

import strop

__all__ = ["library_path", "load"]

_NAME = "libstrop_tensorflow.so"
_FOLDER = "tensorflow-plugins"


def library_path() -> pathlib.Path:
    """Where it lies: beside the plugin of a build (STROP_PLUGIN), else in the folder that TensorFlow reads.

    Raises FileNotFoundError that says where it was looked for.
    """
    places = [pathlib.Path(sysconfig.get_path("platlib")) / _FOLDER, pathlib.Path(strop.__file__).parents[1] / _FOLDER]
    if os.environ.get("STROP_PLUGIN"):
        places.insert(0, strop.library_path().parent)
    for place in places:
        if (place / _NAME).is_file():
            return place / _NAME
    raise FileNotFoundError(f"no {_NAME} in {', '.join(map(str, places))}: install the wheel, or set STROP_PLUGIN to the library of a build")


def found_by_tensorflow() -> bool:
    """Whether TensorFlow loads it by itself."""
    if importlib.util.find_spec("tensorflow") is None:
        return False
    folder = pathlib.Path(sysconfig.get_path("platlib")) / _FOLDER
    return (folder / _NAME).is_file() or os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "").endswith(_NAME)


def load() -> None:
    """Loads it into this process, where TensorFlow has not done so; before the first operation."""
    from tensorflow.python.framework import load_library

    load_library.load_pluggable_device_library(str(library_path()))
