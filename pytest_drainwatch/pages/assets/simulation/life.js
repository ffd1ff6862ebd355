/*
 * When the hook, the listener and the process of a deleted pod end: core/simulation/life.py and
 * core/pod/kubelet.py.
 */
{
  const NS_PER_S = 1e9;
  const MINIMUM_S = 2;
  const { floored } = dw.simulation;

  function sigtermAfter(graceS, hookNs) {
    return Math.min(hookNs, Math.max(graceS, 1) * NS_PER_S);
  }

  function killAfter(graceS, hookNs) {
    const ran = sigtermAfter(graceS, hookNs);
    return ran + Math.max(MINIMUM_S, graceS - floored(ran, NS_PER_S)) * NS_PER_S;
  }

  /** What is fixed before anybody asks for anything. */
  function shutdown(inputs) {
    const hook = sigtermAfter(inputs.grace_period_s, inputs.pre_stop_ns);
    const kill = inputs.kubelet_ns + killAfter(inputs.grace_period_s, inputs.pre_stop_ns);
    const sigterm = inputs.kubelet_ns + hook;
    const acts = sigterm + inputs.handler_ns;
    const drains = inputs.behavior === "drain" && acts < kill;
    return {
      begins: inputs.kubelet_ns,
      hookCut: hook < inputs.pre_stop_ns,
      sigterm,
      acts,
      closes: drains ? acts : null,
      deadline: drains ? acts + inputs.drain_ns : null,
      kill,
      gone: kill + inputs.kill_ns,
    };
  }

  function end(inputs, fixed, idle) {
    if (inputs.behavior === "exit-now" && fixed.acts < fixed.kill) return [fixed.acts, "exited"];
    if (fixed.deadline !== null) {
      if (idle <= Math.min(fixed.deadline, fixed.kill)) return [idle, "drained"];
      if (fixed.deadline <= fixed.kill) return [fixed.deadline, "drain-deadline"];
    }
    return [fixed.gone, "sigkill"];
  }

  /** All of it; `idle` is when a draining app has no work left, as if nothing cut it. */
  function life(inputs, fixed, idle) {
    const [exit, ending] = end(inputs, fixed, idle);
    return {
      begins_ns: fixed.begins,
      hook_ends_ns: inputs.pre_stop_ns ? fixed.sigterm : null,
      hook_cut: fixed.hookCut,
      sigterm_ns: fixed.sigterm,
      listener_closed_ns: fixed.closes === null ? exit : fixed.closes,
      deadline_ns: fixed.deadline,
      kill_due_ns: fixed.kill,
      exit_ns: exit,
      ending,
    };
  }

  Object.assign(dw.simulation, { killAfter, shutdown, life });
}
