"""YAML as values that know their line, read field by field and never as a whole.

Only what is asked for is looked at, so an alias costs nothing until somebody follows it.
A value of another kind than Kubernetes takes there is an error with its line: the API
server refuses it as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from pytest_drainwatch.core.advisor.subject import Place
from pytest_drainwatch.manifests.errors import HELM, ManifestError
from pytest_drainwatch.manifests.files import Source

# libyaml's loader limits nesting itself and is ten times as fast; a build may lack it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})")
_TOO_LONG = re.compile(r"[-+]?[1-9][0-9]{19,}")
_TEMPLATE = re.compile(
    r"\{\{-?\s*(?:\.|\$|if\b|else\b|end\b|with\b|range\b|include\b|template\b|toYaml\b|define\b)"
)
_MERGE = "<<"
_LINES_BEFORE = 3
_LARGEST = 2**63 - 1
_DEEPEST_MERGE = 50
# Where Kubernetes takes any number of its int64.
LEAST = -(2**63)


def documents(source: Source) -> Iterator[Value]:
    """The documents of a source that hold anything. Raises :class:`ManifestError`."""
    try:
        for node in yaml.compose_all(source.text, Loader=_LOADER):
            if node is None or _is_null(node):
                continue
            _refuse_doubtful(source, node)
            yield Value(node=node, source=source, path="")
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(source, error) from error
    except yaml.YAMLError as error:  # a character that YAML does not know
        position = getattr(error, "position", None)
        number = source.text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
        reason = getattr(error, "reason", None) or "not YAML"
        raise source.error(number, f"{reason}; expected YAML or JSON") from error
    except RecursionError as error:
        raise ManifestError(
            source.file, None, "is nested too deeply, expected Kubernetes objects"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value of a document; ``path`` says which, as ``spec.replicas``."""

    node: Any
    source: Source
    path: str

    @property
    def line(self) -> int:
        """Its line, counted from 1."""
        return int(self.node.start_mark.line) + 1

    @property
    def place(self) -> Place:
        """Its file and line."""
        return Place(file=self.source.file, line=self.line)

    def get(self, key: str) -> Value | None:
        """The field of that name; None where it is missing or null."""
        found = self._fields().get(key)
        if found is None or _is_null(found):
            return None
        return Value(node=found, source=self.source, path=f"{self.path}.{key}".lstrip("."))

    def at(self, *keys: str) -> Value | None:
        """The field at the end of that way, None where it ends before."""
        found: Value | None = self
        for key in keys:
            found = found.get(key) if found is not None else None
        return found

    def items(self) -> list[Value]:
        """The items of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong("a list")
        return [
            Value(node=node, source=self.source, path=f"{self.path}[{index}]")
            for index, node in enumerate(self.node.value)
        ]

    def items_at(self, *keys: str) -> list[Value]:
        """The items of the list at the end of that way; none where there is none."""
        found = self.at(*keys)
        return found.items() if found is not None else []

    def text(self) -> str:
        """A text; numbers and booleans are none, as in Kubernetes."""
        kind = self._scalar("a text")
        if kind != "str" and kind != "timestamp":
            raise self.wrong(f'a text, so write "{self.node.value}" with quotes')
        if _TEMPLATE.search(self.node.value):
            raise self.source.error(self.line, HELM)
        return str(self.node.value)

    def whole(self, at_least: int = 0) -> int:
        """A whole number of at least ``at_least``, as it is written in a manifest: decimal."""
        said = f"a whole number of {at_least} or more"
        if at_least == LEAST:
            said = "a whole number"
        is_int = self._scalar(said) == "int"
        if is_int and _TOO_LONG.fullmatch(self.node.value):
            raise self.wrong(f"{said}, up to {_LARGEST}")
        if not is_int or not _WHOLE.fullmatch(self.node.value):
            raise self.wrong(said)
        number = int(self.node.value)
        if number > _LARGEST:
            raise self.wrong(f"{said}, up to {_LARGEST}")
        if number < at_least:
            raise self.wrong(said)
        return number

    def whole_or_percent(self) -> int | str:
        """What Kubernetes calls int-or-string: 1 or "25%"."""
        if self._scalar('a number or a text as "25%"') == "int":
            return self.whole()
        if not re.fullmatch(r"[0-9]{1,3}%", self.node.value):
            raise self.wrong('a number or a text as "25%"')
        return str(self.node.value)

    def flag(self) -> bool:
        """true or false."""
        if self._scalar("true or false") != "bool":
            raise self.wrong("true or false, without quotes")
        return str(self.node.value).lower() in ("true", "yes", "on")

    def texts(self) -> Mapping[str, str]:
        """A map of texts: labels, annotations."""
        fields = self._fields()
        return {
            key: Value(node=node, source=self.source, path=f"{self.path}[{key}]").text()
            for key, node in fields.items()
            if not _is_null(node)
        }

    def wrong(self, expected: str) -> ManifestError:
        """The error that this value is of another kind."""
        if "{{" in self.source.line(self.line):
            return self.source.error(self.line, HELM)
        what = "the document" if not self.path else self.path
        return self.source.error(self.line, f"{what} is {self._shown()}, expected {expected}")

    def _scalar(self, expected: str) -> str:
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.wrong(expected)
        return str(self.node.tag).removeprefix(_TAG)

    def _fields(self) -> Mapping[str, Any]:
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong("a map of fields")
        return _merged(self.source, self.node, {})

    def _shown(self) -> str:
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        if isinstance(self.node, yaml.MappingNode):
            return "a map"
        shown = " ".join(str(self.node.value).split())
        shown = shown if len(shown) <= 40 else f"{shown[:40]}…"
        kind = str(self.node.tag).removeprefix(_TAG)
        return f'"{shown}", a text' if kind == "str" else shown


def _merged(
    source: Source, node: Any, seen: dict[int, Mapping[str, Any]], depth: int = 0
) -> Mapping[str, Any]:
    """The fields of a map, with those that ``<<`` brings from others below its own.

    Each map is merged once (``seen``), however many ways lead to it; one that brings itself
    has only its own fields there.
    """
    if id(node) in seen:
        return seen[id(node)]
    own = {key.value: value for key, value in node.value if isinstance(key.value, str)}
    brought = own.pop(_MERGE, None)
    seen[id(node)] = own
    if depth > _DEEPEST_MERGE:
        line = int(node.start_mark.line) + 1
        raise source.error(line, f"more than {_DEEPEST_MERGE} merges (<<) in a row, expected fewer")
    if brought is None:
        return own
    others = brought.value if isinstance(brought, yaml.SequenceNode) else [brought]
    below: dict[str, Any] = {}
    for other in reversed(others):
        if isinstance(other, yaml.MappingNode):
            below.update(_merged(source, other, seen, depth + 1))
    seen[id(node)] = {**below, **own}
    return seen[id(node)]


def _refuse_doubtful(source: Source, root: Any) -> None:
    """Keys that are given twice: which one counts depends on who reads it."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, value in node.value:
                line = int(key.start_mark.line) + 1
                if not isinstance(key, yaml.ScalarNode):
                    is_template = "{{" in source.line(line)
                    raise source.error(line, HELM if is_template else "expected a plain key")
                if key.value in first and key.value != _MERGE:
                    raise source.error(
                        line,
                        f"the key {key.value} is there twice, first in line {first[key.value]}; "
                        "expected it once",
                    )
                first[key.value] = line
                waiting.append(value)


def _is_null(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"


def _syntax_error(source: Source, error: yaml.MarkedYAMLError) -> ManifestError:
    mark = error.problem_mark or error.context_mark
    number = int(mark.line) + 1 if mark is not None else 1
    # The parser may well stop some lines after the one that is to blame.
    for blamed in range(max(1, number - _LINES_BEFORE), number + 1):
        if _TEMPLATE.search(source.line(blamed)):
            return source.error(blamed, HELM)
    line = source.line(number)
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return source.error(number, "a tab indents this line, expected spaces")
    problem = error.problem or "not YAML"
    context = f" {error.context}" if error.context else ""
    return source.error(number, f"{problem}{context}; expected YAML")
