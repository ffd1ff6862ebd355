/*
 * The trace: core/simulation/steps.py.
 */
{
  const NS_PER_S = 1e9;
  const { seconds, counted, named, when } = dw.simulation;
  const REACTS = {
    drain: "the app is to drain",
    "exit-now": "the app is to exit at once",
    ignore: "the app ignores it",
  };
  const WHY = {
    "listener-closed": "refused: the listener is closed",
    "process-gone": "refused: the process is gone",
    "connection-ended": "reset: its connection ended with the process",
    "drain-deadline": "cut off: the drain is over",
    exited: "cut off: the process exits",
    sigkill: "cut off: SIGKILL",
  };

  function step(at, kind, text) {
    return { at_ns: at, kind, text };
  }

  function* ofPod({ inputs, life }) {
    const grace = seconds(inputs.grace_period_s * NS_PER_S);
    const begins = life.begins_ns ? `begins ${seconds(life.begins_ns)} later` : "begins";
    yield step(0, "deleted", `The pod is deleted: its grace period of ${grace} ${begins}.`);
    if (life.hook_ends_ns !== null) {
      const hook = seconds(inputs.pre_stop_ns);
      yield step(life.begins_ns, "hook-begins", `The preStop hook of ${hook} begins.`);
      yield life.hook_cut
        ? step(
            life.hook_ends_ns,
            "hook-cut",
            "The preStop hook is cut off: the grace period is over.",
          )
        : step(life.hook_ends_ns, "hook-ends", "The preStop hook ends.");
    }
    yield step(life.sigterm_ns, "sigterm", `SIGTERM: ${REACTS[inputs.behavior]}.`);
    if (life.deadline_ns !== null) {
      const idle = inputs.close_idle ? "are closed" : "stay open";
      const text = `The listener closes; idle keep-alive connections ${idle}.`;
      yield step(life.listener_closed_ns, "listener-closes", text);
    }
  }

  function* ofRoutes({ life, routes }) {
    for (const { source, until_ns } of routes) {
      const text = `${named(source)} stops sending new connections here`;
      if (until_ns > life.listener_closed_ns) {
        const late = seconds(until_ns - life.listener_closed_ns);
        yield step(until_ns, "route-ends-late", `${text}, ${late} after the listener closed.`);
      } else {
        yield step(until_ns, "route-ends", `${text}.`);
      }
    }
  }

  function* ofEnd({ inputs, life }) {
    let text = "The process is gone.";
    if (life.ending === "sigkill") {
      const late = life.kill_due_ns - life.begins_ns > inputs.grace_period_s * NS_PER_S;
      const after = seconds(life.kill_due_ns - life.sigterm_ns);
      const due = late
        ? `SIGKILL: ${after} after SIGTERM, which the kubelet leaves at least.`
        : "SIGKILL: the grace period is over.";
      yield step(life.kill_due_ns, "sigkill", due);
    } else if (life.ending === "drain-deadline") {
      const drain = seconds(inputs.drain_ns);
      const over = `The drain of ${drain} is over: what is in flight is cut off.`;
      yield step(life.exit_ns, "drain-deadline", over);
    } else if (life.ending === "drained") {
      text = "The process exits: all work is done.";
    } else {
      text = "The process exits: what is in flight is cut off.";
    }
    yield step(life.exit_ns, "exit", text);
  }

  /** The first of each source and cause stands for all of them. */
  function* ofRequests({ requests, failed }) {
    const bad = new Set(failed);
    const alike = new Map();
    for (const request of requests) {
      if (request.cause === null) continue;
      const key = JSON.stringify([request.source, request.cause, bad.has(request)]);
      if (!alike.has(key)) alike.set(key, []);
      alike.get(key).push(request);
    }
    for (const found of alike.values()) {
      const [first] = found;
      const at = first.outcome === "killed" ? first.end_ns : first.start_ns;
      const begun = when(first.start_ns);
      const rest = found.length > 1 ? `; ${counted(found.length - 1, "other")} likewise` : "";
      const again = bad.has(first) ? "" : ". A retry reached another pod";
      const text =
        `A request of ${named(first.source)}, begun ${begun}, ` +
        `is ${WHY[first.cause]}${again}${rest}.`;
      yield step(at, bad.has(first) ? "fails" : "retried", text);
    }
  }

  dw.simulation.steps = (run) =>
    [...ofPod(run), ...ofRoutes(run), ...ofEnd(run), ...ofRequests(run)].sort(
      (one, other) => one.at_ns - other.at_ns,
    );
}
