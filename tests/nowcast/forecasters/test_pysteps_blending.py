"""pysteps takes our forecasts: as one of its methods, and to blend with weather models."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.forecasters import forecaster
from nowcast.forecasters.pysteps import nowcast_method
from tests.nowcast.stores import moving_rain

pytest.importorskip("pysteps")
pytestmark = pytest.mark.slow  # pysteps' import
LEADS = 6


@pytest.fixture(scope="module")
def frames():
    return moving_rain()["rain_rate"].values[:6]


def test_linear_blending_goes_from_our_forecast_to_the_model(frames, monkeypatch):
    from pysteps.blending.linear_blending import forecast
    from pysteps.nowcasts import get_method, interface

    ours = nowcast_method(forecaster("sprog"), spacing_km=1.0, step_minutes=10.0)
    monkeypatch.setitem(interface._nowcast_methods, "nowcast-sprog", ours)
    assert get_method("nowcast-sprog") is ours
    model = np.full((LEADS, *frames.shape[1:]), 3.0)
    metadata = {"unit": "mm/h", "transform": None, "threshold": 0.1, "zerovalue": 0.0}
    blended = forecast(
        frames, metadata, np.zeros((2, *frames.shape[1:])), LEADS, 10, "nowcast-sprog",
        precip_nwp=model, precip_nwp_metadata=metadata, start_blending=20, end_blending=50,
        fill_nwp=False,
    )  # fmt: skip
    expected = forecaster("sprog").forecast(frames, LEADS, spacing_km=1.0, step_minutes=10.0).rain
    known = np.isfinite(expected[0])
    np.testing.assert_allclose(blended[0][known], expected[0][known], rtol=1e-5)
    np.testing.assert_allclose(blended[-1], 3.0)
    known = np.isfinite(expected[2])
    share = (blended[2][known] - expected[2][known]) / (3 - expected[2][known])
    assert 0 < np.median(share) < 1


def test_steps_blending_takes_our_members(frames, tmp_path):
    """Members in decibels, as pysteps' ensemble blending needs an external nowcast."""
    from pysteps.blending.steps import forecast
    from pysteps.utils import transformation

    def decibel(rain):
        return transformation.dB_transform(
            np.nan_to_num(rain), threshold=0.1, zerovalue=-15.0
        )[0]  # fmt: skip

    ours = nowcast_method(forecaster("steps"), spacing_km=1.0, step_minutes=10.0, members=2, seed=1)
    members = ours(frames, None, LEADS)
    assert members.shape == (2, LEADS, *frames.shape[1:])
    with_now = np.concatenate([np.stack([frames[-1:]] * 2), members], axis=1)
    size = frames.shape[1]
    model = np.broadcast_to(
        np.roll(np.nan_to_num(frames[-1]), 5, axis=0), (1, LEADS + 1, size, size)
    )
    still = np.zeros((2, size, size))
    blended = forecast(
        decibel(frames[-3:]), decibel(model), still, np.zeros((1, LEADS + 1, 2, size, size)),
        LEADS, 10, np.datetime64("2020-06-01T00:50").astype(object), 2,
        precip_nowcast=decibel(with_now), nowcasting_method="external_nowcast",
        n_cascade_levels=4, precip_thr=-10.0, kmperpixel=1.0, noise_method=None,
        vel_pert_method=None, probmatching_method=None, mask_method=None, seed=1,
        outdir_path_skill=f"{tmp_path}/",
    )  # fmt: skip
    assert blended.shape == members.shape
    near = np.corrcoef(blended[0, 0].ravel(), decibel(members)[0, 0].ravel())[0, 1]
    assert near > 0.8  # at first the nowcast dominates
