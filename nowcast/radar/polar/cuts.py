"""The elevation cuts of a volume: which sweeps lie lowest and which of one cut is to be used."""

from __future__ import annotations

from collections.abc import Sequence

from nowcast.radar.polar.sweep import Sweep

# Sweeps closer than this belong to one cut. The two of a NEXRAD split cut differ by up to 0.09
# degrees (message 1), neighbouring cuts of other radars by 0.2 and more.
SAME_CUT = 0.12
# Birdbath scans look straight up and are no rain map.
HIGHEST = 45.0


def lowest_cuts(elevations: Sequence[float], count: int) -> list[list[int]]:
    """Return the indices of the sweeps in each of the ``count`` lowest cuts, lowest first.

    Examples
    --------
    >>> lowest_cuts([0.48, 0.5, 1.5, 2.4], 2)
    [[0, 1], [2]]
    """
    order = sorted(
        (i for i, elevation in enumerate(elevations) if elevation <= HIGHEST),
        key=lambda i: (elevations[i], i),
    )
    cuts: list[list[int]] = []
    for index in order:
        if cuts and elevations[index] - elevations[cuts[-1][0]] <= SAME_CUT:
            cuts[-1].append(index)
        else:
            cuts.append([index])
    return [sorted(cut) for cut in cuts[:count]]


def join_moments(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """Return sweeps with the moments of one turn, read from several files, joined."""
    joined: list[Sweep] = []
    for sweep in sweeps:
        for i, known in enumerate(joined):
            if known.same_turn(sweep):
                joined[i] = known.joined(sweep)
                break
        else:
            joined.append(sweep)
    return joined


def usable_sweeps(sweeps: Sequence[Sweep], count: int) -> list[Sweep]:
    """Return one sweep with reflectivity for each of the ``count`` lowest cuts, lowest first.

    Of a cut that was scanned twice the sweep with the longest range is taken: in a NEXRAD split cut
    that is the surveillance sweep, not the Doppler one whose echoes fold. Of equals (SAILS) it is
    the first in time.
    """
    with_echo = [sweep for sweep in sweeps if sweep.dbz is not None]
    cuts = lowest_cuts([sweep.elevation for sweep in with_echo], count)
    return [
        min((with_echo[i] for i in cut), key=lambda sweep: (-sweep.reach, sweep.time))
        for cut in cuts
    ]
