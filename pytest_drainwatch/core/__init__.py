"""The judge: pure functions and values, standard library only.

Nothing in this package reads a clock, opens a socket or draws a random number.
"""
