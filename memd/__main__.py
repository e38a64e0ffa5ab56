"""``python -m memd``: the same as the ``memd`` command.

What comes in: the command line. What goes out: an exit status. What must not be here: anything else.
"""

from __future__ import annotations

import sys

from memd.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
