/*
 * A document -> what the timeline draws: lanes of bars and requests, and the lines across them.
 */
{
  const { instant, POOLED } = dw.simulation;
  const { el } = dw;
  const FIXED = 2; // lanes that are no source's
  const BEFORE = -Infinity; // since long before the deletion
  const ENDINGS = {
    drained: "exits with all work done",
    "drain-deadline": "exits with the drain over",
    exited: "exits on SIGTERM",
    sigkill: "is killed",
  };
  const RUNS_ON = {
    drain: { text: "drains", tone: "good" },
    "exit-now": { text: "exits", tone: "bad" },
    ignore: { text: "ignores SIGTERM", tone: "warn" },
  };

  function isFailed({ outcome }) {
    return dw.simulation.outcome(outcome).failed;
  }

  function podLanes({ life, inputs }) {
    const { sigterm_ns, listener_closed_ns, exit_ns } = life;
    const bars = [];
    if (life.hook_ends_ns !== null) {
      const text = life.hook_cut ? "preStop hook, cut off" : "preStop hook";
      const tone = life.hook_cut ? "warn" : "neutral";
      bars.push({ from: life.begins_ns, to: life.hook_ends_ns, kind: "hook", tone, text });
    }
    if (exit_ns > sigterm_ns) {
      bars.push({ from: sigterm_ns, to: exit_ns, kind: "rest", ...RUNS_ON[inputs.behavior] });
    }
    return [
      {
        name: "Pod",
        about: `${ENDINGS[life.ending]} at ${instant(exit_ns)}`,
        bars,
        requests: [],
      },
      {
        name: "Listener",
        about: `accepts connections until ${instant(listener_closed_ns)}`,
        bars: [{ from: BEFORE, to: listener_closed_ns, kind: "open", tone: "good", text: "accepts" }],
        requests: [],
      },
    ];
  }

  function counts(requests) {
    const failed = requests.filter(isFailed).length;
    const all = dw.say.plural(requests.length, "request");
    return failed ? `${failed} of ${all} failed` : `${all}, none failed`;
  }

  function sourceLane(route, told) {
    const closed = told.life.listener_closed_ns;
    const requests = told.sent.filter(({ source }) => source === route.source);
    const bars = [
      {
        from: BEFORE,
        to: Math.min(route.until_ns, closed),
        kind: "thin routes",
        tone: "neutral",
        text: "",
      },
    ];
    if (route.until_ns > closed) {
      bars.push({ from: closed, to: route.until_ns, kind: "thin late", tone: "bad", text: "" });
    }
    return {
      name: route.source,
      about: `routes here until ${instant(route.until_ns)}; ${counts(requests)}`,
      bars,
      requests,
    };
  }

  function pooledLane({ inputs, life, sent }) {
    const mine = sent.filter(({ source }) => source === POOLED);
    const closes = inputs.close_idle && life.deadline_ns !== null;
    const to = closes ? life.listener_closed_ns : life.exit_ns;
    return {
      name: POOLED,
      about: `its old connection lasts until ${instant(to)}; ${counts(mine)}`,
      bars: [{ from: BEFORE, to, kind: "thin routes", tone: "neutral", text: "" }],
      requests: mine,
    };
  }

  function greatest(numbers) {
    return numbers.reduce((one, other) => Math.max(one, other), 0);
  }

  dw.simulation.view = (told) => {
    const { life, routes, sent } = told;
    const killed = life.ending === "sigkill";
    const ends = [...sent.map(({ end_ns }) => end_ns), ...routes.map((one) => one.until_ns)];
    return {
      to: greatest([life.kill_due_ns, life.exit_ns, ...ends]),
      lanes: [
        ...podLanes(told),
        // The slowest first: if there is no room for all, it is they that matter.
        ...[...routes].reverse().map((route) => sourceLane(route, told)),
        ...(told.inputs.keepalive ? [pooledLane(told)] : []),
      ],
      fixed: FIXED,
      events: [
        { at: 0, text: "deleted", kind: "deleted" },
        { at: life.sigterm_ns, text: "SIGTERM", kind: "sigterm" },
        {
          at: life.kill_due_ns,
          text: killed ? "SIGKILL" : "SIGKILL is due",
          kind: killed ? "sigkill" : "sigkill due",
        },
      ],
    };
  };

  dw.simulation.legend = () =>
    el(
      "ul",
      { class: "shapes", "aria-label": "Signs" },
      dw.simulation.OUTCOMES.map((name) => {
        const { word, tone } = dw.simulation.outcome(name);
        return el("li", { class: `tone-${tone}` }, dw.simulation.sign(name), word);
      }),
      el("li", {}, el("span", { class: "key routes" }), "routes here"),
      el("li", {}, el("span", { class: "key late" }), "still routes here, nobody listens"),
      el("li", {}, el("span", { class: "key sigterm" }), "SIGTERM"),
      el("li", {}, el("span", { class: "key sigkill" }), "SIGKILL (dotted: due, and not needed)"),
    );
}
