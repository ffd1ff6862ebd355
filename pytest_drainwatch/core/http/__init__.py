"""HTTP requests: what became of each, and of the connections that they went over."""
