"""Results of the ancestor (drainwatch v0.1, in Go): read strictly, judged anew.

:mod:`.document` and :mod:`.digest` say what its files hold, :mod:`.reader` reads them,
:mod:`.repeat` makes them poolable, and :mod:`.convert` turns the facts of its flows into
our observations. Nothing here is imported before somebody asks for it: pydantic is.
"""
