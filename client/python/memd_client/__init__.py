"""A thin blocking client for memd.

What it is: the door to the package. What comes in: ``from memd_client import Client``. What goes out: the client and
its errors. What must not be here: anything that a one-shot call does not need; the start-up time is its main cost.

    with Client(client_name="my-agent") as memd:
        opened = memd.session_open(key="my-agent:42")
        memd.memory_add("memory", "Project uses pytest -x", session=opened.session)
"""

from __future__ import annotations

__version__ = "0.1.0"  # before the import below, which needs it

from memd_client.client import Client
from memd_client.errors import MemdError

__all__ = ["Client", "MemdError", "__version__"]
