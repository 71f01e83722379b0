"""LeNet-5 on scikit-learn's handwritten digits, trained with plain JAX on Strop and on XLA:CPU side by side.

The 1,797 images (8x8, shown to the net at 32x32) are real; a fifth is kept for the test. Both platforms start from the same weights and see
the same batches, so their losses must agree while rounding differences have not grown: the first 50 steps are compared.
"""
import sys

import side_by_side

arguments = side_by_side.arguments(__doc__, ("--epochs", dict(type=int, default=20)))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402

BATCH, COMPARED, TOLERANCE, WANTED_ACCURACY = 64, 50, 1e-4, 0.97
MOMENTUM, RATE = 0.9, 0.05


def enlarge(images, axis):
    """8 to 32 pixels along an axis, linearly between the pixels' centres"""
    return np.apply_along_axis(lambda line: np.interp((np.arange(32) - 1.5) / 4, np.arange(8), line), axis, images)


def digits():
    images, labels = load_digits(return_X_y=True)
    images = enlarge(enlarge(images.reshape(-1, 8, 8) / 8.0 - 1.0, 1), 2)[..., None].astype(np.float32)
    return train_test_split(images, labels.astype(np.int32), test_size=0.2, random_state=0, stratify=labels)


def initial_weights():
    random = np.random.RandomState(0)

    def layer(*shape):
        fan_in = np.prod(shape[:-1])
        return {"w": (random.randn(*shape) / np.sqrt(fan_in)).astype(np.float32), "b": np.zeros(shape[-1], np.float32)}

    return {"conv1": layer(5, 5, 1, 6), "conv2": layer(5, 5, 6, 16), "conv3": layer(5, 5, 16, 120), "dense1": layer(120, 84), "dense2": layer(84, 10)}


def convolve(x, p):
    return jax.lax.conv_general_dilated(x, p["w"], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + p["b"]


def halve(x):
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


def logits(weights, x):
    x = halve(jnp.tanh(convolve(x, weights["conv1"])))  # 32 -> 28 -> 14
    x = halve(jnp.tanh(convolve(x, weights["conv2"])))  # 14 -> 10 -> 5
    x = jnp.tanh(convolve(x, weights["conv3"])).reshape(x.shape[0], -1)  # 5 -> 1
    x = jnp.tanh(x @ weights["dense1"]["w"] + weights["dense1"]["b"])
    return x @ weights["dense2"]["w"] + weights["dense2"]["b"]


def loss(weights, x, y):
    log_p = jax.nn.log_softmax(logits(weights, x))
    return -jnp.mean(jnp.take_along_axis(log_p, y[:, None], axis=1))


def train_step(weights, velocity, x, y):
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradient)
    return jax.tree.map(jnp.add, weights, velocity), velocity, value


def accuracy(weights, x, y):
    return jnp.mean(jnp.argmax(logits(weights, x), axis=1) == y)


def shifted(images, random):
    """Each image moved by up to three pixels, so that the net learns shapes and not places"""
    padded = np.pad(images, ((0, 0), (3, 3), (3, 3), (0, 0)), constant_values=-1)
    corners = random.randint(0, 7, (len(images), 2))
    return np.stack([image[i : i + 32, j : j + 32] for image, (i, j) in zip(padded, corners)])


def train(platform, data, epochs):
    """(the training step's Run, all losses, test accuracy)"""
    x_train, x_test, y_train, y_test = data
    weights = initial_weights()
    velocity = jax.tree.map(np.zeros_like, weights)
    step = side_by_side.Run(platform, train_step, weights, velocity, x_train[:BATCH], y_train[:BATCH])
    weights, velocity = step.put((weights, velocity))
    order, losses = np.random.RandomState(1), []
    for epoch in range(epochs):
        rows = order.permutation(len(x_train))
        for begin in range(0, len(rows) - BATCH + 1, BATCH):
            batch = rows[begin : begin + BATCH]
            weights, velocity, value = step(weights, velocity, *step.put((shifted(x_train[batch], order), y_train[batch])))
            losses.append(float(value))
        print(f"  {step.name:8} epoch {epoch + 1:2} of {epochs}: mean loss {np.mean(losses[-(len(rows) // BATCH):]):.4f}", flush=True)
    test = side_by_side.Run(platform, accuracy, weights, x_test, y_test)
    return step, losses, float(test(weights, *test.put((x_test, y_test))))


def main():
    data = digits()
    print(f"LeNet-5, {len(data[0])} images to train on, {len(data[1])} to test", flush=True)
    checks, runs, losses, accuracies = side_by_side.Checks(), [], {}, {}
    for platform in arguments.platforms:
        step, losses[platform], accuracies[platform] = train(platform, data, arguments.epochs)
        runs.append(step)
    checks.runs(runs)
    for run in runs:
        value = accuracies[run.platform]
        checks(f"{run.name}: test accuracy {value:.2%}, at least {WANTED_ACCURACY:.0%} is wanted", value >= WANTED_ACCURACY)
    checks.same(f"losses of the first {COMPARED} steps", {p: values[:COMPARED] for p, values in losses.items()}, TOLERANCE)
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
