"""Which test measured a trial, and which of its repeats it is: from the header to the report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.recording import (
    Header,
    RecordingError,
    dump_header,
    dumps,
    loads,
)
from pytest_drainwatch.core.scenario import Scenario
from tests.core.trials import recording_of

RECORDING = recording_of(Scenario())


def header_with(**fields: object) -> str:
    """The header's line, with these values put into it."""
    return json.dumps(json.loads(dump_header(RECORDING.header)) | fields) + "\n"


@given(test=st.none() | st.text(min_size=1), repeat=st.none() | st.integers(0, 10_000))
def test_both_come_back_as_they_were_written(test: str | None, repeat: int | None) -> None:
    test = test and test.encode(errors="replace").decode()
    header = replace(RECORDING.header, test=test, repeat=repeat)
    again = loads(dumps(replace(RECORDING, header=header)))
    assert again.header == header
    judged = derive(again).trial
    assert (judged.test, judged.repeat) == (test, repeat)


def test_an_older_recording_has_neither() -> None:
    line = dump_header(RECORDING.header)
    assert "repeat" not in json.loads(line), "and one without is written as it always was"
    read = loads(line + "\n").header
    assert isinstance(read, Header)
    assert (read.test, read.repeat) == (None, None)


@pytest.mark.parametrize(
    "fields", [{"repeat": -1}, {"repeat": True}, {"repeat": "0"}, {"repeat": 1.0}, {"test": 3}]
)
def test_what_is_no_origin_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(RecordingError, match=f"'{next(iter(fields))}' is"):
        loads(header_with(**fields))
