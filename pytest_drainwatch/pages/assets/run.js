// The run view: what all trials of a run say together, and the way to each of them.
{
  const MOST_REASONS = 5;
  // What people ask for first; kept, as the filter is.
  const chosen = { figure: "new_connections_failed_for_ms" };

  function section(id, title, ...content) {
    const heading = `${id}-heading`;
    return dw.el("section", { id, "aria-labelledby": heading }, dw.el("h2", { id: heading }, title), ...content);
  }

  function list(lines) {
    return dw.el("ul", {}, ...lines.map((line) => dw.el("li", {}, line)));
  }

  /** What a reader must know before believing the rest. */
  function incomplete(run) {
    const shown = run.incomplete_because.slice(0, MOST_REASONS);
    const more = run.incomplete_because.length - shown.length;
    return dw.el(
      "div",
      { class: "warning", role: "note", id: "incomplete" },
      dw.el("p", {}, dw.el("b", {}, "⚠ This run is incomplete."), " The rest holds for what was measured, and says nothing of what was not."),
      list(more > 0 ? [...shown, `and ${dw.say.count(more)} more`] : shown),
    );
  }

  function lead(run, trials) {
    const tests = dw.filter.tested(trials);
    const simulated = trials.filter((trial) => trial.simulated).length;
    const watched = "In each, a pod was ended while clients talked to it, and what happened to each of them was watched.";
    const foretold = "A model foretold what happens to the clients of a pod that is ended; nothing of it was measured.";
    return dw.el(
      "p",
      { class: "lead" },
      `${dw.say.plural(trials.length, "trial")} of ${dw.say.plural(run.scenarios.length, "scenario")}. ` +
        (simulated === 0 ? watched : simulated === trials.length ? foretold : `${simulated} of them are simulated, not measured.`),
      tests && ` Tests: ${tests}.`,
    );
  }

  /** Scenarios below each other, or side by side where each has but a trial or two. */
  function blocks(run, trialsOf) {
    const few = run.scenarios.every((one) => one.trials.length <= 2);
    const all = run.scenarios.map((one) => dw.scenarios.block(one, trialsOf(one)));
    return dw.el("div", { class: few ? "blocks few" : "blocks" }, ...all);
  }

  /** One figure of all scenarios on one axis, to be chosen. */
  function across(run, isShown) {
    const measures = run.scenarios.flatMap((scenario) => scenario.measures);
    const names = new Map(measures.map((one) => [one.key, one.name]));
    if (!names.has(chosen.figure)) chosen.figure = names.keys().next().value;
    const options = [...names].map(([value, name]) => dw.el("option", { value }, name));
    const choice = dw.el("select", { name: "figure" }, ...options);
    choice.value = chosen.figure;
    const plots = dw.el("div", { class: "across" });
    const draw = () => {
      const scenarios = run.scenarios.filter((scenario) => isShown(scenario.id));
      plots.replaceChildren(...dw.strips.acrossScenarios(scenarios, chosen.figure));
    };
    choice.addEventListener("change", () => {
      chosen.figure = choice.value;
      draw();
    });
    return { content: [dw.el("label", {}, "Figure ", choice), plots], draw };
  }

  function missing(run) {
    const heads = ["trial", "state", "why"];
    const rows = run.missing.map((one) =>
      dw.el(
        "tr",
        {},
        dw.el("th", { scope: "row" }, one.name),
        dw.el("td", { "data-label": heads[1] }, one.state),
        dw.el("td", { "data-label": heads[2] }, one.why),
      ),
    );
    return dw.el(
      "table",
      { class: "wide" },
      dw.el("caption", {}, "Trials that have no report: no figure above counts them"),
      dw.el("thead", {}, dw.el("tr", {}, ...heads.map((each) => dw.el("th", { scope: "col" }, each)))),
      dw.el("tbody", {}, ...rows),
    );
  }

  /** Hide what the filter does not want, and say how much is left. */
  function narrow(root, trials, run, say) {
    const kept = trials.filter(dw.filter.wanted);
    const ids = new Set(kept.map((trial) => trial.id));
    const scenarios = new Set(run.scenarios.filter((one) => one.trials.some((id) => ids.has(id))).map((one) => one.id));
    for (const picture of root.querySelectorAll("[data-trial]")) picture.hidden = !ids.has(picture.dataset.trial);
    for (const part of root.querySelectorAll(".overview [data-scenario], article[data-scenario]")) {
      part.hidden = !scenarios.has(part.dataset.scenario);
    }
    say(
      kept.length === trials.length
        ? `all ${dw.say.plural(trials.length, "trial")}`
        : `${dw.say.count(kept.length)} of ${dw.say.plural(trials.length, "trial")}, ` +
            `${dw.say.count(scenarios.size)} of ${dw.say.plural(run.scenarios.length, "scenario")}`,
    );
    return (id) => scenarios.has(id);
  }

  /**
   * Show the run of a page in an empty element.
   * @param {object} page data.Page, with a run
   * @param {Element} element
   * @param {string|null} scenario where to scroll to
   */
  function show(page, element, scenario) {
    const { run, trials } = page;
    const byId = new Map(trials.map((trial) => [trial.id, trial]));
    const trialsOf = (one) => one.trials.flatMap((id) => byId.get(id) || []);
    let isShown = () => true;
    const figures = across(run, (id) => isShown(id));
    const { form, say } = dw.filter.form(trials, () => {
      isShown = narrow(root, trials, run, say);
      figures.draw();
    });
    const root = dw.el("div", { class: "run" }, dw.el("h1", { tabindex: "-1" }, page.title));
    if (!run.complete) root.append(incomplete(run));
    root.append(lead(run, trials));
    if (run.comparison) root.append(section("comparison", "Against the baseline", ...dw.compared.show(run.comparison)));
    root.append(
      section("overview", "What happened to connections", trials.length > 1 ? form : null, dw.overview.table(run.scenarios, trialsOf)),
      section("trials", "Every trial", dw.scenarios.legend(), blocks(run, trialsOf)),
    );
    if (chosen.figure !== undefined && run.scenarios.length > 1) root.append(section("figures", "One figure, all scenarios", ...figures.content));
    if (run.missing.length) root.append(section("missing", "Not measured", missing(run)));
    if (run.not_pooled.length) root.append(section("not-pooled", "Not taken together", list(run.not_pooled)));
    element.append(root);
    isShown = narrow(root, trials, run, say);
    figures.draw();
    if (scenario !== null && scenario !== undefined) goTo(root, scenario);
  }

  function goTo(root, scenario) {
    const block = [...root.querySelectorAll("article[data-scenario]")].find((one) => one.dataset.scenario === scenario);
    if (!block || block.hidden) return;
    block.scrollIntoView();
    block.querySelector("h3").focus({ preventScroll: true });
  }

  dw.run = { show };
}
