// The run against its baseline: the verdict first, then each question in its words.
{
  // Read at once; the rest is folded away, for there is much of it.
  const LOUD = ["regression", "improvement"];
  const EVERYWHERE = "all scenarios"; // the scenario of a question that is asked of all together
  const MEANS = {
    regression: "this run is worse",
    improvement: "this run is better",
    "no-change": "alike, as far as so many repeats could tell",
    "insufficient-evidence": "too few repeats to tell",
  };

  /** A verdict as a badge: its word, a glyph, a colour. */
  function badge(verdict, tone) {
    return dw.el(
      "span",
      { class: `badge tone-${tone}` },
      dw.el("span", { "aria-hidden": "true" }, `${dw.say.tone(tone).glyph} `),
      verdict,
    );
  }

  /** How the whole is coloured: as the questions that have its verdict are. */
  function toneOf(comparison) {
    const same = comparison.questions.find((each) => each.verdict === comparison.verdict);
    return same ? same.tone : "neutral";
  }

  function line(question) {
    return dw.el(
      "tr",
      { "data-scenario": question.scenario },
      dw.el("td", { "data-label": "verdict" }, badge(question.verdict, question.tone)),
      dw.el("td", { "data-label": "scenario" }, question.scenario),
      dw.el("td", { "data-label": "figure" }, question.figure),
      dw.el("td", { "data-label": "what it says" }, question.text),
    );
  }

  function table(questions, caption) {
    const heads = ["verdict", "scenario", "figure", "what it says"];
    return dw.el(
      "table",
      { class: "wide" },
      dw.el("caption", {}, caption),
      dw.el("thead", {}, dw.el("tr", {}, ...heads.map((each) => dw.el("th", { scope: "col" }, each)))),
      dw.el("tbody", {}, ...questions.map(line)),
    );
  }

  /** "of 20 questions: 1 regression, 19 no-change", the verdicts in the order of MEANS. */
  function counted(questions) {
    const verdicts = Object.keys(MEANS).filter((each) => questions.some((one) => one.verdict === each));
    const parts = verdicts.map((each) => {
      const count = questions.filter((one) => one.verdict === each).length;
      return `${dw.say.count(count)} ${each} (${MEANS[each]})`;
    });
    return `${dw.say.plural(questions.length, "question")}: ${parts.join(", ")}.`;
  }

  /** The section's content; `comparison` is data.Comparison. */
  function show(comparison) {
    const { questions } = comparison;
    const loud = questions.filter((one) => LOUD.includes(one.verdict) || one.scenario === EVERYWHERE);
    const found = [
      dw.el(
        "p",
        { class: "verdict" },
        badge(comparison.verdict, toneOf(comparison)),
        ` against the baseline ${comparison.baseline}`,
      ),
      dw.el("p", {}, counted(questions)),
    ];
    if (loud.length) found.push(table(loud, "What differs, and what is asked of all scenarios together"));
    for (const verdict of Object.keys(MEANS)) {
      const folded = questions.filter((one) => one.verdict === verdict && !loud.includes(one));
      if (!folded.length) continue;
      const title = `${dw.say.count(folded.length)} ${verdict}: ${MEANS[verdict]}`;
      found.push(dw.el("details", {}, dw.el("summary", {}, title), table(folded, title)));
    }
    found.push(dw.el("p", { class: "muted" }, comparison.text));
    return found;
  }

  dw.compared = { show };
}
