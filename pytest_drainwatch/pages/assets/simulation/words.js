/*
 * What became of a request, in words, with its shape and its tone; and one request as a sentence.
 */
{
  // In the order in which people look for them.
  const OUTCOMES = {
    refused: { word: "refused", tone: "bad", shape: "cross", failed: true },
    reset: { word: "reset", tone: "bad", shape: "diamond", failed: true },
    killed: { word: "cut off", tone: "bad", shape: "square", failed: true },
    retried: { word: "answered on a retry", tone: "warn", shape: "triangle", failed: false },
    slow: { word: "answered slowly", tone: "warn", shape: "ring", failed: false },
    served: { word: "answered", tone: "good", shape: "dot", failed: false },
  };
  const CAUSES = {
    "listener-closed": "the listener was closed",
    "process-gone": "the process was gone",
    "connection-ended": "its connection had ended with the process",
    "drain-deadline": "the drain was over",
    exited: "the app exited",
    sigkill: "SIGKILL",
  };

  const { when, seconds, counted } = dw.simulation;

  dw.simulation.OUTCOMES = Object.keys(OUTCOMES);
  dw.simulation.outcome = (outcome) => OUTCOMES[outcome];

  dw.simulation.story = (request) => {
    const { word } = OUTCOMES[request.outcome];
    const { source, start_ns, end_ns, cause, attempts } = request;
    const took = end_ns > start_ns ? ` after ${seconds(end_ns - start_ns)}` : " at once";
    const why = cause === null ? "" : `: ${CAUSES[cause]}`;
    const tries = attempts > 1 ? ` (${counted(attempts, "attempt")})` : "";
    return `${source}, begun ${when(start_ns)}: ${word}${took}${why}${tries}.`;
  };
}
