"""Samples of images, first layers, and choices among bytes, of the wide set; see README.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.ndimage import map_coordinates

from sxs.registry import Registrar

case = Registrar("held_out")

# samples of images -----------------------------------------------------------------------


def bilinear(image, y, x):
    height, width = image.shape[0], image.shape[1]
    y0 = jnp.clip(jnp.floor(y).astype(jnp.int32), 0, height - 2)
    x0 = jnp.clip(jnp.floor(x).astype(jnp.int32), 0, width - 2)
    fy, fx = (y - y0)[..., None], (x - x0)[..., None]
    above = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
    below = image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx
    return above * (1 - fy) + below * fy


@case("indexing", lambda g: (g.normal(64, 64, 3), g.uniform(200, 200) * 63, g.uniform(200, 200) * 63))
def bilinear_rgb(image, y, x):
    return bilinear(image, y, x)


@case("indexing", lambda g: (g.normal(8, 60, 70, 5), g.uniform(8, 50, 50) * 59, g.uniform(8, 50, 50) * 59))
def bilinear_5_channels_batched(image, y, x):
    return jax.vmap(bilinear)(image, y, x)


@case("indexing", lambda g: (g.normal(90, 90, 4), g.uniform(120, 120) * 89, g.uniform(120, 120) * 89))
def map_coordinates_rgba(image, y, x):
    return jax.vmap(lambda c: map_coordinates(c, [y, x], 1), -1, -1)(image)


# first layers ----------------------------------------------------------------------------


def conv(x, w, stride=1, padding="SAME", **more):
    spatial = "DHW"[4 - x.ndim + 1 :]
    names = ("N" + spatial + "C", spatial + "IO", "N" + spatial + "C")
    return lax.conv_general_dilated(
        x, w, (stride,) * len(spatial), padding, dimension_numbers=names, **more
    )


@case("conv", lambda g: (g.normal(24, 32, 32, 3), g.normal(3, 3, 3, 32)))
def first_layer_cifar(x, w):
    return conv(x, w)


@case("conv", lambda g: (g.normal(40, 28, 28, 1), g.normal(3, 3, 1, 48), g.normal(48)))
def first_layer_digits_bias_relu(x, w, b):
    return jax.nn.relu(conv(x, w) + b)


@case("conv", lambda g: (g.normal(6, 84, 84, 4), g.normal(8, 8, 4, 32)))
def first_layer_atari(x, w):
    return conv(x, w, 4, "VALID")


@case("conv", lambda g: (g.normal(3, 8000, 1), g.normal(10, 1, 64)))
def first_layer_of_waves(x, w):
    return conv(x, w, 5, "VALID")


@case("conv", lambda g: (g.normal(1, 12, 40, 40, 2), g.normal(3, 3, 3, 2, 32)))
def first_layer_of_volumes(x, w):
    return conv(x, w)


@case("conv", lambda g: (g.normal(12, 13, 13, 24), g.normal(3, 3, 24, 40)))
def conv_24_into_40(x, w):
    return conv(x, w)


@case("conv", lambda g: (g.normal(4, 64, 64, 3, dtype="bf16"), g.normal(5, 5, 3, 32, dtype="bf16")))
def first_layer_bf16(x, w):
    return conv(x, w, 2)


# bytes -----------------------------------------------------------------------------------


@case("reduction", lambda g: (g.ints(0, 255, 40000, 12).astype("uint8"),))
def argmax_of_12_bytes(x):
    return x.argmax(1)


@case("reduction", lambda g: (g.ints(-100, 100, 15000, 33).astype("int8"),))
def argmin_of_33_bytes(x):
    return x.argmin(1)


@case("reduction", lambda g: (g.ints(0, 255, 30000, 13).astype("uint8"),))
def max_of_13_bytes(x):
    return x.max(1)


@case("reduction", lambda g: (g.normal(30000, 11),))
def any_of_11(x):
    return (x > 2).any(1)
