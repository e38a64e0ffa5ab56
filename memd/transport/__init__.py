"""Sockets: listening, accepting, one connection's reading and sending, and word to the service manager.

What comes in: connections on Unix sockets. What goes out: requests to whoever ``open_conversation`` gives, bytes to the
peers. What must not be here: method names, memory.
"""

from __future__ import annotations
