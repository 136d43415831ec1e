"""Events: cases of one spell of rain, which are not independent of each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: A pause of so long without rain ends an event, and no event is longer than a day.
PAUSE = np.timedelta64(6 * 3600, "s")
LONGEST = np.timedelta64(24 * 3600, "s")
#: Part of the scored pixels that is wet when it rains.
WET = 0.01


def event_labels(
    archive: NDArray[np.integer], time: NDArray[np.datetime64], wet: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Give every case the number of its event, (case,) int64: 0, 0, ... 1, 1, ...

    A new event begins with another archive, with the first rain after a pause of six hours, and 24
    hours after the last one began (weather changes within a day more than within an hour). Dry
    cases belong to the event before them.

    Parameters
    ----------
    archive, time, wet : ndarray, (case,)
        Number of each case's rain store, increasing; its start, increasing within
        an archive; and the part of the scored pixels with rain.

    Examples
    --------
    >>> hours = np.array([0, 1, 2, 9, 10], "timedelta64[h]")
    >>> wet = np.array([0.1, 0.1, 0.0, 0.2, 0.2])
    >>> event_labels(np.zeros(5, int), np.datetime64("2020-01-01T00") + hours, wet)
    array([0, 0, 0, 1, 1])
    """
    labels = np.zeros(len(time), np.int64)
    event, began, last_rain = 0, time[0], time[0]
    for i in range(len(time)):
        if i and archive[i] != archive[i - 1]:
            event, began, last_rain = event + 1, time[i], time[i]
        elif (wet[i] >= WET and time[i] - last_rain >= PAUSE) or time[i] - began >= LONGEST:
            event, began = event + 1, time[i]
        if wet[i] >= WET:
            last_rain = time[i]
        labels[i] = event
    return labels
