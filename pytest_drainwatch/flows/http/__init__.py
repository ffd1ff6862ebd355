"""HTTP/1.1 requests beside the flows: clients that pool a connection each, as real ones do.

Start reading in ``client.py``. A client is a lane (``lane.py``); one connection is in
``connection.py``, its bytes are h11's (``message.py``). ``runs.py`` writes many requests in a
few lines. Everything is recorded as facts; core/http judges them.
"""
