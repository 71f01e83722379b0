"""Two processes of two devices each, on loopback, by Gloo and by MPI: arrays and collectives over both, a GPT whose losses are those of one device,
and what the one hears when the other is killed or stands still."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import jax  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

WORKER = str(Path(__file__).parent / "processes" / "worker.py")
LIBRARIES = Path(os.environ["STROP_PLUGIN"]).parent
PATIENCE = 240  # seconds for a whole run, on a machine that does other things as well
TIMEOUT = 15  # option collectives-timeout, where it is to run out


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def values(folder):
    """What the workers reported, merged. Each has a file of its own: mpirun mixes what processes print, within lines too."""
    merged = {}
    for file in sorted(Path(folder).iterdir()):
        for line in file.read_text().splitlines(keepends=True):
            if line.endswith("\n"):  # whole
                merged.update(json.loads(line))
    return merged


class Run:
    """The processes of one scenario; output is one text a command."""

    def __init__(self, transport, scenario, size=2, **options):
        environment = dict(os.environ, JAX_PLATFORMS="strop", STROP_NUM_DEVICES="2", STROP_COLLECTIVES=transport)
        environment |= {f"STROP_{name.upper()}": str(value) for name, value in options.items()}
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.reports = tempfile.TemporaryDirectory()
        environment["REPORTS"] = self.reports.name
        work = [sys.executable, WORKER, scenario, f"127.0.0.1:{free_port()}"]
        if transport == "mpi":
            # Without recovery, mpirun ends everybody when one has died: then there is nobody left to tell.
            commands = [["mpirun", "--oversubscribe", "--enable-recovery", "-n", str(size), *work, "mpi", str(size)]]
        else:
            commands = [[*work, str(rank), str(size)] for rank in range(size)]
        self.files = [tempfile.TemporaryFile("w+") for _ in commands]
        self.processes = [
            subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
            for command, file in zip(commands, self.files)
        ]
        self.end = time.time() + PATIENCE

    def text(self):
        parts = []
        for file in self.files:
            file.seek(0)
            parts.append(file.read())
        return "\n".join(parts)

    def wait_for(self, *keys):
        """Until each key has been reported."""
        while not all(key in values(self.reports.name) for key in keys):
            assert time.time() < self.end, f"no {keys} in {values(self.reports.name)} of\n{self.text()}"
            time.sleep(0.1)
        return values(self.reports.name)

    def wait(self):
        for process in self.processes:
            try:
                process.wait(max(0.1, self.end - time.time()))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"hangs:\n{self.text()}") from None
        return values(self.reports.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        self.reports.cleanup()


def retried(scenario, *arguments, **options):
    """A port that was free may be taken by another test before the coordinator has it."""
    for attempt in range(3):
        with Run(*arguments, **options) as run:
            if scenario(run) or "in use" not in run.text():
                return
    raise AssertionError("no port stays free")


def computes(transport, reference):
    def scenario(run):
        got = run.wait()
        if any(process.returncode for process in run.processes):
            assert "in use" in run.text(), run.text()
            return False
        for mode in ("data", "tensor", "both"):
            worst = max(abs(a - b) for a, b in zip(got[mode], reference, strict=True))
            print(f"{transport}, {mode}: losses differ by {worst:.1e} at most")
            assert worst <= 1e-5, (got[mode], reference)
        return True

    retried(scenario, transport, "everything")


def hears(transport, event, expected, within, **options):
    def scenario(run):
        pid = run.wait_for("about_to", "error", "again")["about_to"]
        if event == "stalled":
            os.kill(pid, signal.SIGKILL)  # which ends a process that stands still, too
        got = run.wait()
        print(f"{transport}, {event}: {got['error'].splitlines()[0]} ({got['seconds']:.1f} s)")
        assert "process 1 (devices 2, 3 of the program)" in got["error"], got
        assert any(text in got["error"] for text in expected), got
        assert got["seconds"] < within, got
        return True

    retried(scenario, transport, event, **options)


def check(transport, reference):
    computes(transport, reference)
    if transport == "mpi":
        # MPI does not say that a process is gone: it is silent.
        hears("mpi", "killed", ("did not come", "lost process 1"), TIMEOUT + 30, collectives_timeout=TIMEOUT)
    else:
        hears("gloo", "killed", ("lost process 1",), 30)
    hears(transport, "stalled", (f"did not come within {TIMEOUT} s",), TIMEOUT + 30, collectives_timeout=TIMEOUT)


def main():
    with Run("none", "alone", size=1, num_devices=1) as run:
        reference = run.wait().get("alone")
        assert reference, run.text()
    assert reference[-1] < reference[0] - 0.5, reference
    checked = 0
    for transport in ("gloo", "mpi"):
        if not (LIBRARIES / f"libstrop_{transport}.so").exists():
            print(f"{transport}: not built (docs/distributed.md says which package it needs)")
        elif transport == "mpi" and not shutil.which("mpirun"):
            print("mpi: there is no mpirun (package openmpi-bin)")
        else:
            check(transport, reference)
            checked += 1
    return 0 if checked else 77


if __name__ == "__main__":
    sys.exit(main())
