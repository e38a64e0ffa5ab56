"""Reviews and flushes: what is worth keeping of a conversation, found by a job that outlives its client.

What comes in: copies of messages, turns that end, compactions, settings. What goes out: jobs, and what they commit through the
profile's writer like anybody else. What must not be here: wire types, files, SQL.
"""
