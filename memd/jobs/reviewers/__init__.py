"""Reviewers: what reads a conversation and says what is worth keeping.

What comes in: copies of messages, the entries there are. What goes out: operations for the commit. What must not be here: the journal,
when a job runs, the commit.
"""
