// How connections ended: a bar in proportion, and the same in words and counts.
{
  const WORST_FIRST = ["bad", "warn", "unknown", "neutral", "good"];

  /**
   * The fates of one protocol, equal outcomes and mechanisms together, the worst first.
   * @param {Array<{proto: string, outcome: string, mechanism: string, count: number, tone: string}>} fates
   * @param {string} proto
   */
  function of(fates, proto) {
    return fates
      .filter((fate) => fate.proto === proto && fate.count > 0)
      .sort((a, b) => WORST_FIRST.indexOf(a.tone) - WORST_FIRST.indexOf(b.tone) || b.count - a.count);
  }

  /** A bar and its words; `fates` as `of` gives them. */
  function bar(fates) {
    const total = fates.reduce((sum, fate) => sum + fate.count, 0);
    if (total === 0) return dw.el("span", { class: "muted" }, "none held");
    const parts = fates.map((fate) =>
      dw.el("span", { class: `fate tone-${fate.tone}`, style: `flex-grow:${fate.count}` }),
    );
    const words = fates.map((fate) =>
      dw.el(
        "li",
        { class: `tone-${fate.tone}` },
        dw.el("span", { class: "fate-key", "aria-hidden": "true" }),
        dw.el("b", {}, dw.say.count(fate.count)),
        ` ${dw.ends.words(fate)}`,
      ),
    );
    return dw.el(
      "div",
      { class: "fate-list" },
      dw.el("div", { class: "fate-bar", "aria-hidden": "true" }, ...parts),
      dw.el("ul", { class: "fate-words" }, ...words),
    );
  }

  dw.fates = { of, bar, WORST_FIRST };
}
