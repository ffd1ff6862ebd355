"""Trying new connections while the flows are held: who is served, and how the others fail.

Start reading in ``prober.py``. What is tried is in ``attempt.py``, ``tcp.py`` and ``udp.py``;
``causes.py`` tells the path's errors from our own; ``runs.py`` writes thousands of results
in a few lines.
"""
