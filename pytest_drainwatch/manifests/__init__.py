"""Kubernetes manifests of a user's: read, and put together into what the advisor judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.advisor import strays
from pytest_drainwatch.core.advisor.finding import Finding
from pytest_drainwatch.core.advisor.subject import Subject
from pytest_drainwatch.manifests import workload
from pytest_drainwatch.manifests.errors import KUSTOMIZE, ManifestError
from pytest_drainwatch.manifests.files import Source, sources
from pytest_drainwatch.manifests.related import CONTEXT, Object, related
from pytest_drainwatch.manifests.values import Value, documents

__all__ = ["ManifestError", "Manifests", "read", "read_sources"]

# A List of Lists, and no further: nobody writes more, and aliases can make it endless.
_DEEPEST_LIST = 3
# A large cluster's; aliases can make millions of a small file.
_MOST_OBJECTS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """The workloads, and what is to be said of the objects that are about none of them."""

    subjects: tuple[Subject, ...]
    findings: tuple[Finding, ...]


def read(paths: Sequence[str]) -> Manifests:
    """The workloads of these files; "-" is standard input. Raises :class:`ManifestError`."""
    return read_sources(sources(paths), paths)


def read_sources(given: Iterable[Source], names: Sequence[str]) -> Manifests:
    """The same of texts that are there already; ``names`` are for the error."""
    objects: list[Object] = []
    for o in (o for source in given for value in documents(source) for o in _objects(value, 0)):
        objects.append(o)
        if len(objects) > _MOST_OBJECTS:
            raise o.value.source.error(
                o.value.line,
                f"over {_MOST_OBJECTS} objects, expected fewer; give the workload's own",
            )
    known = workload.KINDS | CONTEXT
    _refuse_twins(o for o in objects if o.kind in known)
    subjects = [
        workload.subject(o.value, o.kind, o.name, o.namespace)
        for o in objects
        if o.kind in workload.KINDS
    ]
    if not subjects:
        others = ", ".join(sorted({o.kind for o in objects})[:5])
        kinds = ", ".join(sorted(workload.KINDS))
        raise ManifestError(
            ", ".join(names),
            None,
            f"no workload in it{others and ', only '}{others}; expected one of {kinds}",
        )
    found, unused = related(subjects, [o for o in objects if o.kind in CONTEXT])
    unknown = [o for o in objects if o.kind not in known]
    return Manifests(
        subjects=tuple(found),
        findings=(
            *(strays.unused(o.kind, o.name, o.value.place) for o in unused),
            *strays.skipped([(o.kind, o.name, o.value.place) for o in unknown]),
        ),
    )


def _objects(value: Value, depth: int) -> Iterator[Object]:
    kind = _kind(value)
    items = value.get("items")
    if kind.endswith("List") and items is not None:
        if depth >= _DEEPEST_LIST:
            raise value.wrong("objects in this List, and no further Lists")
        for item in items.items():
            yield from _objects(item, depth + 1)
        return
    if kind in ("Kustomization", "Component"):
        raise value.source.error(value.line, f"is a {kind}: {KUSTOMIZE}")
    name, namespace = value.at("metadata", "name"), value.at("metadata", "namespace")
    if name is None and kind in workload.KINDS | CONTEXT:
        generated = value.at("metadata", "generateName")
        if generated is None:
            raise value.source.error(value.line, f"this {kind} has no metadata.name, expected one")
        name = generated
    yield Object(
        kind=kind,
        name=name.text() if name is not None else "",
        namespace=namespace.text() if namespace is not None else "",
        value=value,
    )


def _kind(value: Value) -> str:
    try:
        kind = value.get("kind")
    except ManifestError:
        first = next(iter(value.items()), None) if _is_list(value) else None
        if first is not None and not _is_list(first) and _has(first, "op"):
            raise value.source.error(value.line, f"is a JSON patch: {KUSTOMIZE}") from None
        raise
    if kind is None:
        raise value.source.error(
            value.line, "this document has no kind, expected a Kubernetes object"
        )
    return kind.text()


def _is_list(value: Value) -> bool:
    try:
        value.items()
    except ManifestError:
        return False
    return True


def _has(value: Value, key: str) -> bool:
    try:
        return value.get(key) is not None
    except ManifestError:
        return False


def _refuse_twins(objects: Iterable[Object]) -> None:
    seen: dict[tuple[str, str, str], Object] = {}
    for o in objects:
        if o.value.at("metadata", "name") is None:
            continue  # generateName: each gets a name of its own
        first = seen.setdefault((o.kind, o.namespace, o.name), o)
        if first is not o:
            raise o.value.source.error(
                o.value.line,
                f"{o.kind}/{o.name} is there twice, first at {first.value.place}; expected it once",
            )
