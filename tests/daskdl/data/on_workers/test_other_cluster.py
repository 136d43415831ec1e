"""Samples that another cluster holds are told as such, not as a lack of memory."""

from __future__ import annotations

import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskdl.data import SampleSet
from daskdl.errors import SettingsError
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train import Trainer


def test_samples_of_another_cluster_are_refused_before_any_task(client: Client) -> None:
    x = np.arange(8, dtype=np.float32)[:, None]
    trainer = Trainer(Linear(1, 1, seed=0), MSELoss(), SGD(0.01))
    with (
        LocalCluster(1, processes=False, dashboard_address=":0", threads_per_worker=1) as other,
        Client(other, set_as_default=False) as holder,
    ):
        held = SampleSet.from_arrays(x=x, y=x, partitions=2).persist(holder)
        for use in (trainer.evaluate, lambda s, client: trainer.fit(s, epochs=1, client=client)):
            with pytest.raises(SettingsError, match=r"at tcp.* on the one at inproc"):
                use(held, client=client)
        with Client(client.scheduler.address, set_as_default=False) as again:
            same = SampleSet.from_arrays(x=x, y=x, partitions=2).persist(again)
            assert trainer.evaluate(same, client=client) == trainer.evaluate(same, client=False)
    with pytest.raises(SettingsError, match=r"a client that was closed.*persist\(\) them again"):
        trainer.evaluate(held, client=client)
