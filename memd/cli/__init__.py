"""The ``memd`` command.

What it is: a client like any other, and the way to start the daemon. What comes in: arguments, the environment, a terminal.
What goes out: text or JSON, and an exit status. What must not be here: rules of memory. A verb that asks the daemon
something loads neither trio nor the daemon: most of what it costs is starting Python.
"""

from __future__ import annotations
