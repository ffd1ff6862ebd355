"""``drainwatch advise --from``: measured trials instead of what nobody told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.cli import main
from pytest_drainwatch.output import BROKEN, CANNOT, DONE, USAGE

ROOT = Path(__file__).parents[2]
GUIDE = str(ROOT / "tests" / "advise" / "manifests" / "guide.yaml")
SAMPLE = ROOT / "results" / "sample" / "kubernetes-1.37"
DRAINING = str(SAMPLE / "B-drain-delete")
# Five trials: their greatest is above the median with 31 of 32.
MEDIAN = ("--quantile", "0.5", "--confidence", "0.95")
Captured = pytest.CaptureFixture[str]


def advised(capsys: Captured, *arguments: str) -> tuple[int, Any]:
    code = main(["advise", GUIDE, *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def parts(advice: Any) -> dict[str, Any]:
    return {part["name"]: part for part in advice["workloads"][0]["budget"]["parts"]}


def test_a_measured_shutdown_takes_the_place_of_the_drain(capsys: Captured) -> None:
    code, advice = advised(capsys, "--from", DRAINING, *MEDIAN, "--propagation", "3s")
    (shutdown,) = (f for f in advice["measured"]["figures"] if f["name"] == "shutdown")
    drain = parts(advice)["drain"]
    assert code == DONE
    assert advice["measured"]["trials"] == 5
    assert shutdown["limit"]["rank"] == 1
    assert drain["origin"] == "measured"
    assert shutdown["limit"]["value"] == max(shutdown["values_ns"])
    # in whole milliseconds, never below
    assert 0 <= drain["ns"] - shutdown["limit"]["value"] < 10**6
    assert drain["ns"] % 10**6 == 0
    recommended = advice["workloads"][0]["recommendation"]
    assert advice["workloads"][0]["left_ns"] == 40 * 10**9 - drain["ns"]
    assert recommended["grace_s"] == recommended["pre_stop_s"] + -(-drain["ns"] // 10**9) + 5
    assert advice["workloads"][0]["simulated"]["recommended"]["failed"] == 0


def test_what_the_owner_says_goes_first_and_more_was_measured(capsys: Captured) -> None:
    options = ("--from", DRAINING, *MEDIAN, "--propagation", "3s", "--drain", "20s")
    _, advice = advised(capsys, *options)
    assert parts(advice)["drain"]["origin"] == "option"
    lines = {each["name"]: each for each in advice["workloads"][0]["recommendation"]["parts"]}
    assert lines["drain"]["ns"] == 20 * 10**9
    assert lines["measured on top"]["ns"] > 4 * 10**9


def test_too_few_trials_are_no_number(capsys: Captured) -> None:
    _, advice = advised(capsys, "--from", DRAINING, "--propagation", "3s")
    (shutdown,) = (f for f in advice["measured"]["figures"] if f["name"] == "shutdown")
    assert shutdown["limit"]["value"] is None
    assert shutdown["limit"]["needed"] == 299
    assert parts(advice)["drain"]["ns"] is None
    assert advice["workloads"][0]["recommendation"]["grace_s"] is None


def test_a_measured_shutdown_that_does_not_fit(capsys: Captured, tmp_path: Path) -> None:
    text = Path(GUIDE).read_text(encoding="utf-8").replace("Seconds: 45", "Seconds: 25")
    (tmp_path / "short.yaml").write_text(text, encoding="utf-8")
    options = ["--from", DRAINING, *MEDIAN]
    assert main(["advise", str(tmp_path / "short.yaml"), *options]) == BROKEN
    assert "drain-over-grace" in capsys.readouterr().out


def test_trials_that_say_nothing_are_counted_with_their_reason(capsys: Captured) -> None:
    assert main(["advise", GUIDE, "--from", str(SAMPLE)]) == DONE
    out = " ".join(capsys.readouterr().out.split())
    assert "Measured in 25 trial(s)" in out
    assert "25 trials left out: applications differ in drain_behavior" in out
    assert "Recommended: not known" in out


def test_what_is_no_result(capsys: Captured, tmp_path: Path) -> None:
    assert main(["advise", GUIDE, "--from", str(tmp_path)]) == CANNOT
    assert "no report.json" in capsys.readouterr().err
    assert main(["advise", GUIDE, "--from", str(tmp_path / "none")]) == CANNOT
    assert "No such file" in capsys.readouterr().err
    assert main(["advise", GUIDE, "--from", GUIDE]) == CANNOT
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "options",
    [
        ("--quantile", "1"),
        ("--quantile", "0"),
        ("--quantile", "0.0"),
        ("--quantile", "99"),
        ("--quantile", "nan"),
        ("--confidence", "0.99999"),
        ("--confidence", "-0.5"),
        ("--confidence", "1/2"),
    ],
)
def test_shares_that_mean_nothing(capsys: Captured, options: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["advise", GUIDE, f"{options[0]}={options[1]}"])
    assert ended.value.code == USAGE
    assert "expected above 0" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--lb-delay=5s", "--lb-health-threshold=3"])
def test_a_balancers_number_needs_a_balancer(capsys: Captured, flag: str) -> None:
    assert main(["advise", GUIDE, flag]) == USAGE
    assert "expected --lb beside it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        # lag 3 s + spread 15 s are assumed: a hook of 5 s is too short for that
        (("--lb", "aws-alb"), BROKEN),
        (("--lb", "aws-alb", "--lb-lag", "1s", "--lb-spread", "4s"), DONE),
        (("--lb", "aws-alb", "--wait", "13s"), DONE),
        (("--lb", "aws-nlb"), BROKEN),
        (("--lb", "custom", "--lb-health-interval=2s", "--lb-health-threshold=3"), BROKEN),
        (("--lb", "custom", "--lb-health-interval=1s", "--lb-health-threshold=3"), DONE),
        (("--lb", "custom"), DONE),
    ],
)
def test_load_balancers_of_the_command_line(
    capsys: Captured, options: tuple[str, ...], code: int
) -> None:
    assert main(["advise", GUIDE, *options]) == code
    assert capsys.readouterr().err == ""


def test_a_trial_that_is_given_twice_is_one_trial(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLE)
    again = ("--from", DRAINING, "--from", "B-drain-delete", "--from", f"{DRAINING}/r00")
    _, advice = advised(capsys, *again, *MEDIAN)
    assert advice["measured"]["trials"] == 5


def test_no_folder_is_not_this_one(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["advise", GUIDE, "--from="])
    assert ended.value.code == USAGE
    assert "expected a folder of results" in capsys.readouterr().err


def test_a_quantile_is_shown_as_it_was_asked_for(capsys: Captured) -> None:
    main(["advise", GUIDE, "--from", DRAINING, "--quantile", "0.9999"])
    assert "99.99 % of all such trials" in " ".join(capsys.readouterr().out.split())
