/*
 * Who sends what, and what becomes of it: core/simulation/routes.py, requests.py and run.py.
 */
{
  const EVERY_NS = 1e9;
  const LOAD_BALANCER = "load balancer";
  const POOLED = "pooled client";
  const PATTERN = [1, 10, 25, 100];
  const LOAD_BALANCER_PHASE_NS = 5e8;
  const POOLED_PHASE_NS = 2.5e8;
  const POOLED_TAKES_NS = 1e8;
  const FAILED = new Set(["refused", "reset", "killed"]);
  const CUT_BY = { "drain-deadline": "drain-deadline", exited: "exited", sigkill: "sigkill" };
  const { floored, modulo } = dw.simulation;

  function routes(inputs) {
    const count = inputs.nodes;
    const found = Array.from({ length: count }, (_, n) => ({
      source: `node ${n + 1}`,
      until_ns: floored(inputs.propagation_ns * (n + 1), count),
      phase: floored(LOAD_BALANCER_PHASE_NS * n, count),
      turn: n % PATTERN.length,
    }));
    if (inputs.load_balancer_ns !== null) {
      found.push({
        source: LOAD_BALANCER,
        until_ns: inputs.load_balancer_ns,
        phase: LOAD_BALANCER_PHASE_NS,
        turn: 0,
      });
    }
    return found;
  }

  /** A route's requests in order: those that the deletion finds in flight, and those after it. */
  function sent(route, longest) {
    const found = [];
    let second = -floored(longest, EVERY_NS) - 1;
    for (;;) {
      const start = second * EVERY_NS + route.phase;
      if (start >= route.until_ns) return found;
      const part = PATTERN[modulo(second + route.turn, PATTERN.length)];
      const takes = floored(longest * part, 100);
      if (start >= 0 || start + takes > 0) found.push({ source: route.source, start, takes });
      second += 1;
    }
  }

  /** The end of the pooled client's request that is in flight then, else that very instant. */
  function answered(at) {
    const start = floored(at - POOLED_PHASE_NS, EVERY_NS) * EVERY_NS + POOLED_PHASE_NS;
    const end = start + POOLED_TAKES_NS;
    return start >= 0 && start < at && at < end ? end : at;
  }

  function idle(inputs, fixed, asked) {
    if (fixed.closes === null) return 0;
    let last = fixed.closes;
    for (const { one } of asked) {
      if (one.start < fixed.closes) last = Math.max(last, one.start + one.takes);
    }
    if (!inputs.keepalive) return last;
    return inputs.close_idle ? Math.max(last, answered(fixed.closes)) : answered(last);
  }

  function request(one, end, outcome, cause = null, attempts = 1) {
    return {
      source: one.source,
      start_ns: one.start,
      takes_ns: one.takes,
      end_ns: end,
      outcome,
      cause,
      attempts,
    };
  }

  function accepted(inputs, life, one) {
    const end = one.start + one.takes;
    if (end > life.exit_ns) return request(one, life.exit_ns, "killed", CUT_BY[life.ending]);
    return request(one, end, one.takes > inputs.slow_ns ? "slow" : "served");
  }

  /** It is tried again every second, and reaches another pod once its source routes there. */
  function refused(inputs, life, route, one) {
    const cause = one.start >= life.exit_ns ? "process-gone" : "listener-closed";
    const retries = inputs.client_retries;
    for (let attempt = 1; attempt <= retries; attempt += 1) {
      const again = one.start + attempt * EVERY_NS;
      if (again >= route.until_ns) {
        return request(one, again + one.takes, "retried", cause, attempt + 1);
      }
    }
    return request(one, one.start + retries * EVERY_NS, "refused", cause, retries + 1);
  }

  function ofRoute(inputs, life, route, one) {
    return one.start >= life.listener_closed_ns
      ? refused(inputs, life, route, one)
      : accepted(inputs, life, one);
  }

  function onEndedConnection(inputs, one) {
    const cause = "connection-ended";
    return inputs.client_retries
      ? request(one, one.start + one.takes, "retried", cause, 2)
      : request(one, one.start, "reset", cause);
  }

  function pooled(inputs, fixed, life) {
    const closes = inputs.close_idle ? fixed.closes : null;
    const until = closes === null ? life.exit_ns : closes;
    const found = [];
    let start = POOLED_PHASE_NS;
    for (; start < until; start += EVERY_NS) {
      const made = accepted(inputs, life, { source: POOLED, start, takes: POOLED_TAKES_NS });
      found.push(made);
      if (FAILED.has(made.outcome)) return found;
    }
    if (closes === null) {
      found.push(onEndedConnection(inputs, { source: POOLED, start, takes: POOLED_TAKES_NS }));
    }
    return found;
  }

  /** Everything that happens, from the deletion to the last request. */
  function simulate(inputs) {
    const fixed = dw.simulation.shutdown(inputs);
    const ways = routes(inputs);
    const asked = ways.flatMap((route) =>
      sent(route, inputs.longest_ns).map((one) => ({ route, one })),
    );
    const life = dw.simulation.life(inputs, fixed, idle(inputs, fixed, asked));
    const requests = asked.map(({ route, one }) => ofRoute(inputs, life, route, one));
    if (inputs.keepalive) requests.push(...pooled(inputs, fixed, life));
    requests.sort((one, other) => one.start_ns - other.start_ns);
    return {
      inputs,
      life,
      routes: ways,
      requests,
      failed: requests.filter(({ outcome }) => FAILED.has(outcome)),
    };
  }

  Object.assign(dw.simulation, { simulate, POOLED });
}
