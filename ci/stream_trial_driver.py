"""The command line daskdl as a module, for the driver of ci.stream_trial."""

from __future__ import annotations

import sys

from daskdl.cli import main

if __name__ == "__main__":
    sys.exit(main())
