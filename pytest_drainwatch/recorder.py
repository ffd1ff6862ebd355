"""Writing a recording while it happens: each line complete, flushed, in order."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.recording import (
    Header,
    Recording,
    dump_header,
    dump_observation,
    dumps,
    merge,
    parse_observation,
)


class RecorderError(OSError):
    """The recording cannot be written; the text names file and cause."""


class Recorder:
    """Appends observations from several threads to one file."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.header = header
        self.problem: str | None = None
        self._lock = threading.Lock()
        self._seen: list[Observation] = []
        self._whole: tuple[Observation, ...] | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", encoding="utf-8")
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            self._write(dump_header(header))
        except OSError as error:
            self.close()
            raise _unwritable(path, error) from error

    def __call__(self, seen: Observation) -> None:
        """Record one observation. Raises :class:`RecorderError` (a full disk, say)."""
        line = dump_observation(seen)
        with self._lock:
            if self._file.closed:
                return  # a late watch frame after the trial was closed
            self._seen.append(seen)
            try:
                self._write(line)
            except OSError as error:
                failure = _unwritable(self.path, error)
                self.problem = str(failure)  # for the conductor: this may be a watch's thread
                raise failure from error

    def observations(self) -> tuple[Observation, ...]:
        """What was recorded so far."""
        with self._lock:
            return tuple(self._seen)

    @property
    def finished(self) -> bool:
        """Whether the whole recording has been written."""
        return self._whole is not None

    def finish(self, part: Path | None, *last: Observation, salvage: bool = False) -> Recording:
        """Merge the flow agent's part, add ``last``, write the whole atomically and close.

        Finishing again only adds ``last``: what was found out too late still gets
        written. Raises :class:`RecorderError` if the part is missing or torn, unless
        told to ``salvage`` what there is (of a trial that is void anyway).
        """
        if self._whole is None:
            agents = read_part(part, salvage=salvage) if part else ()
            self._whole = merge(self.observations(), agents)
            self.close()
        self._whole = (*self._whole, *last)
        recording = Recording(self.header, self._whole)
        write_atomic(self.path, dumps(recording))
        if part:
            part.unlink(missing_ok=True)
        return recording

    def close(self) -> None:
        """Stop writing; later observations are dropped. Lines are flushed one by one, so
        what a full disk keeps from closing properly has been reported already.
        """
        with self._lock, suppress(OSError):
            self._file.close()

    def _write(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()


def read_part(path: Path, *, salvage: bool = False) -> tuple[Observation, ...]:
    """Observation lines without a header, as the flow agent writes them.

    Raises :class:`RecorderError` if the file is missing, or its last line torn
    because the agent was killed, unless told to ``salvage`` the complete lines.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        if salvage:
            return ()
        raise RecorderError(f"the flow agent's recording {path} is lost: {error}") from error
    *complete, torn = raw.split(b"\n")
    if torn and not salvage:
        raise RecorderError(
            f"the flow agent's recording {path} ends within a line; expected a whole one: "
            "the agent was killed, or the disk is full"
        )
    return tuple(
        parse_observation(line.decode("utf-8"), number) for number, line in enumerate(complete, 1)
    )


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never a half.

    A link stays one, and /dev/stdout a device: it is written to. Raises :class:`RecorderError`
    naming the file.
    """
    try:
        whole = path.is_file() or not path.exists()
        path = path.resolve() if path.is_symlink() and whole else path
    except OSError as error:
        raise _unwritable(path, error) from error
    if not whole:
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise _unwritable(path, error) from error
        return
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> RecorderError:
    return RecorderError(
        f"cannot write {path}: {error.strerror or error}; expected a writable folder with free "
        f"space. Look at: df -h {path.parent}; ls -ld {path.parent}; or choose another --dw-out"
    )
