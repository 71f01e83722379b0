"""Training and generating with PyTorch/XLA on Strop, on its own CPU client and with plain PyTorch: losses and seconds of a step.

    python bench/torch_training.py [REGEX] [--platforms=torch,cpu,strop] [--rounds=5] [--seconds=2]

The platform f64 is plain PyTorch with the same weights and batches in float64: as the first of --platforms it tells how far each of the others is from
what is exact (--platforms=f64,torch,cpu,strop --rounds=1 --seconds=0).

Each platform is a process of its own with the same weights and the same batches. They first do the same 20 steps, whose losses are compared, and
then take turns, so that a machine that slows down slows all; the figure is the least of the rounds' means. A step reads its loss. The table is
markdown, for docs/status.md. Needs torch, torch_xla and torchvision, and transformers for the last two. Exit code 1 if a loss differs.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS, CLOSE = 20, 1e-4


def lenet(torch):
    from torch import nn
    model = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    return classifier(torch, model, torch.randn(STEPS, 64, 1, 28, 28), 10, 0.05)


def mnist(torch):
    """The network of PyTorch/XLA's test_train_mp_mnist.py, with its batch and its optimiser"""
    from torch import nn
    model = nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.BatchNorm2d(10), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
                          nn.BatchNorm2d(20), nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))
    return classifier(torch, model, torch.randn(STEPS, 128, 1, 28, 28), 10, 0.01)


def resnet18(torch):
    import torchvision
    return classifier(torch, torchvision.models.resnet18(), torch.randn(STEPS, 4, 3, 224, 224), 1000, 0.0001)


def classifier(torch, model, images, classes, rate):
    """(model, its optimiser, batches, loss of a batch)"""
    labels = torch.randint(0, classes, images.shape[:2])
    return model, lambda p: torch.optim.SGD(p, rate, 0.5), list(zip(images, labels)), lambda x, y: torch.nn.functional.cross_entropy(model(x), y)


def bert(torch):
    """A small BERT that learns to classify sentences"""
    import transformers
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=4000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, hidden_dropout_prob=0,
        attention_probs_dropout_prob=0, num_labels=2))
    batches = list(zip(torch.randint(0, 4000, (STEPS, 8, 128)), torch.randint(0, 2, (STEPS, 8))))
    return model, lambda p: torch.optim.AdamW(p, 1e-4), batches, lambda ids, labels: model(input_ids=ids, labels=labels).loss


class Generator:
    """GPT-2 that writes one token after the other, each attending to the kept keys and values of those before; what it hands out is the token"""
    LENGTH = 128

    def __init__(self, torch, device, dtype):
        import transformers
        from transformers.cache_utils import StaticCache
        config = transformers.GPT2Config(vocab_size=8000, n_embd=384, n_layer=6, n_head=6, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
        self.torch, self.model = torch, transformers.GPT2LMHeadModel(config).eval().to(device, dtype)
        self.cache = StaticCache(config=config, max_cache_len=self.LENGTH)
        self.token, self.position = torch.tensor([[11]], device=device), torch.tensor([0], device=device)

    def step(self):
        with self.torch.no_grad():
            logits = self.model(input_ids=self.token, past_key_values=self.cache, cache_position=self.position, position_ids=self.position[None]).logits
            self.token.copy_(logits[:, -1].argmax(-1, keepdim=True))
            self.position.add_(1).remainder_(self.LENGTH)
            return logits[0, -1].max()


class Trainer:
    def __init__(self, torch, device, dtype, make):
        self.model, optimizer, batches, self.loss = make(torch)
        self.optimizer = optimizer(self.model.to(device, dtype).parameters())  # of the parameters where they are now
        self.batches = [[t.to(device, dtype if t.is_floating_point() else None) for t in batch] for batch in batches]
        self.count = 0

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss(*self.batches[self.count % STEPS])
        loss.backward()
        self.optimizer.step()
        self.count += 1
        return loss


MODELS = {"LeNet-5, batch of 64": lenet, "MNIST script's network, batch of 128": mnist, "resnet18, 4 images of 224x224": resnet18,
          "BERT of 4 layers, 256 wide, 8x128 tokens, AdamW": bert, "GPT-2 of 6 layers, 384 wide, a token": None}


def worker(platform, name):
    """Answers each line of its input: `first` the losses of the first steps, a number the seconds of a step over about that long"""
    import torch
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    device, sync = torch.device("cpu"), lambda: None
    if platform in ("cpu", "strop"):
        import torch_xla
        device, sync = torch_xla.device(), torch_xla.sync
    torch.manual_seed(0)
    make = MODELS[name]
    dtype = torch.float64 if platform == "f64" else torch.float32
    work = Trainer(torch, device, dtype, make) if make else Generator(torch, device, dtype)

    def step():
        value = work.step()
        sync()
        return value.item()

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    for line in sys.stdin:
        begin = time.perf_counter()
        if line.strip() == "first":
            answer = [step() for _ in range(STEPS)]
        else:
            count = 0
            while time.perf_counter() - begin < float(line) or count < 3:
                step()
                count += 1
            answer = (time.perf_counter() - begin) / count
        print(json.dumps(answer), file=answers, flush=True)


class Process:
    def __init__(self, platform, name, site):
        device = {"f64": {}, "torch": {}, "cpu": {"PJRT_DEVICE": "CPU"}, "strop": {"PJRT_DEVICE": "STROP"}}[platform]
        path = os.pathsep.join(p for p in (str(ROOT / "python"), site, os.environ.get("PYTHONPATH", "")) if p)
        self.process = subprocess.Popen([sys.executable, __file__, "--worker", platform, name], env=dict(os.environ, PYTHONPATH=path, **device),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, question):
        print(question, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"a process ended with {self.process.wait()}")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(name, arguments, site):
    """Prints the row of a model; returns whether the losses are those of the first platform"""
    processes = {p: Process(p, name, site) for p in arguments.platforms.split(",")}
    losses = {p: process.ask("first") for p, process in processes.items()}
    seconds = {p: [] for p in processes}
    for _ in range(arguments.rounds):
        for p, process in processes.items():
            seconds[p].append(process.ask(arguments.seconds))
    for process in processes.values():
        process.end()
    least = {p: min(s) for p, s in seconds.items()}
    platforms = list(processes)
    apart = {p: max(abs(a - b) for a, b in zip(losses[p], losses[platforms[0]])) for p in platforms}
    cells = [f"{least[p] * 1e3:.2f}" for p in platforms] + [f"{least[p] / least[platforms[-1]]:.2f}" for p in platforms[:-1]]
    print(f"| {name} | {' | '.join(cells)} | {losses[platforms[-1]][0]:.4f}, {losses[platforms[-1]][-1]:.4f} | "
          f"{' | '.join(f'{apart[p]:.1e}' for p in platforms[1:])} |", flush=True)
    return apart[platforms[-1]] <= CLOSE


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="?", default="")
    parser.add_argument("--platforms", default="torch,cpu,strop")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    platforms = arguments.platforms.split(",")
    last = platforms[-1]
    titles = ["model", *(f"{p} ms" for p in platforms), *(f"{p} / {last}" for p in platforms[:-1]), f"first and last loss on {last}",
              *(f"{p}'s furthest from {platforms[0]}'s" for p in platforms[1:])]
    print("|", " | ".join(titles), "|")
    print("|" + "---|" * len(titles))
    same = True
    sys.path.insert(0, str(ROOT / "tests" / "frameworks"))
    import interpreter  # shows the package to torch_xla as if it were installed
    with tempfile.TemporaryDirectory() as site:
        interpreter.installed(site)
        for name in MODELS:
            if re.search(arguments.models, name):
                same = measure(name, arguments, site) and same
    return 0 if same else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:])
    else:
        sys.exit(main())
