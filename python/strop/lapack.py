"""The LAPACK library that Strop computes factorisations with: the OpenBLAS that scipy brings, which JAX needs anyway.

Strop opens it by its file when a program first needs it. STROP_LAPACK_LIBRARY names another one.
"""

import importlib.util
import os
import pathlib


def library_path() -> str:
    """The file in scipy's wheel with 32-bit integers (the only ones that Strop takes); empty if there is none.

    scipy is looked up, not imported.
    """
    try:
        spec = importlib.util.find_spec("scipy")
    except (ImportError, ValueError):
        return ""
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(pathlib.Path(folder).parent.glob("scipy.libs/libscipy_openblas*.so*")):
            if "openblas64" not in path.name:
                return str(path)
    return ""


def create_options() -> dict:
    """What a client is made with: nothing where the user has chosen, or where Strop should look by itself."""
    path = "" if os.environ.get("STROP_LAPACK_LIBRARY") else library_path()
    return {"lapack_library": path} if path else {}
