"""The flow agent: opens, paces and stamps connections. It records and never judges.

A program of its own (``python -m pytest_drainwatch.flows``): what shares its event
loop with a Kubernetes client cannot promise millisecond stamps. Start reading in
``agent.py``.
"""
