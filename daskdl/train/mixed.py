"""Mixed clusters: a warning where workers compute other bits than others."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any

import cloudpickle

from daskdl.cluster.client import Cluster
from daskdl.kernels.runtime.bits import bits

logger = logging.getLogger(__name__)

#: Seconds that workers have to answer, of which most are needed to import what computes.
ANSWER = 10.0


def warn_if_mixed(cluster: Cluster, what: str) -> None:
    """Log one sentence if the workers' results are not the same bits.

    Those that do not answer in time are passed over: it is a warning.
    """
    message = {"op": "run", "function": cloudpickle.dumps(bits), "args": cloudpickle.dumps(())}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for address, answer in sorted(cluster.tell(message, ANSWER).items()):
        if isinstance(answer, dict) and answer.get("status") == "OK":
            found[str(answer["result"])].append(address)
    if len(found) > 1:
        logger.warning(
            "%s: expected workers of one kind, found %s; which of them has a shard decides the "
            "last bits: install the same packages on all, and MKL nowhere unless their processors "
            "are the same",
            what, "; ".join(f"{sentence} ({_some(them)})" for sentence, them in found.items()),
        )  # fmt: skip


def _some(addresses: list[Any]) -> str:
    more = f" and {len(addresses) - 2} more" if len(addresses) > 2 else ""
    return f"{', '.join(addresses[:2])}{more}"
