/*
 * What a run comes to, in a few sentences: core/simulation/says.py.
 */
{
  const { seconds, counted, named, floored } = dw.simulation;
  const NS_PER_MS = 1e6;
  const CAUSES = [
    "listener-closed",
    "process-gone",
    "connection-ended",
    "drain-deadline",
    "exited",
    "sigkill",
  ];

  function most(numbers) {
    return numbers.reduce((one, other) => Math.max(one, other));
  }

  function failures({ failed }) {
    return CAUSES.flatMap((cause) => {
      const found = failed.filter((one) => one.cause === cause);
      if (!found.length) return [];
      const ends = found.map(({ end_ns }) => end_ns);
      return [
        {
          outcome: found[0].outcome,
          cause,
          sources: [...new Set(found.map(({ source }) => source))],
          count: found.length,
          first_ns: -most(ends.map((at) => -at)) + 0,
          last_ns: most(ends),
        },
      ];
    });
  }

  /** The first of those that route here longest. */
  function lastRoute({ routes }) {
    return routes.reduce((one, other) => (other.until_ns > one.until_ns ? other : one));
  }

  function refused(run, { cause, count }) {
    const last = lastRoute(run);
    const [what, at] =
      cause === "listener-closed"
        ? ["the listener closed", run.life.listener_closed_ns]
        : ["the process was gone", run.life.exit_ns];
    const late = seconds(last.until_ns - at);
    return `${count} refused: ${what} at ${seconds(at)}, and ${named(last.source)} sent new connections for another ${late}.`;
  }

  /** The least preStop hook with which nobody would have been refused, if there is one. */
  function covering({ inputs, life, routes, failed }) {
    const refused = failed.some(({ outcome }) => outcome === "refused");
    if (!refused || life.listener_closed_ns >= life.kill_due_ns) return null;
    const last = most(routes.map(({ until_ns }) => until_ns));
    const lacks = last - inputs.kubelet_ns - inputs.handler_ns;
    return -floored(-lacks, NS_PER_MS) * NS_PER_MS;
  }

  function* remedy(run) {
    const hook = covering(run);
    if (hook !== null) {
      yield `A preStop hook of ${seconds(hook)} would cover the routes, in a grace period that holds it.`;
    }
  }

  function missing(run, { cause }, at) {
    const cut = run.failed.filter((one) => one.cause === cause);
    const needed = most(cut.map(({ start_ns, takes_ns }) => start_ns + takes_ns));
    return `${seconds(needed - at)} before the last of them would have been answered`;
  }

  const WHY = {
    "listener-closed": refused,
    "process-gone": refused,
    "connection-ended": ({ life }, { count, sources }) =>
      `${count} reset: ${named(sources[0])} still used a connection that ended at ${seconds(life.exit_ns)}.`,
    "drain-deadline": (run, group) =>
      `${group.count} cut off: the drain of ${seconds(run.inputs.drain_ns)} was over at ` +
      `${seconds(run.life.exit_ns)}, ${missing(run, group, run.life.exit_ns)}.`,
    exited: ({ life }, { count }) =>
      `${count} cut off: at ${seconds(life.exit_ns)} the app exited on SIGTERM with requests in flight.`,
    sigkill: (run, group) =>
      `${group.count} cut off: SIGKILL came at ${seconds(run.life.kill_due_ns)}, ` +
      `${missing(run, group, run.life.kill_due_ns)}.`,
  };

  function* margins(run) {
    const { life, requests } = run;
    const last = lastRoute(run);
    const retried = requests.some(({ outcome }) => outcome === "retried");
    const luck = retried ? "" : ", by luck with no request in it";
    const spare = life.listener_closed_ns - last.until_ns;
    const closed =
      spare >= 0
        ? `${seconds(spare)} before the listener closed`
        : `${seconds(-spare)} after the listener closed${luck}`;
    yield `New connections came until ${seconds(last.until_ns)}, last from ${named(last.source)}: ${closed}.`;
    if (life.ending === "drained") {
      const left = seconds(life.kill_due_ns - life.exit_ns);
      yield `The process exited at ${seconds(life.exit_ns)}, ${left} before SIGKILL was due.`;
    }
  }

  function* aside({ inputs, life, requests }) {
    const had = (outcome) => requests.filter((one) => one.outcome === outcome).length;
    if (had("retried")) {
      yield `${counted(had("retried"), "request")} failed at first: a retry was answered.`;
    }
    if (had("slow")) {
      yield `${counted(had("slow"), "request")} took longer than ${seconds(inputs.slow_ns)}.`;
    }
    if (life.hook_cut) {
      const grace = seconds(life.kill_due_ns - life.sigterm_ns);
      yield `The preStop hook did not end in time: SIGKILL follows ${grace} after SIGTERM.`;
    }
  }

  function says(run) {
    const all = run.requests.length;
    const bad = run.failed.length;
    if (!all) {
      return ["No request is sent to the pod: none shows what would become of it.", ...aside(run)];
    }
    if (!bad) {
      const answered = all === 1 ? "The 1 request is" : `All ${all} requests are`;
      return [`${answered} answered.`, ...margins(run), ...aside(run)];
    }
    return [
      `${bad} of ${counted(all, "request")} ${bad === 1 ? "fails" : "fail"}.`,
      ...failures(run).map((group) => WHY[group.cause](run, group)),
      ...remedy(run),
      ...aside(run),
    ];
  }

  Object.assign(dw.simulation, { failures, says });
}
