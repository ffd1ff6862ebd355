"""What must be the same on this machine before and after an embedded cluster."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

# Counters, clocks and random numbers of the kernel itself.
_VOLATILE_SYSCTL = re.compile(
    r"^(fs\.(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota|epoll)"
    r"|kernel\.(random|ns_last_pid|perf_event_max_sample_rate|pty\.nr|sched_domain|spl)"
    r"|net\.netfilter\.nf_conntrack_count|vm\.stat_refresh)"
)
_FOLDERS = ("/run", "/var/lib", "/var/log", "/opt", "/etc/cni", "/var/run", "/usr/libexec")


def snapshot() -> dict[str, list[str]]:
    """Name of an aspect → its state as sorted lines."""
    return {
        "sysctl": [line for line in _lines("sysctl", "-a") if not _VOLATILE_SYSCTL.match(line)],
        "iptables": _rules("iptables-save"),
        "ip6tables": _rules("ip6tables-save"),
        "nft": _lines("nft", "list", "ruleset"),
        "links": [re.sub(r"^\d+: ", "", line) for line in _lines("ip", "-o", "link")],
        "addresses": _lines("ip", "-br", "addr"),
        "routes": _lines("ip", "route", "show", "table", "all"),
        "network namespaces": _lines("ip", "netns"),
        "mounts": [
            " ".join(line.split()[3:])
            for line in Path("/proc/self/mountinfo").read_text().splitlines()
        ],
        "cgroups": cgroups(),
        "folders": _listing(),
    }


def cgroups() -> list[str]:
    """Cgroup folders of ours, everywhere."""
    return sorted(str(path) for path in Path("/sys/fs/cgroup").glob("**/drainwatch/**"))


def differences(
    before: dict[str, list[str]], after: dict[str, list[str]], *, cluster: str, link: str
) -> list[str]:
    """Lines that came or went, by aspect; empty if nothing changed.

    Other clusters may come and go on this machine at the same time: what names their links
    and cgroups is left out, what names this *cluster* and *link* is not.
    """
    found = []
    for aspect, old in before.items():
        new = after[aspect]
        found += [f"{aspect}: - {line}" for line in old if line not in new]
        found += [f"{aspect}: + {line}" for line in new if line not in old]
    return [line for line in found if not _is_foreign(line, cluster, link)]


def _is_foreign(line: str, cluster: str, link: str) -> bool:
    links = set(re.findall(r"\bdwh\d+\b", line))
    if links:
        return link not in links
    return line.startswith("cgroups: ") and cluster not in line


def processes_naming(text: str) -> list[str]:
    """Command lines of live processes that contain *text*."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if text in command:
            found.append(f"{folder.name} {command}")
    return found


def eventually(condition: Callable[[], bool], *, within_s: float) -> bool:
    """Whether *condition* holds at some moment of the next *within_s* seconds."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _lines(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return sorted(done.stdout.splitlines())


def _rules(command: str) -> list[str]:
    # Comments carry the time, chain heads the packet counters.
    return [re.sub(r"\[\d+:\d+\]", "", line) for line in _lines(command) if line[:1] != "#"]


def _listing() -> list[str]:
    found = []
    for top in _FOLDERS:
        for folder, folders, files in os.walk(top):
            found += [f"{folder}/{name}" for name in (*folders, *files)]
    return sorted(found)
