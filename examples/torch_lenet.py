"""LeNet-5 through PyTorch/XLA and in plain PyTorch side by side: the same weights, the same batches, the same losses and gradients.

    PJRT_DEVICE=STROP python examples/torch_lenet.py

Exits non-zero where a result of the first step is further than 1e-5 from plain PyTorch's, or a loss of the training further than 1e-4.
"""
import copy
import os
import sys
import time

os.environ.setdefault("PJRT_DEVICE", "STROP")  # before torch_xla is imported

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import torch_xla  # noqa: E402
from torch import nn  # noqa: E402

STEPS, BATCH, RATE, MOMENTUM = 20, 64, 0.05, 0.9
EXACT, CLOSE = 1e-5, 1e-4


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.classifier = nn.Sequential(nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))

    def forward(self, x):
        return self.classifier(self.features(x))


def batches():
    """Images of the size of MNIST's whose class is the place of a bright square, so that there is something to learn"""
    labels = torch.randint(0, 10, (STEPS, BATCH))
    images = torch.randn(STEPS, BATCH, 1, 28, 28) * 0.3
    for step in range(STEPS):
        for i in range(BATCH):
            row, column = divmod(int(labels[step, i]), 4)
            images[step, i, 0, 2 + 8 * row : 8 + 8 * row, 7 * column : 6 + 7 * column] += 3
    return images, labels


def train(model, images, labels, device):
    """(outputs and gradients of the first step, all losses, seconds of a step once compiled)"""
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), RATE, MOMENTUM)
    first, losses, begin = [], [], 0.0
    for step in range(STEPS):
        if step == STEPS // 2:
            begin = time.perf_counter()
        optimizer.zero_grad()
        outputs = model(images[step].to(device))
        loss = F.cross_entropy(outputs, labels[step].to(device))
        loss.backward()
        if step == 0:
            first = [t.detach().cpu() for t in (outputs, *(p.grad for p in model.parameters()))]
        optimizer.step()
        if device.type == "xla":
            torch_xla.sync()
        losses.append(loss.item())
    return first, losses, (time.perf_counter() - begin) / (STEPS - STEPS // 2)


def main():
    torch.manual_seed(0)
    model, (images, labels) = LeNet(), batches()
    device = torch_xla.device()
    plain = train(copy.deepcopy(model), images, labels, torch.device("cpu"))
    ours = train(model, images, labels, device)
    for step in (0, STEPS - 1):
        print(f"step {step:2}: loss {ours[1][step]:.6f} on {device}, {plain[1][step]:.6f} in plain PyTorch")
    exact = max(float((a - b).abs().max()) for a, b in zip(ours[0], plain[0]))
    close = max(abs(a - b) for a, b in zip(ours[1], plain[1]))
    print(f"outputs and gradients of the first step: at most {exact:.1e} apart; losses of {STEPS} steps: {close:.1e}")
    print(f"a step: {ours[2] * 1e3:.2f} ms, plain PyTorch {plain[2] * 1e3:.2f} ms")
    learned = ours[1][-1] < 0.8 * ours[1][0]
    failed = [what for what, wrong in (("the first step differs", exact > EXACT), ("losses differ", close > CLOSE), ("nothing was learned", not learned)) if wrong]
    for what in failed:
        print("FAILED:", what)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
