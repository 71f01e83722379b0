"""The plugin needs nothing but the C library: what it opens at run time (LAPACK, Gloo, MPI) is the user's choice."""
import os
import pathlib
import shutil
import subprocess
import sys

# Parts of glibc; older ones have more files.
C_LIBRARY = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux")

plugin = pathlib.Path(os.environ["STROP_BUILD_DIR"]) / "lib" / "libstrop_pjrt.so"
if not plugin.is_file() or not shutil.which("readelf"):
    print("skipped: there is no", plugin.name, "or no readelf")
    sys.exit(77)
lines = subprocess.run(["readelf", "--dynamic", plugin], capture_output=True, text=True, check=True).stdout.splitlines()
needed = [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]
foreign = [name for name in needed if not name.startswith(C_LIBRARY)]
if foreign:
    sys.exit(f"{plugin.name} needs {', '.join(foreign)}")
print(plugin.name, "needs", ", ".join(needed))
