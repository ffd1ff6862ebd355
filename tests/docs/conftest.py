"""The scripts that write pages of docs/, as modules: they are no part of the package."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
Load = Callable[[str], ModuleType]


@pytest.fixture(scope="session")
def load() -> Load:
    """``load("make_csv")``."""

    def from_docs(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return from_docs
