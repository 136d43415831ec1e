"""Numbers added up and handed round between workers: numpy in, numpy out; no models, no samples.

Collective tasks of one's own run by :func:`run`; their calls speak by a :class:`Communicator`.
"""

from daskdl.collective.communicator import Communicator
from daskdl.collective.run import run

__all__ = ["Communicator", "run"]
