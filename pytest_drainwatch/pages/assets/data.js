"use strict";
{
  /* The page's data, as pages/packing.py wrote it -> as render/page/data.py describes it. */

  /** @type {object | null} */
  let read = null;

  /** One flow of a packed trial. */
  const flow = (row, texts) => {
    const [id, proto, role, outcome, mechanism, tone, end, numbers, parts] = row;
    const pieces = [];
    for (let n = 0; n < numbers.length; n += 6) {
      const [from, lasts, edge, state, colour, by] = numbers.slice(n, n + 6);
      pieces.push({ at: [from, from + lasts], edge, state: texts[state], tone: texts[colour], by });
    }
    return {
      id,
      proto: texts[proto],
      role: role === null ? null : texts[role],
      outcome: texts[outcome],
      mechanism: texts[mechanism],
      tone: texts[tone],
      end: end === null ? null : [end[0], end[0] + end[1]],
      pieces,
      story: parts.map((part) => (typeof part === "number" ? texts[part] : part)).join(""),
      rows: null,
    };
  };

  /** All of the page, read once. */
  dw.page = () => {
    if (read === null) {
      read = JSON.parse(document.getElementById("data").textContent);
      for (const trial of read.trials) {
        if (!Array.isArray(trial.flows)) {
          const { texts, rows } = trial.flows;
          trial.flows = rows.map((row) => flow(row, texts));
        }
      }
    }
    return read;
  };
}
