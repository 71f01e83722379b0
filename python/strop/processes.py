"""What a client is told about the processes that work together, where jax.distributed.initialize() has been called."""

import os
import socket


def address_towards(coordinator: str) -> str:
    """This machine's address on the way to the coordinator ("host:port"); empty if there is none.

    A datagram socket that is connected sends nothing: the system only chooses the address.
    """
    host, _, port = coordinator.rpartition(":")
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)
            return probe.getsockname()[0]
    except (OSError, ValueError):
        return ""


def create_options() -> dict:
    """Nothing where the user has chosen, or where there is one process."""
    from jax._src import distributed

    coordinator = getattr(distributed.global_state, "coordinator_address", None)
    if distributed.global_state.client is None or not coordinator or os.environ.get("STROP_COLLECTIVES_ADDRESS"):
        return {}
    address = address_towards(coordinator)
    return {"collectives_address": address} if address else {}
