"""Benchmarks, and the packet truth that the tests share with them.

Each benchmark prints JSON lines ``{"figure": …, "value": …, "unit": …, "goal": …}``.
"""
