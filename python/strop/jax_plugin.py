"""Registers Strop with JAX.

The JAX platform is called "strop"; the client itself reports the platform name "cpu", so that JAX's CPU lowerings,
donation, host callbacks, dlpack and compilation cache apply. Three things follow from that:

* Custom-call handlers that are registered for "cpu" (Python callbacks, users' own) are forwarded to Strop. LAPACK's are as well, but Strop has
  its own, which call the same library (strop.lapack) on its own threads.
* Host callbacks look for a backend called "cpu". Where the user asked for Strop alone (JAX_PLATFORMS=strop), Strop is it.
* Where there is a real CPU backend as well, nothing is taken from it.
"""

import functools
import logging

import strop
from strop import c_api, jax_callbacks, lapack, processes

NAME = "strop"
PRIORITY = 450  # above the CPU (0) and most plugins, below CUDA (500)

logger = logging.getLogger(__name__)


def initialize() -> None:
    """Called by JAX once, before the first backend is made."""
    import jax._src.xla_bridge as xb

    path = strop.library_path()
    nonexperimental = getattr(xb, "_nonexperimental_plugins", None)
    if isinstance(nonexperimental, set):
        nonexperimental.add(NAME)
    capsule = xb.register_plugin(
        NAME, priority=PRIORITY, library_path=str(path), factory=functools.partial(_make_client, xb)
    )
    forward_handlers(c_api.Api(c_api.capsule_pointer(capsule)))
    jax_callbacks.install()


def _make_client(xb):
    client = xb.make_pjrt_c_api_client(NAME, lapack.create_options() | processes.jax_options())
    requested = [p.strip() for p in (xb.config.jax_platforms.value or "").split(",") if p.strip()]
    if requested and "cpu" not in requested:
        # Host callbacks place their arguments with local_devices(backend="cpu").
        xb._backends.setdefault("cpu", client)
    return client


def forward_handlers(api: c_api.Api) -> None:
    """Makes the custom calls that JAX registers for the CPU, so far and from now on, known to Strop as well."""
    from jaxlib import xla_client

    def register(name, function, api_version, traits=0):
        if isinstance(name, bytes):
            name = name.decode()
        # A bundle has one function a stage; the extension takes the one that executes.
        if isinstance(function, dict):
            function = function.get("execute")
        if function is None:
            return
        try:
            api.register_handler(name, c_api.capsule_pointer(function), api_version, int(traits))
        except RuntimeError as error:
            logger.warning("custom call target %s: %s", name, error)

    def handler(name, function, platform, api_version=0, traits=0):
        xla_client._xla.register_custom_call_target(name, function, platform, api_version, traits)
        register(name, function, api_version, getattr(traits, "value", traits))

    for name, function in xla_client.custom_call_targets("Host").items():
        register(name, function, 1 if isinstance(function, dict) else 0)
    xla_client.register_custom_call_handler("cpu", handler)
