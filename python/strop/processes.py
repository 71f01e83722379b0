"""What a client is told about the processes that work together: those of jax.distributed.initialize(), or of torchrun."""

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


def _reached_at(coordinator: str) -> dict:
    """Nothing where the user has chosen."""
    address = "" if os.environ.get("STROP_COLLECTIVES_ADDRESS") else address_towards(coordinator)
    return {"collectives_address": address} if address else {}


def jax_options() -> dict:
    """Nothing where there is one process; JAX itself says which of several this is."""
    from jax._src import distributed

    coordinator = getattr(distributed.global_state, "coordinator_address", None)
    return _reached_at(coordinator) if distributed.global_state.client is not None and coordinator else {}


def torchrun_place() -> tuple[int, int]:
    """The number of this process among all, and how many there are."""
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def torchrun_options() -> dict:
    """Nothing where there is one process."""
    rank, size = torchrun_place()
    if size <= 1:
        return {}
    return {"node_id": rank, "num_nodes": size} | _reached_at(f"{os.environ.get('MASTER_ADDR', 'localhost')}:{os.environ.get('MASTER_PORT', 1)}")
