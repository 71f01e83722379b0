"""Programs that leave TensorFlow as HLO and StableHLO, from functions, Keras models and a SavedModel, give through `strop run` what TensorFlow computes."""
import os
import sys
import tempfile
from pathlib import Path

import interpreter

interpreter.require_tensorflow()

# Writes FOLDER/NAME.STAGE, the arguments (arg0.npy and so on) and the results as TensorFlow computes them (FOLDER/NAME.npz).
PROGRAM = """
import os, sys
import numpy as np, tensorflow as tf, keras
folder = sys.argv[1] if len(sys.argv) > 1 else os.environ["FOLDER"]
keras.utils.set_random_seed(0)
random = np.random.default_rng(0)

def write(name, function, *arguments):
    ir = function.experimental_get_compiler_ir(*arguments)
    for stage in ("hlo", "hlo_serialized", "stablehlo", "stablehlo_serialized"):
        program = ir(stage=stage)
        with open(f"{folder}/{name}.{stage}", "wb") as file:
            file.write(program.encode() if isinstance(program, str) else program)
    concrete = function.get_concrete_function(*arguments)
    captured = [x.numpy() if x.dtype != tf.resource else next(v for v in concrete.variables if v.handle is x).numpy() for x in concrete.captured_inputs]
    os.mkdir(f"{folder}/{name}")
    for number, value in enumerate([*map(np.asarray, arguments), *captured]):
        np.save(f"{folder}/{name}/{number:03}.npy", value)
    results = [np.asarray(x) for x in tf.nest.flatten(function.python_function(*arguments))]
    np.savez(f"{folder}/{name}.npz", *results)

layers = keras.layers
lenet = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(6, 5, activation="relu"), layers.MaxPool2D(), layers.Conv2D(16, 5, activation="relu"),
                          layers.MaxPool2D(), layers.Flatten(), layers.Dense(120, activation="relu"), layers.Dense(84, activation="relu"), layers.Dense(10)])
image = random.standard_normal((16, 28, 28, 1)).astype("f")
write("lenet", tf.function(lambda x: lenet(x), jit_compile=True), image)
write("attention", tf.function(lambda q, k: tf.nn.softmax(tf.einsum("bqd,bkd->bqk", q, k)), jit_compile=True),
      *(random.standard_normal((2, 8, 16)).astype("f") for _ in range(2)))
write("loop", tf.function(lambda x: tf.while_loop(lambda i, a: i < 10, lambda i, a: (i + 1, tf.tanh(a) + 0.1), (0, x))[1], jit_compile=True),
      random.standard_normal(7).astype("f"))
write("branch", tf.function(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sort(x), lambda: tf.cumsum(x)), jit_compile=True), np.arange(5, dtype="f")[::-1].copy())

class Scaled(tf.Module):
    def __init__(self):
        self.weight = tf.Variable(random.standard_normal((5, 3)).astype("f"))
    @tf.function(input_signature=[tf.TensorSpec([4, 5], tf.float32)])
    def __call__(self, x):
        return tf.nn.relu(x @ self.weight)

tf.saved_model.save(Scaled(), f"{folder}/saved")
loaded = tf.saved_model.load(f"{folder}/saved")
write("saved_model", tf.function(lambda x: loaded(x), jit_compile=True), random.standard_normal((4, 5)).astype("f"))
"""

COMPARE = """
import os, numpy as np
folder = os.environ["FOLDER"]
for name in os.environ["NAMES"].split():
    program = name.rsplit(".", 1)[0]
    got, want = np.load(f"{folder}/{name}.out.npz"), np.load(f"{folder}/{program}.npz")
    got, want = [got[k] for k in got.files], [want[k] for k in want.files]
    assert len(got) == len(want), name
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype == w.dtype, (name, g.shape, w.shape)
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5, err_msg=name)
    print("equal", name)
"""


def main():
    checks = interpreter.Checks()
    strop = Path(os.environ["STROP_BUILD_DIR"]) / "bin" / "strop"
    with tempfile.TemporaryDirectory() as folder:
        code, output = interpreter.run(PROGRAM, FOLDER=folder)
        checks("TensorFlow writes the programs", code == 0, output)
        names = []
        for file in sorted(Path(folder).glob("*.*hlo*")):
            arguments = sorted((Path(folder) / file.name.split(".")[0]).glob("*.npy"))
            command = [str(strop), "run", str(file), f"--out={file}.out.npz", *(f"--in={a}" for a in arguments)]
            code, output = interpreter.run(command)
            checks(f"strop run {file.name}", code == 0, output)
            names += [file.name] if code == 0 else []
        code, output = interpreter.run(COMPARE, FOLDER=folder, NAMES=" ".join(names))
        checks("results are TensorFlow's", code == 0 and output.count("equal") == len(names) == 20, output)
        text = (Path(folder) / "lenet.hlo").read_text()
        convolution = [line for line in text.splitlines() if "convolution(" in line and "f32[16,24,24,6]" in line and 'op_type="Conv2D"' in line]
        checks("the convolution of LeNet names its operation (E12)", len(convolution) == 1 and "dim_labels=b01f_01io->b01f" in convolution[0], text[:1000])
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
