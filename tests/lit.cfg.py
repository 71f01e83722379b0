# lit's configuration for every text test (.hlo, .mlir) beside its room and under tests/.
# The build directory's lit.site.cfg.py says where the programs are and then loads this file.
import ctypes
import os

import lit.formats

config.name = "strop"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".hlo", ".mlir"]
config.excludes = ["inputs"]
config.test_source_root = config.strop_source_dir
config.test_exec_root = config.strop_lit_dir

# A sanitizer's report aborts, and `not` takes no abort for a refusal: a crash never passes for an expected error.
config.environment["ASAN_OPTIONS"] = "abort_on_error=1:detect_leaks=0"
config.environment["UBSAN_OPTIONS"] = "abort_on_error=1:print_stacktrace=1"
for name, value in os.environ.items():
    if name.startswith("STROP_"):
        config.environment[name] = value

# Shared objects with passes (tests/pass_libraries).
config.substitutions.append(("%passes", config.strop_passes_dir))

# Programs are written as one would type them: `strop opt %s --passes=dce | FileCheck %s`. A path that ends in one of the words is left alone.
for word, program in (("strop", config.strop_program), ("FileCheck", config.filecheck_program), ("not", config.not_program)):
    config.substitutions.append((r"(?<![-\w/.])" + word + r"(?=\s)", program))

# Tests of factorisations need the host's LAPACK.
named_lapack = os.environ.get("STROP_LAPACK_LIBRARY")
for library in [named_lapack] if named_lapack else ["libopenblas.so.0", "liblapack.so.3"]:
    try:
        ctypes.CDLL(library)
    except OSError:
        continue
    config.available_features.add("lapack")
