"""A bare trio server: whatever it is sent, it answers with the same prepared bytes.

What comes in: the path of a socket, the size of an answer. What goes out: answers. What must not be here: decoding, dispatch,
encoding: this is the floor that a round trip through trio cannot go below.
"""

from __future__ import annotations

import sys

import trio

CHUNK = 65536


async def serve(path: str, size: int) -> None:
    """Listen until killed."""
    answer = bytes(size)
    listener = trio.socket.socket(trio.socket.AF_UNIX)
    await listener.bind(path)
    listener.listen()

    async def echo(stream: trio.SocketStream) -> None:
        while await stream.receive_some(CHUNK):
            await stream.send_all(answer)

    print("ready", flush=True)
    await trio.serve_listeners(echo, [trio.SocketListener(listener)])


if __name__ == "__main__":
    trio.run(serve, sys.argv[1], int(sys.argv[2]))
