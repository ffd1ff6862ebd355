"""The pictures in docs/screenshots are those that `make screenshots` writes, and small."""

from __future__ import annotations

import struct

import pytest

from docs.make_screenshots import MOST_BYTES, SHOTS, TARGET, Shot

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: shot.name)
def test_each_is_there_in_its_size(shot: Shot) -> None:
    picture = (TARGET / f"{shot.name}.png").read_bytes()
    assert picture.startswith(PNG)
    assert struct.unpack(">II", picture[16:24]) == shot.size
    assert len(picture) <= MOST_BYTES


def test_no_other_is_there() -> None:
    assert {file.stem for file in TARGET.iterdir()} == {shot.name for shot in SHOTS}
