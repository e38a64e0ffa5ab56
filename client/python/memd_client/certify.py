"""The certification of this client against a running daemon.

What comes in: a client. What goes out: nothing, or the step at which it failed. What must not be here: what the steps
hold; that is the daemon's business, and whatever it gives is handed on.

Run ``python -m memd_client.certify``.
"""

from __future__ import annotations

from memd_client.client import Client
from memd_client.errors import MemdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STEPS = ("flag", "ints", "texts", "lists", "maps", "error", "end")


def certify(client: Client) -> None:
    """Go through the sequence: each reply is the next call's argument.

    Raises:
        MemdError: ``invalid_params`` says which value did not survive; nothing on the daemon's side has changed.
    """
    given: dict[str, Any] = client.call("rpc.certify.start")
    for step in STEPS:
        try:
            given = client.call(f"rpc.certify.{step}", **given)
        except MemdError as error:
            if step != "error" or error.name != "conflict":
                raise
            given = {"id": error.data["id"], "value": error.data["value"]}
    if given["value"] != "certified":
        msg = f"not certified: {given['value']!r}"
        raise MemdError(msg)


if __name__ == "__main__":
    with Client(client_name="memd_client.certify") as proven:
        certify(proven)
    print("certified")  # noqa: T201 - what the command is for
