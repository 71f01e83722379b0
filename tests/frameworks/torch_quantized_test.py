"""Quantised models (QU-01, QU-02, QU-06, E15): PT2E's flow on a small convolutional network, per tensor and per channel, with int8 weights folded or not.

Numbers quantised on Strop are those of PyTorch, at ties too. Each model runs on Strop, and exported as StableHLO by `strop run` as well where torch_xla
exports it (with folded weights it fails). A whole model is no closer to PyTorch's than PyTorch's is to itself when another library adds up its
convolutions: a rounding that changes one quantised number changes others behind it.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import interpreter

interpreter.require_torch()

CLOSE = 0.025  # of the norm, what E15 asks for

# Scales of at most six digits: torch_xla writes no more of them.
TIES = """
import torch, torch_xla
quantize = torch.ops.quantized_decomposed.quantize_per_tensor
for scale in (0.1, 0.3, 0.00391965, 1.7):
    x = ((torch.arange(-120, 120) + 0.5) * scale).float()
    numbers = torch.cat([x, x.nextafter(x - 1), x.nextafter(x + 1)])
    assert torch.equal(quantize(numbers.to(torch_xla.device()), scale, 3, -128, 127, torch.int8).cpu(), quantize(numbers, scale, 3, -128, 127, torch.int8))
"""

# QU-06: a quantizer of the user's own, which annotates linear layers only
OWN = """
import warnings
warnings.filterwarnings("ignore")
import torch, torch_xla
from torch import nn
from torch.ao.quantization.observer import MinMaxObserver
from torch.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e
from torch.ao.quantization.quantizer import QuantizationAnnotation, QuantizationSpec, Quantizer

class LinearOnly(Quantizer):
    spec = QuantizationSpec(torch.int8, MinMaxObserver.with_args(), -128, 127, torch.per_tensor_affine)
    def annotate(self, model):
        for node in model.graph.nodes:
            if node.target == torch.ops.aten.linear.default:
                inputs = {node.args[0]: self.spec, node.args[1]: self.spec}
                node.meta["quantization_annotation"] = QuantizationAnnotation(inputs, self.spec, _annotated=True)
        return model
    def validate(self, model):
        pass

torch.manual_seed(0)
x = torch.randn(8, 1, 8, 8)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10)).eval()
prepared = prepare_pt2e(torch.export.export_for_training(model, (x,)).module(), LinearOnly())
prepared(x)
quantised = convert_pt2e(prepared)
for node in quantised.graph.nodes:
    if "linear" in str(node.target) or "conv2d" in str(node.target):
        assert all(("dequantize" in str(a.target)) == ("linear" in str(node.target)) for a in node.args[:2]), node
wanted = quantised(x)
ours = quantised.to(torch_xla.device())(x.to(torch_xla.device())).cpu()
assert (ours - wanted).norm() < 1e-5 * wanted.norm()
"""

PROGRAM = """
import warnings
warnings.filterwarnings("ignore")
import numpy as np
import torch, torch_xla
from torch import nn
from torch.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e
from torch.ao.quantization.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
from torch_xla.stablehlo import exported_program_to_stablehlo

for per_channel in (False, True):
    for fold in (False, True):
        torch.manual_seed(0)
        x = (torch.randn(4, 3, 16, 16),)
        model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.Flatten(),
                              nn.Linear(288, 40)).eval()
        plain = model(*x)
        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=per_channel))
        prepared = prepare_pt2e(torch.export.export_for_training(model, x).module(), quantizer)
        prepared(*x)
        quantised = convert_pt2e(prepared, fold_quantize=fold)
        wanted = quantised(*x)
        name = f"FOLDER/{'channel' if per_channel else 'tensor'}_{'folded' if fold else 'unfolded'}"
        if not fold:
            text = exported_program_to_stablehlo(torch.export.export(quantised, x)).get_stablehlo_text()
            assert "!quant.uniform<i8:f32" in text, text
            open(name + ".mlir", "w").write(text)
        with torch.no_grad():
            ours = quantised.to(torch_xla.device())(x[0].to(torch_xla.device())).cpu()
        np.savez(name + ".npz", ours=ours, wanted=wanted.detach(), plain=plain.detach())
"""


def main():
    checks = interpreter.Checks()
    code, output = interpreter.run(TIES, PJRT_DEVICE="STROP")
    checks("numbers at ties are quantised as PyTorch does", code == 0, output)
    code, output = interpreter.run(OWN, PJRT_DEVICE="STROP")
    checks("a quantizer of one's own quantises linear layers only (QU-06)", code == 0, output)
    with tempfile.TemporaryDirectory() as folder:
        code, output = interpreter.run(PROGRAM.replace("FOLDER", folder), PJRT_DEVICE="STROP")
        checks("four quantised models run on Strop", code == 0, output)
        import numpy as np
        for file in sorted(Path(folder).glob("*.npz")):
            values = np.load(file)
            same, error = (np.linalg.norm(values["ours"] - values[k]) / np.linalg.norm(values[k]) for k in ("wanted", "plain"))
            checks(f"{file.stem}: {same:.4f} from plain PyTorch's quantised, {error:.4f} from f32", same < CLOSE and error < CLOSE)
        strop = Path(os.environ.get("STROP_BUILD_DIR", interpreter.SOURCE / "build" / "dev")) / "bin" / "strop"
        for file in sorted(Path(folder).glob("*.mlir")) if strop.is_file() else []:
            count = len(re.findall(r"stablehlo\.uniform_(?:de)?quantize", file.read_text()))
            ran = subprocess.run([strop, "run", file, "--random-inputs", "--compare"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            checks(f"strop run of {file.name}, {count} times quantised or back", ran.returncode == 0, ran.stdout[-2000:])
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
