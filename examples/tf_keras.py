"""Keras' fit(jit_compile=True) on Strop and on TensorFlow's own XLA: the same weights, the same batches, the same losses.

    TF_PLUGGABLE_DEVICE_LIBRARY_PATH=$(python -c "import strop.tensorflow_plugin as p; print(p.library_path())") python examples/tf_keras.py [MODEL...]

Each training has a process of its own, by turns, since a process has one compiler (STROP_TENSORFLOW=0 is TensorFlow's). Prints a table, and exits
non-zero where losses are further apart than 1e-4, or where they do not fall.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

CLOSE = 1e-4
# name: (steps, batch, size of an image, learning rate). MobileNetV2 with random weights has steep gradients behind its 52 batch normalisations: at rates
# from 1e-5 on, TensorFlow with XLA and without it are more than 1e-3 apart after a few steps. A small rate compares the steps and not that growth.
MODELS = {"mlp": (20, 128, 28, 1e-4), "cnn": (20, 64, 28, 1e-2), "mobilenet": (12, 16, 96, 1e-6)}


def make(keras, name, size):
    layers = keras.layers
    if name == "mlp":
        hidden = [layers.Flatten(), layers.Dense(512, activation="relu"), layers.Dense(256, activation="relu")]
        return keras.Sequential([keras.Input((size, size, 1)), *hidden, layers.Dense(10)])
    if name == "cnn":
        body = [layers.Conv2D(32, 3, activation="relu"), layers.MaxPool2D(), layers.Conv2D(64, 3, activation="relu"), layers.MaxPool2D(), layers.Flatten()]
        return keras.Sequential([keras.Input((size, size, 1)), *body, layers.Dense(128, activation="relu"), layers.Dense(10)])
    return keras.applications.MobileNetV2((size, size, 3), weights=None, classes=10, classifier_activation=None)


def train(name, jit):
    """Trains in this process and prints a line of JSON."""
    import keras
    import numpy as np

    steps, batch, size, rate = MODELS[name]
    losses, seconds = [], []

    class Record(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            self.begin = time.perf_counter()

        def on_train_batch_end(self, batch, logs=None):
            losses.append(float(logs["loss"]))  # the mean so far
            seconds.append(time.perf_counter() - self.begin)

    keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    y = generator.integers(0, 10, batch)
    x = generator.standard_normal((batch, size, size, 3 if name == "mobilenet" else 1)).astype("float32") + y[:, None, None, None] * 0.3
    x, y = (np.concatenate([part] * steps) for part in (x, y))
    model = make(keras, name, size)
    optimizer = keras.optimizers.Adam(rate) if name == "mlp" else keras.optimizers.SGD(rate, momentum=0.9)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], jit_compile=jit)
    model.fit(x, y, batch_size=batch, shuffle=False, verbose=0, callbacks=[Record()])
    print(json.dumps({"losses": losses, "first": seconds[0], "step": statistics.median(seconds[2:])}))


def spawn(name, strop, jit=True):
    environment = dict(os.environ, STROP_TENSORFLOW="1" if strop else "0", TF_CPP_MIN_LOG_LEVEL="2")
    command = [sys.executable, __file__, "--train", name] + ([] if jit else ["--no-jit"])
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{name} failed ({result.returncode}):\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}; all without")
    parser.add_argument("--rounds", type=int, default=1, help="trainings of each, by turns; the shortest times count")
    parser.add_argument("--plain", action="store_true", help="TensorFlow without XLA as well")
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-jit", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.models if name not in MODELS]
    if unknown:
        parser.error(f"no model {unknown[0]}; there are {', '.join(MODELS)}")
    if arguments.train:
        return train(arguments.models[0], not arguments.no_jit)
    failed = []
    print(f"{'':10} {'first step, s':>22} {'a step, ms':>22} {'faster':>8}   losses apart")
    for name in arguments.models or MODELS:
        runs = [(spawn(name, True), spawn(name, False)) for _ in range(arguments.rounds)]
        first, step = ([min(run[side][key] for run in runs) for side in (0, 1)] for key in ("first", "step"))
        apart = max(abs(a - b) for ours, theirs in runs for a, b in zip(ours["losses"], theirs["losses"]))
        print(f"{name:10} {first[0]:10.2f} {first[1]:11.2f} {step[0] * 1e3:10.2f} {step[1] * 1e3:11.2f} {step[1] / step[0]:8.2f}   {apart:.1e}", flush=True)
        losses = runs[0][0]["losses"]
        if arguments.plain:
            plain = spawn(name, False, jit=False)
            apart_plain = [max(abs(a - b) for a, b in zip(plain["losses"], run["losses"])) for run in runs[0]]
            print(f"{'':10} TensorFlow without XLA: a step {plain['step'] * 1e3:.2f} ms, losses {apart_plain[0]:.1e} from Strop's, {apart_plain[1]:.1e} from XLA's")
        if apart > CLOSE:
            failed.append(f"{name}: losses differ")
        if not losses[-1] < losses[0]:
            failed.append(f"{name}: nothing was learned")
    for what in failed:
        print("FAILED:", what)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
