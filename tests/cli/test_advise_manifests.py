"""``drainwatch advise`` on manifests with one fault each, and on one without."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.cli import main
from pytest_drainwatch.core.advisor.finding import Level
from pytest_drainwatch.output import BROKEN, CANNOT, DONE, USAGE

MANIFESTS = Path(__file__).parents[1] / "advise" / "manifests"
Captured = pytest.CaptureFixture[str]

# Which fault each has: every finding above a note, and nothing else.
FAULTS = {
    "c11_stops_before_routes": {"stops-before-routes": "broken"},
    "c22_shell_is_pid_1": {"shell-swallows-signal": "broken"},
    "c23_stop_signal": {"stop-signal-kills": "broken"},
    "c24_hook_hangs": {"pre-stop-over-grace": "broken"},
    "c25_hook_over_grace": {"pre-stop-over-grace": "broken"},
    "c27_no_sleep_in_image": {"hook-without-program": "broken"},
    "c31_budget_blocks": {"budget-blocks": "broken"},
    "c32_budget_selects_nothing": {"budget-selects-nothing": "warning"},
    "c32_two_budgets": {"two-budgets": "broken"},
    "c36_local_traffic": {"local-traffic-last-pod": "warning"},
    "c44_publish_not_ready": {"publish-not-ready": "warning"},
    "c50_dns_is_older": {"dns-older-than-hook": "broken"},
    "c52_sidecar_ends_first": {"sidecar-ends-first": "warning"},
    "c55_alb_sends_longer": {"balancer-sends-longer": "broken"},
    "c56_nlb_floor": {"balancer-delay-below-floor": "warning"},
    "c58_gcp_lags": {"balancer-outlives-pod": "warning"},
    "k5_drain_over_grace": {"drain-over-grace": "broken"},
    "guide": {},
    "correct": {},
}


def options_of(path: Path) -> list[str]:
    """What the manifest's own first lines say that it is tried with."""
    for line in path.read_text(encoding="utf-8").splitlines()[:2]:
        if line.startswith(f"# drainwatch advise {path.name}"):
            return shlex.split(line)[4:]
    return []


def advised(capsys: Captured, *arguments: str) -> tuple[int, Any]:
    code = main(["advise", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def found(advice: Any) -> list[Any]:
    of_workloads = (f for each in advice["workloads"] for f in each["findings"])
    return [*of_workloads, *advice["findings"]]


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_found_and_nothing_else(capsys: Captured, name: str) -> None:
    path = MANIFESTS / f"{name}.yaml"
    code, advice = advised(capsys, str(path), *options_of(path))
    worse = {f["code"]: f["level"] for f in found(advice) if f["level"] != Level.NOTE}
    assert worse == FAULTS[name]
    assert code == (BROKEN if "broken" in worse.values() else DONE)
    lines = path.read_text(encoding="utf-8").splitlines()
    for finding in found(advice):
        file, line = finding["where"].split(" ")[0].rsplit(":", 1)
        assert file == str(path)
        assert lines[int(line) - 1].strip()


def test_every_manifest_is_tried() -> None:
    assert {path.stem for path in MANIFESTS.glob("*.yaml")} == set(FAULTS)


def test_as_a_person_reads_it(capsys: Captured) -> None:
    assert main(["advise", str(MANIFESTS / "c25_hook_over_grace.yaml"), "--drain", "25s"]) == BROKEN
    out = capsys.readouterr().out
    assert "Shutdown budget of api: 30 s grace" in out
    assert "BROKEN pre-stop-over-grace" in out
    assert "SIGTERM at 30 s, SIGKILL at 32 s, the application gets 2 s" in " ".join(out.split())
    assert out.endswith("the shutdown budget is broken\n")
    assert all(len(line) <= 130 for line in out.splitlines() if "25_hook" not in line)


def test_from_a_pipe() -> None:
    text = (MANIFESTS / "c22_shell_is_pid_1.yaml").read_bytes()
    command = [sys.executable, "-m", "pytest_drainwatch", "advise", "-"]
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    assert done.returncode == BROKEN
    assert b"-:24 Deployment/orders api" in done.stdout
    assert done.stderr == b""


def test_several_files_are_one_set_of_objects(capsys: Captured, tmp_path: Path) -> None:
    parts = (MANIFESTS / "correct.yaml").read_text(encoding="utf-8").split("---\n")
    for index, part in enumerate(parts):
        (tmp_path / f"{index}.yaml").write_text(part, encoding="utf-8")
    names = [str(tmp_path / f"{index}.yaml") for index in range(len(parts))]
    _, together = advised(capsys, *names)
    _, alone = advised(capsys, names[0])
    assert "readiness-drain" in {f["code"] for f in found(together)}
    assert "readiness-drain" not in {f["code"] for f in found(alone)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is empty"),
        (b"\0\1\2", "is no text"),
        (b"kind: Pod\n\tx: 1\n", "x.yaml:2: a tab indents this line"),
        (b"kind: ConfigMap\n", "no workload in it"),
        (b"a: {{ .Values.a }}\n", "try: helm template CHART | drainwatch advise -"),
    ],
)
def test_what_cannot_be_read(capsys: Captured, tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "x.yaml").write_bytes(text)
    assert main(["advise", str(tmp_path / "x.yaml")]) == CANNOT
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert "Traceback" not in err


def test_a_file_that_is_not_there_and_a_folder(capsys: Captured, tmp_path: Path) -> None:
    assert main(["advise", str(tmp_path / "no.yaml")]) == CANNOT
    assert "No such file" in capsys.readouterr().err
    assert main(["advise", str(tmp_path)]) == CANNOT
    assert "is a folder" in capsys.readouterr().err
    assert main(["advise", ""]) == CANNOT
    assert '"": is no file name' in capsys.readouterr().err


def test_standard_input_that_is_closed(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["advise", "-"]) == CANNOT
    assert "standard input is closed" in capsys.readouterr().err


def test_standard_input_that_is_no_text(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    assert main(["advise", "-"]) == CANNOT
    assert "no UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ("--drain", "soon"),
        ("--drain", "-5s"),
        ("--drain", "nan"),
        ("--drain", "inf"),
        ("--drain", "1e9"),
        ("--drain", "9" * 400),
        ("--drain", "25h"),
        ("--drain", ""),
        ("--dns-ttl", "1441m"),
        ("--kubernetes", "one"),
        ("--kubernetes", "2.0"),
    ],
)
def test_options_that_mean_nothing(capsys: Captured, options: tuple[str, str]) -> None:
    path = str(MANIFESTS / "correct.yaml")
    with pytest.raises(SystemExit) as ended:
        main(["advise", path, f"{options[0]}={options[1]}"])
    assert ended.value.code == USAGE
    assert "expected" in capsys.readouterr().err


def test_without_a_manifest(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["advise"])
    assert ended.value.code == USAGE
    assert "MANIFEST" in capsys.readouterr().err


def test_a_name_with_control_characters_moves_no_cursor(capsys: Captured, tmp_path: Path) -> None:
    text = 'kind: Pod\nmetadata: {name: "a\\e[2Jb"}\nspec: {containers: [{name: c, image: i}]}\n'
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    main(["advise", str(tmp_path / "x.yaml")])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "base"),
    [
        ("--max-connection-age-grace=5s", "--max-connection-age"),
        ("--quantile=0.9", "--from"),
        ("--confidence=0.9", "--from"),
        ("--lb-lag=3s", "--lb"),
    ],
)
def test_an_option_about_another_one_needs_it(capsys: Captured, option: str, base: str) -> None:
    assert main(["advise", str(MANIFESTS / "correct.yaml"), option]) == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert f"expected {base} beside it" in err


def test_the_json_has_the_same_fields_whatever_is_found(capsys: Captured) -> None:
    """Scripts rely on them; times are integers or null, and no number is NaN."""

    def refuse(text: str) -> None:
        raise AssertionError(text)

    def floats(value: Any) -> bool:
        if isinstance(value, dict):
            return any(map(floats, value.values()))
        return any(map(floats, value)) if isinstance(value, list) else isinstance(value, float)

    shapes = set()
    for name in FAULTS:
        path = MANIFESTS / f"{name}.yaml"
        main(["advise", str(path), *options_of(path), "--json"])
        advice = json.loads(capsys.readouterr().out, parse_constant=refuse)
        assert not floats(advice)
        (workload,) = advice["workloads"]
        shapes.add(
            (
                tuple(advice),
                tuple(workload),
                tuple(workload["budget"]),
                tuple(workload["recommendation"]),
                *{tuple(part) for part in workload["budget"]["parts"]},
                *{tuple(each) for each in found(advice)},
            )
        )
    assert len(shapes) <= 2  # with findings, and without
    ((top, *_), *_) = shapes
    assert top == ("drainwatch_version", "workloads", "findings", "measured")
