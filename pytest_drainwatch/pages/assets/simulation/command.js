/*
 * The command line that gives the same, and what inputs are refused: core/simulation/command.py
 * and inputs.py.
 */
{
  const COMMAND = "drainwatch simulate";
  const NS_PER_S = 1e9;
  const { page, floored, exactSeconds } = dw.simulation;

  class InputError extends Error {}

  function written(name, flag, value) {
    if (typeof value === "boolean") return flag;
    return name.endsWith("_ns") ? `${flag} ${exactSeconds(value)}s` : `${flag} ${value}`;
  }

  dw.simulation.InputError = InputError;
  dw.simulation.command = (inputs) =>
    [
      COMMAND,
      ...Object.entries(page.flags)
        .filter(([name]) => inputs[name] !== page.usual[name])
        .map(([name, flag]) => written(name, flag, inputs[name])),
    ].join(" ");

  /** Refuses what would be more requests than anybody looks at; each field checks itself. */
  dw.simulation.check = (inputs) => {
    const ends = new Array(inputs.nodes).fill(inputs.propagation_ns);
    if (inputs.load_balancer_ns !== null) ends.push(inputs.load_balancer_ns);
    let lasts = ends.reduce((sum, end) => sum + end + inputs.longest_ns, 0);
    if (inputs.keepalive) {
      const { gone } = dw.simulation.shutdown(inputs);
      lasts += gone;
    }
    const many = floored(lasts, NS_PER_S);
    if (many > page.most_requests) {
      throw new InputError(
        `up to ${many} requests, expected ${page.most_requests} at most: ` +
          "fewer nodes, or shorter times",
      );
    }
  };
}
