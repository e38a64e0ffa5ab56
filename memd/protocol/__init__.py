"""The protocol core: MessagePack-RPC as values, without I/O.

What it is: framing, message kinds, wire types and self-description, in the manner of a sans-I/O core. What comes in:
bytes of a stream. What goes out: events for the layers above, and bytes for the peer. What must not be here: sockets,
clocks, randomness, logging, and what a method does.
"""

from __future__ import annotations
