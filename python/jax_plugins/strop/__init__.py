"""Found by JAX, which imports every module of the namespace package jax_plugins and calls its initialize()."""

from strop.jax_plugin import initialize

__all__ = ["initialize"]
