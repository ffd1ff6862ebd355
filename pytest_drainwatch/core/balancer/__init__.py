"""A load balancer that takes a backend out politely: its states, its rotation, its commands."""
