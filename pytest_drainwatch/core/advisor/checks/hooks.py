"""The grace period and the preStop hook: what is left for the application, if anything."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.hook import lasts, script_of, shell_script, sleep_of
from pytest_drainwatch.core.advisor.roles import application, takes_traffic
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.core.advisor.subject import Action, Container, Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.pod.kubelet import MINIMUM_S, kill_after, remaining_after, sigterm_after

KUBELET = "kubernetes/kubernetes pkg/kubelet/kuberuntime/kuberuntime_container.go"
# Since when a preStop sleep is there without a switch, and since when it may be 0.
SLEEP_SINCE, ZERO_SINCE = 30, 33
SLEEP_SOURCE = "KEP-3960"

# Images without a shell: by their publishers' word, and by what others call theirs.
_DISTROLESS = re.compile(r"(?:^|/)distroless/|(?:^|/)(?:chainguard|cgr\.dev)/static(?:$|[:@])")
_LOOKS_BARE = re.compile(r"(?:^|[/:._-])(?:scratch|distroless|static)(?=$|[/:@._-])")
_WITH_SHELL = re.compile(r":[^/]*(?:debug|busybox|-dev\b)")


def grace_is_none(subject: Subject, told: Told) -> Iterator[Finding]:
    """terminationGracePeriodSeconds 0 or less: nothing of what follows happens."""
    if subject.grace_said_s is None or subject.grace_said_s > 0:
        return
    yield Finding(
        level=Level.BROKEN,
        code="grace-zero",
        where=subject.where(at=subject.grace_at),
        says=f"terminationGracePeriodSeconds is {subject.grace_said_s}",
        expected="at least the preStop hook, the drain and a reserve",
        because="a pod with 0 is taken out of the API at once, and its replacement may run beside "
        "it; its preStop hook is broken off after 1 s, and SIGKILL comes 2 s after SIGTERM; "
        "a negative number means 1 second, or is refused",
        fix="terminationGracePeriodSeconds: 30 (Kubernetes' default) or more",
        source=KUBELET,
    )


def hook_takes_it_all(subject: Subject, told: Told) -> Iterator[Finding]:
    """A hook as long as the grace period or longer: SIGTERM comes when time is up."""
    if subject.grace_s <= 0:
        return
    for container in subject.containers:
        hook, asked = lasts(container.pre_stop), container.pre_stop
        if asked is None or hook.ns is None:
            continue
        remaining_s = remaining_after(subject.grace_s, min(hook.ns, subject.grace_ns)) // NS_PER_S
        if hook.ns < subject.grace_ns and remaining_s > MINIMUM_S:
            continue
        term_ns = sigterm_after(subject.grace_s, hook.ns)
        kill_ns = kill_after(subject.grace_s, hook.ns)
        over = hook.ns >= subject.grace_ns
        refused = asked.action is Action.SLEEP and hook.ns > subject.grace_ns
        yield Finding(
            level=Level.BROKEN if over else Level.WARNING,
            code="pre-stop-over-grace" if over else "pre-stop-leaves-minimum",
            where=subject.where(container, asked.at),
            says=f"the preStop hook ({hook.shown}) takes {'' if hook.exact else 'at least '}"
            f"{seconds(hook.ns)} of a grace period of {subject.grace_s} s: SIGTERM at "
            f"{seconds(term_ns)}, SIGKILL at {seconds(kill_ns)}, the application gets "
            f"{seconds(kill_ns - term_ns)}",
            expected="a hook that ends well before the grace period does",
            because="the grace period begins with the deletion and the hook counts against it; "
            "at its end the hook is broken off, and SIGTERM leaves at least 2 s"
            + ("; the API server refuses a sleep action that is longer" if refused else ""),
            fix=f"terminationGracePeriodSeconds: {_grace_for(hook.ns, told)} or more, "
            "or a shorter hook",
            breaks="what stands before the sleep in the hook fails"
            if not hook.exact
            else ""
            if over
            else "the application needs no time after SIGTERM",
            source=f"{KUBELET}; kubernetes/kubernetes#65496, #115817",
        )


def hook_needs_a_program(subject: Subject, told: Told) -> Iterator[Finding]:
    """An exec hook in an image that may hold nothing to execute."""
    for container in subject.containers:
        hook = container.pre_stop
        if hook is None or hook.action is not Action.EXEC:
            continue
        if not hook.command:
            yield _failing(subject, container, "the exec hook has no command", Level.BROKEN)
            continue
        program = hook.command[0].rsplit("/", 1)[-1]
        if program != "sleep" and shell_script(hook.command) is None:
            continue
        level, says = _bareness(container.image, program)
        yield _failing(subject, container, says, level)


def _bareness(image: str, program: str) -> tuple[Level, str]:
    if not _WITH_SHELL.search(image):
        if _DISTROLESS.search(image):
            return Level.BROKEN, f"the hook starts {program}, and {image} has neither sh nor sleep"
        if _LOOKS_BARE.search(image):
            return Level.WARNING, f"the hook starts {program}, and by its name {image} has none"
    return Level.NOTE, f"the hook starts {program}: whether {image} has it, no manifest shows"


def _failing(subject: Subject, container: Container, says: str, level: Level) -> Finding:
    hook = container.pre_stop
    assert hook is not None
    slept = [ns for piece in script_of(hook.command) if (ns := sleep_of(piece)) is not None]
    wanted = max(1, -(-sum(slept) // NS_PER_S)) if slept else 10
    return Finding(
        level=level,
        code="hook-without-program",
        where=subject.where(container, hook.at),
        says=says,
        expected="a program that is in the image, or the sleep action, which needs none",
        because="a hook that cannot start fails at once (FailedPreStopHook) and SIGTERM follows "
        "immediately: the wait that it was there for is 0 s",
        fix=f"preStop: {{sleep: {{seconds: {wanted}}}}} (Kubernetes 1.30 and later)",
        breaks="the image has the program after all, or the cluster is older than 1.30",
        source="projectcontour/contour#2819, KEP-3960",
    )


def sleep_action(subject: Subject, told: Told) -> Iterator[Finding]:
    """A sleep of nothing, or one that the cluster does not know."""
    minor = told.kubernetes_minor
    for container in subject.containers:
        hook = container.pre_stop
        if hook is None or hook.action is not Action.SLEEP:
            continue
        where = subject.where(container, hook.at)
        if minor is not None and minor < SLEEP_SINCE:
            yield Finding(
                level=Level.BROKEN,
                code="sleep-action-unknown",
                where=where,
                says=f"a preStop sleep action on Kubernetes 1.{minor}",
                expected="Kubernetes 1.30 or later: it is beta there and on, GA in 1.34",
                because="older API servers drop or refuse the field, so nothing waits",
                fix='preStop: {exec: {command: ["sleep", "…"]}}, in an image that has sleep',
                source=SLEEP_SOURCE,
            )
        elif (hook.sleep_s or 0) <= 0:
            refused = minor is not None and minor < ZERO_SINCE
            yield Finding(
                level=Level.BROKEN if refused or (hook.sleep_s or 0) < 0 else Level.WARNING,
                code="sleep-of-nothing",
                where=where,
                says=f"the preStop hook sleeps {hook.sleep_s} s",
                expected="the time that routes need to change, in whole seconds",
                because="a sleep of 0 waits for nothing, and before 1.33 it is refused; SIGTERM "
                "comes at once, as if there were no hook",
                fix="preStop: {sleep: {seconds: …}} with your measured time, or no hook",
                source=SLEEP_SOURCE,
            )


def hook_of_unknown_length(subject: Subject, told: Told) -> Iterator[Finding]:
    """A hook whose manifest does not say how long it takes."""
    for container in subject.containers:
        hook = lasts(container.pre_stop)
        if container.pre_stop is None or hook.exact:
            continue
        yield Finding(
            level=Level.NOTE,
            code="hook-length-unknown",
            where=subject.where(container, container.pre_stop.at),
            says=f"the preStop hook ({hook.shown}) takes "
            + ("nobody knows how long" if hook.ns is None else f"{seconds(hook.ns)} or longer"),
            expected=f"less than the {subject.grace_s} s of grace, with the drain after it",
            because="if it hangs, SIGTERM comes at the end of the grace period and SIGKILL 2 s "
            "later; what is left for the drain, and whether it waits long enough for routes, is "
            "not known here",
            fix="bound it inside (curl --max-time 5 …), and measure it",
            source=f"{KUBELET}; kubernetes/kubernetes#115817",
        )


def hook_without_traffic(subject: Subject, told: Told) -> Iterator[Finding]:
    """A wait for routes where no route leads."""
    container = application(subject)
    hook = lasts(container.pre_stop)
    if container.pre_stop is None or not hook.ns or takes_traffic(subject):
        return
    yield Finding(
        level=Level.NOTE,
        code="hook-without-traffic",
        where=subject.where(container, container.pre_stop.at),
        says=f"the preStop hook waits {seconds(hook.ns)}, and no port or Service is seen here",
        expected="a hook where connections come in",
        because="a worker that takes jobs goes on taking them during the hook, and has that much "
        "less time to finish what it holds",
        breaks="its Service is in a file that was not given",
    )


def _grace_for(hook_ns: int, told: Told) -> int:
    """Seconds that the hook and all that is told would fit into."""
    work = (told.wait_ns, told.drained_ns, told.close_ns, told.flush_ns, told.reserve_ns)
    asked_ns = sum(ns or 0 for ns in work) or 30 * NS_PER_S
    return -(-(hook_ns + asked_ns) // NS_PER_S)
