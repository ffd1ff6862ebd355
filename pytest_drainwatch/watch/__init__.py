"""The watches of a trial: Pods, EndpointSlices, and whether the API server lives at all.

A ticker beside them tells whether this process got to run.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pytest_drainwatch.api import Api
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.watch.frames import Fields
from pytest_drainwatch.watch.listwatch import Keep, ListWatch
from pytest_drainwatch.watch.liveness import Liveness
from pytest_drainwatch.watch.ticker import Ticker

Record = Callable[[Observation], None]

STOP_TIMEOUT_S = 2.0


class Watch:
    """Two watches and a liveness check, in threads of their own. Use as a context manager.

    ``pods`` and ``slices`` are the selectors that the API server is asked with, and ``keep``
    says which of those pods are meant. Their status' messages are kept with ``quote`` alone.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        *,
        pods: str,
        slices: str,
        record: Record,
        keep: Keep = lambda _: True,
        quote: bool = True,
    ) -> None:
        self._changed = threading.Condition()
        self._stop = threading.Event()

        def one(
            name: str,
            event: Event,
            call: Callable[..., Any],
            selector: str,
            keep: Keep = lambda _: True,
        ) -> ListWatch:
            def request(**options: object) -> Any:
                return call(namespace, label_selector=selector, _preload_content=False, **options)

            return ListWatch(
                name, event, request, record, self._stop, self._changed, keep, quote=quote
            )

        list_slices = api.discovery.list_namespaced_endpoint_slice
        self._pods = one("pods", Event.POD, api.core.list_namespaced_pod, pods, keep)
        self._slices = one("endpointslices", Event.ENDPOINT_SLICE, list_slices, slices)
        self._resources = (self._pods, self._slices)
        self._liveness = Liveness(api, record=record, recovered=self._reopen)
        self._running = (*self._resources, self._liveness)
        self._ticker = Ticker(record)

    def __enter__(self) -> Watch:
        # A collection stops every thread of this process. What is there by now (the API's
        # client, earlier trials) would make each full one long, and is not looked through.
        gc.freeze()
        try:
            for each in (*self._running, self._ticker):
                each.thread.start()
        except BaseException:
            # Interrupted: nobody would end the threads that run, and one that is still in a
            # TLS handshake when the interpreter ends can take the process down (SIGABRT).
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the threads and record the gaps that are still open; may be called again.

        To be called before the recording is finished: later observations are dropped.
        """
        self._stop.set()
        self._ticker.stop()
        self._liveness.stop()
        self._reopen()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for each in (*self._running, self._ticker):
            if each.thread.ident is not None:  # it was started
                each.thread.join(max(0.0, deadline - time.monotonic()))
        self._ticker.close()
        for each in self._running:
            with suppress(OSError):  # a full disk, which the recorder remembers
                each.close()
        gc.unfreeze()

    def pods(self) -> dict[str, Fields]:
        """The pods seen now, by UID."""
        with self._changed:
            return dict(self._pods.sight.objects)

    def slices(self) -> dict[str, Fields]:
        """The EndpointSlices seen now, by name."""
        with self._changed:
            return dict(self._slices.sight.objects)

    def endpoint_uids(self) -> set[str]:
        """The pods that any slice lists now, by UID."""
        return {
            str(endpoint["uid"])
            for item in self.slices().values()
            for endpoint in item["endpoints"]  # type: ignore[attr-defined]
        }

    def delivering(self) -> dict[str, bool]:
        """Whether each watch had its stream accepted and has shown at least one object."""
        with self._changed:
            return {r.name: r.sight.streamed and r.sight.shown > 0 for r in self._resources}

    def trouble(self, silent_s: float = 10.0) -> str | None:
        """What is wrong, if a watch or the API server has been failing without a break for
        longer than ``silent_s``, or a thread died; None if all is well.
        """
        found = [each.health.trouble(silent_s) for each in self._running]
        return "; ".join(text for text in found if text) or None

    def wait_changed(self, timeout_s: float) -> None:
        """Return when something was seen, or after ``timeout_s``."""
        with self._changed:
            self._changed.wait(timeout_s)

    def _reopen(self) -> None:
        """End the streams: after an outage one may be half open and stay quiet for ever."""
        for resource in self._resources:
            resource.interrupt()
