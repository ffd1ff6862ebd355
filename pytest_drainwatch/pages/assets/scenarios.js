// Each scenario with a small picture of every trial, what differs between them, and its figures.
{
  // What was not watched is not known: nobody claims more than was seen.
  const NO_HARM = "no harm seen";

  /** A trial's name among the repeats of its scenario. */
  function nameOf(trial) {
    return trial.repeat === null ? "the trial" : `r${String(trial.repeat).padStart(2, "0")}`;
  }

  /** What is built when it is opened: hundreds of plots that nobody asked for take a second. */
  function folded(title, content) {
    const details = dw.el("details", {}, dw.el("summary", {}, title));
    details.addEventListener("toggle", () => {
      if (details.children.length === 1) details.append(...content());
    });
    return details;
  }

  function pictures(trials, span) {
    return trials.map((trial) => {
      const picture = dw.multiples.picture(trial, span);
      picture.dataset.trial = trial.id;
      return picture;
    });
  }

  /** What was asked, and which time the pictures show. */
  function about(trials, span) {
    const [from, to] = span.map((at) => dw.say.instant([at, at]));
    return dw.el("p", { class: "muted" }, `${trials[0].asked}. Pictures: ${from} to ${to}.`);
  }

  /** One scenario. */
  function block(scenario, trials) {
    const made = dw.el(
      "article",
      { class: "scenario", "data-scenario": scenario.id },
      dw.el("h3", { tabindex: "-1" }, scenario.id),
    );
    if (trials.length) {
      const span = dw.multiples.spanOf(trials);
      made.append(about(trials, span), dw.el("div", { class: "smalls" }, ...pictures(trials, span)));
    }
    if (scenario.disagreements.length) {
      const lines = scenario.disagreements.map((line) => dw.el("li", {}, line));
      const title = `Repeats differ: ${dw.say.plural(lines.length, "way")}`;
      made.append(dw.el("details", { class: "differ" }, dw.el("summary", {}, title), dw.el("ul", {}, ...lines)));
    }
    if (scenario.measures.length) {
      const title = `${dw.say.plural(scenario.measures.length, "figure")} over ${dw.say.plural(trials.length, "repeat")}`;
      made.append(folded(title, () => dw.strips.ofScenario(scenario)));
    }
    return made;
  }

  /** What the colours and lines of the small pictures mean. */
  function legend() {
    const entry = (name, words) =>
      dw.el("li", {}, dw.el("span", { class: `key ${name}`, "aria-hidden": "true" }), words);
    return dw.el(
      "ul",
      { class: "small-legend" },
      entry("tone-good", "connections that are served"),
      entry("tone-good moved", "served by another pod than at first"),
      entry("tone-bad", "not served; of new connections: refused or lost"),
      entry("gone", "ended: nothing is left"),
      entry("line trigger", "t = 0, the pod is told to go"),
      entry("line sigterm", "SIGTERM arrives"),
    );
  }

  dw.scenarios = { block, legend, nameOf, NO_HARM };
}
