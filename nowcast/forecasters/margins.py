"""The rank margins that ship: fitted by ``python -m ci.fit_probabilities`` to real events."""

from __future__ import annotations

from nowcast.forecasters.lagrangian.exceedance import MarginTable

SHIPPED = MarginTable(
    thresholds=(0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0),
    slope=(
        (2.511, 0.659),
        (2.259, 0.666),
        (1.835, 0.682),
        (1.466, 0.702),
        (1.181, 0.71),
        (1.087, 0.7),
        (0.966, 0.67),
    ),
    wet=(
        (0.414, 0.079),
        (0.293, 0.089),
        (0.231, 0.119),
        (0.262, 0.089),
        (0.278, 0.116),
        (0.221, 0.115),
        (0.147, 0.1),
    ),
    offset=(
        (0.281, 0.032),
        (0.107, 0.128),
        (-0.083, 0.163),
        (-0.07, 0.064),
        (-0.166, 0.101),
        (-0.429, 0.074),
        (-0.854, -0.031),
    ),
)
