/*
 * Requests counted, by source and by what became of them: of the whole run, whatever is shown of
 * the trace.
 */
{
  const { el } = dw;

  function cell(count, outcome) {
    const hurt = count && outcome && dw.simulation.outcome(outcome).failed;
    return el("td", { class: count ? (hurt ? "hurt-cell" : null) : "none" }, String(count));
  }

  function row(name, requests, outcomes) {
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      cell(requests.length),
      outcomes.map((outcome) =>
        cell(requests.filter((one) => one.outcome === outcome).length, outcome),
      ),
    );
  }

  dw.simulation.numbers = (table, told) => {
    const outcomes = dw.simulation.OUTCOMES;
    // In the order of the timeline's lanes.
    const sources = told.routes.map(({ source }) => source).reverse();
    if (told.inputs.keepalive) sources.push(dw.simulation.POOLED);
    table.replaceChildren(
      el("caption", {}, "All requests of the run, whatever the trace shows"),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "from"),
          el("th", { scope: "col" }, "all"),
          outcomes.map((name) => el("th", { scope: "col" }, dw.simulation.outcome(name).word)),
        ),
      ),
      el(
        "tbody",
        {},
        sources.map((source) =>
          row(
            source,
            told.sent.filter((one) => one.source === source),
            outcomes,
          ),
        ),
      ),
      el("tfoot", {}, row("together", told.sent, outcomes)),
    );
  };
}
