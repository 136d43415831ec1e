"""The model of a gang's exchange over a network, by recursive halving and doubling.

2 log2 n messages, and 2 (n - 1) / n of the vector through each link each way.
"""

from __future__ import annotations

import math

#: Milliseconds of a message, and the payload's part of a link's rate.
MESSAGE, PAYLOAD = 0.18, 0.936


def moved(n: int, megabytes: float) -> float:
    """Return the MB that pass each link each way."""
    return 2 * (n - 1) / n * megabytes


def predicted(n: int, megabytes: float, megabits: float) -> float:
    """Return the milliseconds of both exchanges."""
    return 2 * math.ceil(math.log2(n)) * MESSAGE + moved(n, megabytes) * per_megabyte(megabits)


def per_megabyte(megabits: float) -> float:
    """Return the milliseconds that a MB takes through a link."""
    return 8000 / (PAYLOAD * megabits)
