"""How TensorFlow finds Strop, what it compiles with it, what it never does to a variable, and how it goes on where Strop refuses."""
import os
import sys
import tempfile
from pathlib import Path

import interpreter

interpreter.require_tensorflow()

OPENING = "import os\nimport numpy as np, tensorflow as tf\n"
DONE = "\nprint('done', flush=True)"

FUNCTION = OPENING + """
@tf.function(jit_compile=True)
def f(x, w):
    return tf.nn.relu(x @ w) + 1
x, w = np.random.randn(4, 5).astype('f'), np.random.randn(5, 3).astype('f')
np.testing.assert_allclose(f(x, w), np.maximum(x @ w, 0) + 1, rtol=1e-5)
assert [d.device_type for d in tf.config.list_physical_devices()] == ['CPU']
""" + DONE

# What somebody holds of a variable stays as it was, whatever becomes of the variable.
VARIABLES = OPENING + """
v, w = tf.Variable(tf.ones([1000, 100])), tf.Variable(tf.ones([100]))
@tf.function(jit_compile=True)
def step(x):
    v.assign_add(x)
    w.assign(tf.reduce_sum(v, 0))
    return v * 2
held = []
for i in range(5):
    held.append((v.read_value(), v.value(), w.value()))
    out = step(tf.ones([1000, 100]))
    assert (out.numpy() == 2 * (i + 2)).all()
for i, (a, b, c) in enumerate(held):
    assert (a.numpy() == i + 1).all() and (b.numpy() == i + 1).all(), i
    assert (c.numpy() == (1 if i == 0 else 1000 * (i + 1))).all(), i
x = tf.ones([1000, 100])
same = tf.function(lambda a: (a, a + 1, a), jit_compile=True)(x)
assert all((t.numpy() == e).all() for t, e in zip(same, (1, 2, 1)))
""" + DONE

KERAS = OPENING + """
import keras
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation='relu'), keras.layers.Flatten(), keras.layers.Dropout(0.2),
                          keras.layers.Dense(10)])
model.compile(optimizer='adam', loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True, metrics=['accuracy'])
x, y = np.random.default_rng(0).standard_normal((64, 8, 8, 1)).astype('f'), np.arange(64) % 10
print('losses', *model.fit(x, y, batch_size=16, epochs=5, shuffle=False, verbose=0).history['loss'])
assert model.predict(x, verbose=0).shape == (64, 10)
""" + DONE

CLUSTERS = OPENING + """
@tf.function
def f(x, w):
    y = tf.nn.bias_add(tf.nn.relu(tf.nn.conv2d(x, w, 1, 'VALID')), tf.ones([6]))
    return tf.reduce_mean(tf.nn.softmax(y))
x, w = tf.random.normal([16, 28, 28, 1]), tf.random.normal([5, 5, 1, 6])
for _ in range(2):
    assert abs(f(x, w).numpy() - 0.16666667) < 1e-7
""" + DONE

# A size that is computed outside of the cluster that reads it: the addition leaves its cluster, and its result is the cluster's argument (TF-07).
DECLUSTERED = OPENING + """
@tf.function
def f(x, a, b):
    return tf.reduce_sum(tf.reshape(tf.tanh(x) * 2 + 1, a + b), 1)
f(tf.ones([4, 6]), tf.constant([1, 2]), tf.constant([3, 4]))
folder = os.environ['TF_DUMP_GRAPH_PREFIX']
read = lambda start: [open(f'{folder}/{name}').read() for name in os.listdir(folder) if name.startswith(start)]
assert any('name: "cluster_0/add_1"' in text for text in read('mark_for_compilation_annotated')), os.listdir(folder)
assert any('add_1_0_arg' in text and 'name: "add_1"' not in text for text in read('encapsulate_fdef_graph_cluster_0')), os.listdir(folder)
""" + DONE

WITH_JAX = OPENING + """
import jax, jax.numpy as jnp
f = tf.function(lambda x: tf.tanh(x @ x), jit_compile=True)
g = jax.jit(lambda x: jnp.tanh(x @ x))
x = np.random.randn(300, 300).astype('f') * 0.1
for _ in range(3):
    np.testing.assert_allclose(f(x).numpy(), np.asarray(g(x)), atol=1e-5)
assert jax.devices()[0].client.platform_version.find('Strop') >= 0
""" + DONE

# Results whose size follows from values.
SIZES = OPENING + """
x = np.array([[1, -1, 2], [-3, 4, -5], [0, -2, 7], [-1, -1, -1]], 'f')
def f(x):
    rows = tf.boolean_mask(x, tf.reduce_max(x, 1) > 0)
    return (tf.where(x > 0), tf.boolean_mask(x, x > 0) * 2, tf.reduce_sum(tf.boolean_mask(x, x > 0)), tf.unique(tf.cast(tf.reshape(x, [-1]), tf.int32))[0],
            tf.size(tf.where(x > 0)), rows, tf.transpose(rows), tf.matmul(rows, rows, transpose_b=True), tf.where(x > 100))
g = tf.function(f, jit_compile=True)
for sign in (1, -1, 1):
    for got, want in zip(tf.nest.flatten(g(x * sign)), tf.nest.flatten(f(tf.constant(x * sign)))):
        assert got.shape == want.shape and got.dtype == want.dtype, (got, want)
        np.testing.assert_allclose(got, want, rtol=1e-6)
""" + DONE

LOGICAL_DEVICES = OPENING + """
tf.config.set_logical_device_configuration(tf.config.list_physical_devices('CPU')[0], [tf.config.LogicalDeviceConfiguration()] * 2)
f = tf.function(lambda x: tf.reduce_sum(x @ x), jit_compile=True)
for device in ('/CPU:0', '/CPU:1'):
    with tf.device(device):
        y = f(tf.ones([3, 3]))
    assert y.numpy() == 27 and y.device.endswith(device[1:]), y
strategy = tf.distribute.MirroredStrategy(['/CPU:0', '/CPU:1'])
with strategy.scope():
    v = tf.Variable(1.)
g = tf.function(lambda a: a * 2 + v, jit_compile=True)
step = tf.function(lambda: strategy.reduce('SUM', strategy.run(lambda: g(tf.constant(3.))), axis=None))
assert step().numpy() == 14
""" + DONE

THREADS = OPENING + """
import threading
f = tf.function(lambda x: tf.reduce_sum(tf.tanh(x @ x)), jit_compile=True)
x = tf.constant(np.random.randn(200, 200).astype('f') * 0.1)
want, wrong = f(x).numpy(), []
def work():
    for _ in range(20):
        if f(x).numpy() != want: wrong.append(1)
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert not wrong
""" + DONE

# The flags are as TensorFlow's own tests give them.
AUTO = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=2"


def run(program, **variables):
    """(exit code, output, the programs that Strop was given)"""
    with tempfile.TemporaryDirectory() as folder:
        code, output = interpreter.run(program, **{"STROP_XLA_DUMP_TO": folder, "TF_CPP_MIN_LOG_LEVEL": "2", **variables})
        names = sorted(path.name for path in Path(folder).glob("*before_optimizations.txt"))
    return code, output, names


def main():
    checks = interpreter.Checks()
    library = Path(os.environ["STROP_PLUGIN"]).with_name("libstrop_tensorflow.so")
    on = {"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(library)}

    def compiles(what, program, part, **variables):
        code, output, names = run(program, **{**on, **variables})
        checks(what, code == 0 and "done" in output and any(part in name for name in names), f"exit code {code}, {names}\n{output}")
        return output

    def goes_on(what, program, message, **variables):
        code, output, names = run(program, **{**on, **variables})
        told = message in output if message else "strop:" not in output
        checks(what, code == 0 and "done" in output and told and not names, f"exit code {code}, {names}\n{output}")

    compiles("tf.function(jit_compile=True)", FUNCTION, "inference_f")
    compiles("loaded by the package", FUNCTION.replace("@tf.function", "import strop.tensorflow_plugin as p; p.load(); p.load()\n@tf.function"), "inference_f",
             TF_PLUGGABLE_DEVICE_LIBRARY_PATH=None)
    compiles("variables are not overwritten", VARIABLES, "inference_step")
    compiles("results whose size follows from values", SIZES, "inference_f")
    compiles("two logical devices", LOGICAL_DEVICES, "inference")
    compiles("eight threads", THREADS, "inference")
    compiles("auto-clustering", CLUSTERS, "cluster_0__XlaCompiledKernel_true", TF_XLA_FLAGS=AUTO)
    with tempfile.TemporaryDirectory() as folder:
        compiles("what only the host reads leaves its cluster", DECLUSTERED, "cluster_0__XlaCompiledKernel_true", TF_DUMP_GRAPH_PREFIX=folder,
                 TF_XLA_FLAGS=AUTO + " --tf_xla_clustering_debug", TF_CPP_VMODULE="encapsulate_subgraphs_pass=3", TF_CPP_MIN_LOG_LEVEL="0")
    ours = compiles("Keras fit(jit_compile=True)", KERAS, "one_step_on_data")
    stock = run(KERAS)[1]

    def losses(output):
        return [float(x) for line in output.splitlines() if line.startswith("losses") for x in line.split()[1:]]
    checks("its losses are TensorFlow's", len(losses(stock)) == 5 and all(abs(a - b) <= 1e-4 for a, b in zip(losses(ours), losses(stock))),
           f"{losses(ours)}\n{losses(stock)}\n{stock}")

    goes_on("switched off", FUNCTION, "", STROP_TENSORFLOW="0")
    goes_on("no plugin", FUNCTION, "strop: no Strop plugin (/nowhere/libstrop_pjrt.so", STROP_PLUGIN="/nowhere/libstrop_pjrt.so")
    goes_on("a plugin that is none", FUNCTION, "is no PJRT plugin; TensorFlow runs without Strop", STROP_PLUGIN=str(library))
    goes_on("a wrong option", FUNCTION, "strop: STROP_NUM_THREADS", STROP_NUM_THREADS="many")
    if interpreter.has("jax"):
        compiles("beside JAX in one process", WITH_JAX, "inference", JAX_PLATFORMS="strop")
    else:
        print("left out: beside JAX (not installed here)")
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
