"""Objects that are compiled for one instruction set (*_avx2.cc, *_avx512.cc) share no code with the others.

The linker keeps one of several inline functions or template instances of the same name, whichever object it sees first. Were that
the one compiled for AVX-512, every other caller would run it too, also on a processor that lacks AVX-512. So such an object may
define nothing that the linker can merge, unless its name carries the instruction set."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

archive = pathlib.Path(os.environ["STROP_BUILD_DIR"]) / "libstrop_cpu.a"
if not archive.is_file() or not shutil.which("nm"):
    print("skipped: there is no", archive.name, "or no nm")
    sys.exit(77)

listing = subprocess.run(["nm", "--defined-only", archive], capture_output=True, text=True, check=True).stdout
shared, seen, tag = [], set(), None
for line in listing.splitlines():
    member = re.fullmatch(r"(\w+_(avx2|avx512))\.cc\.o:", line)
    if member or line.endswith(":"):
        tag = member.group(2) if member else None
        seen.update([member.group(1)] if member else [])
        continue
    fields = line.split()
    # W: functions, V and u: data. DW.ref.* are pointers to type information, the same under any flags.
    if tag and len(fields) == 3 and fields[1] in "WVu" and tag not in fields[2] and not fields[2].startswith("DW.ref."):
        shared.append(f"{fields[2]} compiled for {tag}")

if not seen and os.uname().machine == "x86_64":
    sys.exit(f"found no objects of an instruction set in {archive}")
if shared:
    sys.exit("the linker may give these to callers on any processor:\n" +
             subprocess.run(["c++filt"], input="\n".join(shared), capture_output=True, text=True, check=True).stdout)
print("no shared code in", ", ".join(sorted(seen)))
