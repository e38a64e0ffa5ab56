"""The store: the journal (SQLite), the memory files, recovery and the locks.

What comes in: parts of a commit, as records and bytes. What goes out: durable groups, file images, typed errors.
What must not be here: the meaning of an edit, wire types, settings files.
"""

from __future__ import annotations
