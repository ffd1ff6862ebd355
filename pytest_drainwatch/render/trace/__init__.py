"""Trials as a trace: Chrome's Trace Event Format, which Perfetto and chrome://tracing open."""
