/*
 * A run as what is exported: core/simulation/document.py, key for key.
 */
{
  const FORMAT = 1;
  const OUTCOMES = ["served", "slow", "retried", "refused", "reset", "killed"];

  dw.simulation.document = (run) => {
    const total = run.requests.length;
    const failed = run.failed.length;
    const requests = { total, succeeded: total - failed, failed };
    for (const outcome of OUTCOMES) {
      requests[outcome] = run.requests.filter((one) => one.outcome === outcome).length;
    }
    return {
      simulated: true,
      format: FORMAT,
      inputs: run.inputs,
      says: dw.simulation.says(run),
      requests,
      life: run.life,
      routes: run.routes.map(({ source, until_ns }) => ({ source, until_ns })),
      failures: dw.simulation.failures(run),
      steps: dw.simulation.steps(run),
      sent: run.requests,
    };
  };
}
