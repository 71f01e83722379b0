"""The `strop` program as one who mistypes meets it: one clear line on stderr, exit code 2 for a mistake of the user's, 1 for what failed; never a crash."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

STROP = Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop"
PROGRAM = """HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}
ENTRY main {
  x = f32[2]{0} parameter(0)
  ROOT y = f32[2]{0} negate(x)
}
"""
COMMANDS = ("check", "compile", "devices", "diff", "explain", "opt", "parse", "reduce", "replay", "run", "translate", "viz")
READERS = tuple(c for c in COMMANDS if c not in ("devices", "diff", "replay"))

# What is typed behind `strop`, exit code, words of the first line of stderr.
MISTAKES = [
    ("", 2, "usage: strop"),
    ("ruun ok.hlo", 2, 'no command "ruun"; did you mean "run"?'),
    ("--what", 2, 'no command "--what"; there are: check'),
    ("run ok.hlo", 2, "the program takes 1 arrays, got 0; give --in=FILE.npz or --random-inputs"),
    ("run ok.hlo ok.hlo", 2, 'unexpected argument "ok.hlo": one file is read at a time'),
    ("devices ok.hlo", 2, 'unexpected argument "ok.hlo": no file is read'),
    ("run ok.hlo --random-inpts", 2, "unknown flag --random-inpts; did you mean --random-inputs?"),
    ("run ok.hlo --backnd=cpu", 2, "unknown flag --backnd; did you mean --backend?"),
    ("run ok.hlo --random-inputs --time=3", 2, "--time takes no value, but has =3"),
    ("run ok.hlo --random-inputs=x", 2, "--random-inputs=x is not a whole number"),
    ("run ok.hlo --random-inputs=99999999999999999999999", 2, "is not a whole number"),
    ("run ok.hlo --random-inputs --runs=0", 2, "--runs=0 is not accepted: expected a whole number of at least 1"),
    ("run ok.hlo --random-inputs --runs=99999999999999999999", 2, "--runs=99999999999999999999 is not accepted"),
    ("run ok.hlo --runs", 2, "--runs needs a value"),
    ("run ok.hlo --interpret --max-loop-iterations=-5", 2, "--max-loop-iterations=-5 is not accepted"),
    ("run ok.hlo --max-loop-iterations=5", 2, "add --interpret"),
    ("run ok.hlo --in=folder", 2, "cannot read folder/args.json"),
    ("run ok.hlo --in=random.bin", 2, "not a .npy file"),
    ("run ok.hlo --in=missing.npy", 2, "cannot read missing.npy: No such file"),
    ("run ok.hlo --random-inputs --out=there", 2, "--out takes a folder that is there, an .npz or an .npy file, not there"),
    ("run ok.hlo --random-inputs --out=missing/a.npy", 1, "cannot write missing/a.npy"),
    ("run ok.hlo --random-inputs --backend=cp", 2, 'no backend is called "cp"; did you mean "cpu"?'),
    ("run ok.hlo --random-inputs --platform zz", 2, 'no backend is called "zz"; there are: cpu, null, gpu'),
    ("run ok.hlo --backend", 2, "--backend: a value is missing"),
    ("run ok.hlo --random-inputs --num-threads=-1", 2, "expected a whole number from 0 to 4096"),
    ("run ok.hlo --random-inputs --check", 2, "--check: ok.hlo ran no check"),
    ("run ok.hlo --random-inputs --dump=ok.hlo", 1, "STROP_DUMP must name a folder"),
    ("opt ok.hlo --passes=cs", 2, "there is no pass 'cs'; did you mean 'cse'?"),
    ("opt ok.hlo --passes=cse --passes=dce", 2, "--passes is given twice"),
    ("opt ok.hlo --disable-pass=foo", 2, "there is no pass 'foo'"),
    ("opt ok.hlo --disable-rule=add-zer", 2, "there is no rule 'add-zer'; did you mean 'add-zero'?"),
    ("opt ok.hlo --rule-limit=-4", 2, "expected a whole number of at least 0"),
    ("translate ok.hlo --to=hl", 2, 'no format "hl"'),
    ("translate ok.hlo --to=mlir", 1, "only MLIR is written as MLIR"),
    ("translate ok.hlo --query=nothing", 2, 'nothing to query under "nothing"; there are: name'),
    ("translate ok.hlo --query=backend_config.x", 2, "no instruction of m has backend_config.x"),
    ("translate ok.hlo --function=f", 2, "HLO text, which has one entry"),
    ("translate ok.hlo -o", 2, "-o needs a value"),
    ("translate ok.hlo -o folder", 1, "cannot write folder: Is a directory"),
    ("viz ok.hlo -o x.png", 2, "-o takes an .html, .svg or .dot file, not x.png"),
    ("explain ok.hlo --json --html", 2, "--json and --html are two formats"),
    ("explain ok.hlo --json --memory", 2, "JSON and the page have everything"),
    ("explain ok.hlo --peak=fast", 2, "--peak=fast is not accepted: expected GFLOP/s and GB/s"),
    ("explain ok.hlo --profile=0", 2, "expected a whole number of at least 1"),
    ("explain ok.hlo --backend=zz", 2, 'no backend is called "zz"'),
    ("reduce ok.hlo", 2, "--check=CMD is needed: a command that fails on ok.hlo"),
    ("reduce ok.hlo --check=true", 2, "--check succeeds on ok.hlo, so there is nothing to reduce"),
    ("reduce ok.hlo --check=false --max-checks=0", 2, "expected a whole number of at least 1"),
    ("check cut.hlo", 2, "cut.hlo:"),
    ("diff ok.hlo", 2, "2 files are needed, 1 are named"),
    ("diff ok.hlo ok.hlo ok.hlo", 2, 'unexpected argument "ok.hlo": 2 files are read'),
    ("diff ok.hlo missing.hlo", 2, "cannot read missing.hlo: No such file"),
    ("diff ok.hlo folder", 2, "but only folder is a folder"),
    ("diff folder folder", 2, "no dump in folder: expected what STROP_DUMP or --xla_dump_to=folder writes"),
    ("replay", 2, "no file to read is named"),
    ("replay ok.hlo", 2, "--record=DIR writes the plans, --check=DIR compares them: give one of the two"),
    ("replay ok.hlo --check=missing", 2, "missing is no folder; --record=DIR makes one"),
    ("replay folder --record=plans", 2, "there is no program in folder"),
    ("replay ok.hlo ok.hlo --record=plans", 2, "two programs would be recorded as ok.hlo.plan"),
    ("replay ok.hlo --record=ok.hlo", 2, "ok.hlo is no folder and cannot be made"),
    ("replay ok.hlo --check=folder", 1, "1 of 1 plans differ"),
    ("check ok.hlo missing.hlo", 2, "cannot read missing.hlo"),
    ("check cut.mlirbc", 2, "at byte"),
]
for command in READERS:
    MISTAKES += [
        (command, 2, "no file to read is named; - is standard input"),
        (f"{command} missing.hlo", 2, "cannot read missing.hlo: No such file"),
        (f"{command} folder", 2, "cannot read folder: Is a directory"),
        (f"{command} empty.hlo", 2, "empty.hlo is empty: expected a program"),
        (f"{command} random.bin", 2, "at random.bin"),
        (f"{command} -", 2, "- is empty: expected a program"),
    ]
for command in COMMANDS:
    MISTAKES.append((f"{command} --bogus-flag", 2, "unknown flag --bogus-flag; there are:"))

GOOD = [("--help", "usage: strop"), ("--version", "strop "), ("run ok.hlo --random-inputs --platform cpu", "out0: f32[2]")]
GOOD += [(f"{command} --help", f"usage: strop {command}") for command in COMMANDS]

ENVIRONMENT = [
    ("STROP_NUM_THREADS", "abc", "STROP_NUM_THREADS: 'abc' is not accepted: expected a whole number from 0 to 4096"),
    ("STROP_NUM_DEVICES", "5000", "STROP_NUM_DEVICES: '5000' is not accepted: expected a whole number from 1 to 4096"),
    ("STROP_LOG", "9", "STROP_LOG: '9' is not accepted: expected a whole number from 0 to 3"),
    ("STROP_BACKEND", "zz", 'no backend is called "zz"'),
    ("XLA_FLAGS", "--xla_force_host_platform_device_count=x", "XLA_FLAGS --xla_force_host_platform_device_count: 'x' is not a valid number"),
    ("XLA_FLAGS", "--xla_dmp_to=x", "XLA_FLAGS --xla_dmp_to: XLA has no flag 'xla_dmp_to'; did you mean 'xla_dump_to'?"),
]

failures = []


def run(arguments, **variables):
    return subprocess.run([STROP, *arguments.split()], capture_output=True, text=True, errors="replace", timeout=60,
                          stdin=subprocess.DEVNULL, env={**os.environ, **variables})


def expect(told, result, code, words, stream):
    first = (stream.splitlines() or [""])[0]
    if result.returncode != code or words not in first:
        failures.append(told)
        print(f"FAIL {told}: exit {result.returncode} instead of {code}, told: {first!r}, expected: {words!r}")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.mkdir("folder")
    Path("ok.hlo").write_text(PROGRAM)
    Path("cut.hlo").write_text(PROGRAM[:-20])
    Path("empty.hlo").touch()
    Path("random.bin").write_bytes(bytes((i * i * 131 + 7 * i) % 251 for i in range(1 << 16)))
    Path("cut.mlirbc").write_bytes(b"ML\xefR\x0d")
    for arguments, code, words in MISTAKES:
        result = run(arguments)
        expect(f"strop {arguments}", result, code, words, result.stderr)
    for arguments, words in GOOD:
        result = run(arguments)
        expect(f"strop {arguments}", result, 0, words, result.stdout)
    for name, value, words in ENVIRONMENT:
        result = run("run ok.hlo --random-inputs", **{name: value})
        expect(f"{name}={value}", result, 2, words, result.stderr)
    os.chdir("/")

print(f"{len(MISTAKES) + len(GOOD) + len(ENVIRONMENT)} command lines, {len(failures)} wrong")
sys.exit(bool(failures))
