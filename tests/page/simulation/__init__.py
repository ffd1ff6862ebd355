"""The simulator's page as a file: no browser."""
