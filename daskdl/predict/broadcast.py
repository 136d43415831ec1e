"""Broadcast: a predictor on all workers of a cluster, sent once and named in graphs by its key."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from daskdl.cluster.client import Cluster
from daskdl.cluster.current import current_client
from daskdl.predict.predictor import Predictor

if TYPE_CHECKING:
    from distributed import Client, Future

#: Futures of predictors that were sent, by client and token, as long as anything needs them.
_sent: WeakValueDictionary[tuple[str, str], Future] = WeakValueDictionary()


def held_by_workers(predictor: Predictor, client: Client | None = None) -> Any:
    """Return a reference to a predictor for graphs: a Future, or a Delayed without a client.

    With a client that is a Future: the weights lie on every worker, and the graph has their key.
    Copies for which no task waits Dask takes back after a while; workers that need them again, or
    come later, fetch them from each other. Predictions of one model share it while one of them
    lives. Without a client it is a Delayed: the graph of a prediction holds the weights once.
    """
    client = current_client() if client is None else client
    if client is None:
        from dask import delayed

        return delayed(predictor, name=f"model-{predictor.token}", traverse=False)
    reference = _sent.get((client.id, predictor.token))
    if reference is None or reference.status != "finished":
        # What was sent before may be on its way out: by the same name, this would go with it.
        name = f"model-{predictor.token}-{uuid.uuid4().hex[:12]}"
        reference = Cluster(client).broadcast(name, predictor, "prediction")
        _sent[client.id, predictor.token] = reference
    return reference
