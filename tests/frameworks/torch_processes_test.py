"""PyTorch/XLA in two processes that torchrun started: gradients averaged over both, and FSDP, beside plain PyTorch on the whole batch."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import interpreter

PROGRAM = r"""
import json
import os
import sys
import time
import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend  # noqa: F401
import torch_xla.runtime as xr
from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel

STEPS, BATCH, RATE = 5, 32, 0.1
dist.init_process_group("xla", init_method="xla://")
device = torch_xla.device()
rank, size = xr.global_ordinal(), xr.world_size()
random = torch.Generator().manual_seed(5)
data = torch.randn(STEPS, BATCH, 8, generator=random)


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 256), torch.nn.Tanh(), torch.nn.Linear(256, 64))


def train(net, step, part, place=lambda x: x):
    optimizer = torch.optim.SGD(net.parameters(), RATE)
    losses = []
    for batch in data:
        optimizer.zero_grad()
        loss = (net(place(batch[part])) ** 2).mean()
        loss.backward()
        step(optimizer)
        torch_xla.sync()
        losses.append(loss.item())
    return losses


def mean(losses):
    return [value / size for value in xm.mesh_reduce("losses", losses, lambda all: [sum(step) for step in zip(*all)])]


mine = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
plain = train(model(), lambda optimizer: optimizer.step(), slice(None))
averaged = mean(train(model().to(device), xm.optimizer_step, mine, lambda x: x.to(device)))
sharded = XlaFullyShardedDataParallel(model().to(device))
kept = sum(p.numel() for p in sharded.parameters())
fsdp = mean(train(sharded, lambda optimizer: optimizer.step(), mine, lambda x: x.to(device)))
total = sum(p.numel() for p in model().parameters())
with open(f"{sys.argv[1]}/{rank}.json", "w") as file:
    json.dump(dict(rank=rank, size=size, plain=plain, averaged=averaged, fsdp=fsdp, kept=kept, total=total, pid=os.getpid()), file)
xm.rendezvous("end")
# The first process holds the service through which they found each other, and torch_xla's client aborts when that is gone before it.
deadline = time.monotonic() + 30
for other in range(1, size) if rank == 0 else ():
    with open(f"{sys.argv[1]}/{other}.json") as file:
        pid = json.load(file)["pid"]
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.05)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    interpreter.require_torch()
    if not (Path(os.environ["STROP_PLUGIN"]).parent / "libstrop_gloo.so").exists():
        print("skipped: libstrop_gloo.so is not built")
        return 77
    checks = interpreter.Checks()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(PROGRAM)
        code, output = interpreter.run(
            [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}", str(path), folder], PJRT_DEVICE="STROP"
        )
        # Files, because lines that two processes print at once may become one.
        results = [json.loads(file.read_text()) for file in sorted(Path(folder).glob("*.json"))]
    checks("two processes end", code == 0 and len(results) == 2, output)
    for result in results:
        checks(f"process {result['rank']} is one of two", result["size"] == 2, str(result))
        for name in ("averaged", "fsdp"):
            worst = max(abs(a - b) for a, b in zip(result[name], result["plain"]))
            checks(f"{name}: losses are those of plain PyTorch, within {worst:.1e}", worst <= 1e-5, str(result))
        # Each parameter is padded to a multiple of 128 numbers.
        checks(f"{result['kept']} of {result['total']} parameters in one process", result["kept"] <= result["total"] / 2 + 512, str(result))
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
