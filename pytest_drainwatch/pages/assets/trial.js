/*
 * The view of one trial: what happened in words, then the picture, then all of it as tables.
 */
{
  let shown = null;

  /** A prediction must not be taken for a measurement. */
  function simulatedMark(trial) {
    return trial.simulated
      ? dw.el("span", { class: "badge tone-warn simulated" }, `${dw.say.tone("warn").glyph} SIMULATED`)
      : null;
  }

  function badge(trial) {
    if (!trial.outcome) return null;
    const tone = { passed: "good", failed: "bad", error: "bad" }[trial.outcome] ?? "neutral";
    return dw.el(
      "span",
      { class: `badge tone-${tone}` },
      `${dw.say.tone(tone).glyph} test ${trial.outcome}`,
    );
  }

  /** Warnings: what must be known before believing it. */
  function marksOf(trial) {
    if (!trial.marks.length) return null;
    return dw.el(
      "section",
      { class: "warnings", "aria-label": "Before you believe it" },
      dw.el("h2", {}, `${dw.say.tone("warn").glyph} Before you believe it`),
      dw.el(
        "ul",
        {},
        trial.marks.map((mark) => dw.el("li", {}, mark)),
      ),
    );
  }

  function hurtOf(trial, picture) {
    if (!trial.hurt) return null;
    const { band, text } = trial.hurt;
    const things = [...trial.flows, ...trial.lanes.flatMap((lane) => lane.bands)];
    const tone = things.some((thing) => thing.tone === "bad") ? "bad" : "unknown";
    const title = tone === "bad" ? "What hurt most" : "Was anybody hurt?";
    const go = () => {
      picture.element.scrollIntoView({ block: "start" });
      const target = picture.showBand(band);
      if (!target) return;
      target.scrollIntoView({ block: "nearest" });
      target.focus({ preventScroll: true });
    };
    return dw.el(
      "section",
      { class: `hurt tone-${tone}`, "aria-label": title },
      dw.el("h2", {}, title),
      dw.el("p", {}, text),
      band
        ? dw.el("button", { type: "button", class: "show-me", on: { click: go } }, "Show me")
        : null,
    );
  }

  function headOf(trial) {
    const repeat = trial.repeat === null ? "" : ` · repeat ${trial.repeat + 1}`;
    return dw.el(
      "header",
      { class: "trial-head" },
      dw.el(
        "h1",
        { tabindex: "-1" },
        trial.scenario,
        dw.el("small", {}, repeat),
        " ",
        simulatedMark(trial),
        badge(trial),
      ),
      dw.el("p", { class: "asked" }, trial.asked),
    );
  }

  function factsOf(trial) {
    return dw.el(
      "div",
      { class: "folds" },
      trial.figures.length
        ? dw.el(
            "details",
            { class: "figures" },
            dw.el("summary", {}, "Figures"),
            dw.pairs(trial.figures),
          )
        : null,
      trial.facts.length
        ? dw.el(
            "details",
            { class: "facts" },
            dw.el("summary", {}, "What was measured where"),
            dw.pairs(trial.facts),
          )
        : null,
    );
  }

  function footOf(trial) {
    const lines = [...trial.notes, ...trial.left_out.map((each) => `Not on this page: ${each}`)];
    return dw.el(
      "footer",
      { class: "trial-foot" },
      lines.length
        ? [
            dw.el("h2", {}, "Notes"),
            dw.el(
              "ul",
              {},
              lines.map((each) => dw.el("li", {}, each)),
            ),
          ]
        : null,
      dw.el(
        "p",
        {},
        "All times are since the trigger: the moment its call was sent, which is t = 0. ",
        trial.report ? dw.el("a", { href: trial.report }, "report.json") : null,
        trial.test ? ` · ${trial.test}` : null,
      ),
    );
  }

  /** Writes a trial's view into an element; what was there is gone. */
  function show(page, element, trialId) {
    leave();
    const trial = page.trials.find((each) => each.id === trialId);
    if (!trial) {
      element.append(
        dw.el("h1", { tabindex: "-1" }, "No such trial"),
        dw.el(
          "p",
          {},
          `This page has no trial “${trialId}”. `,
          dw.el("a", { href: "#/" }, "See what it has"),
        ),
      );
      return;
    }
    const tell = (flow, flows, origin) => {
      const among = {
        length: flows.length,
        at: (n) => dw.evidence.ofFlow(flows[n], trial.responders),
      };
      dw.evidence.show(flows.indexOf(flow), among, origin, {
        zoom: (entry) => picture.view.show(entry.at),
      });
    };
    const list = new dw.FlowList(trial.flows, tell);
    const picture = new dw.Picture(trial, {
      flow: tell,
      list: (title, ids) => {
        list.limit(title, ids);
        list.element.scrollIntoView({ block: "center" });
        list.scroller.focus({ preventScroll: true });
      },
    });
    const legend = dw.legend(trial);
    document.addEventListener("dw:theme", legend.redraw);
    const root = dw.el(
      "article",
      { class: "trial", "data-trial-id": trial.id },
      marksOf(trial),
      headOf(trial),
      dw.el(
        "div",
        { class: "essence" },
        dw.el(
          "section",
          { class: "says", "aria-label": "What happened" },
          trial.says.map((each) => dw.el("p", {}, each)),
        ),
        hurtOf(trial, picture),
      ),
      picture.element,
      legend.element,
      factsOf(trial),
      trial.flows.length
        ? dw.el("section", { class: "flows" }, dw.el("h2", {}, "Every connection"), list.element)
        : null,
      dw.el(
        "section",
        { class: "events" },
        dw.el("h2", {}, "Every event, in order"),
        dw.eventsTable(trial),
      ),
      footOf(trial),
    );
    element.append(root);
    legend.redraw();
    shown = { picture, legend };
  }

  /** Lets go of what a trial's view listens to. */
  function leave() {
    dw.evidence.hide(false);
    dw.evidence.tipAway();
    if (!shown) return;
    shown.picture.close();
    document.removeEventListener("dw:theme", shown.legend.redraw);
    shown = null;
  }

  dw.trial = {
    show,
    leave,
    /** What a key does here; true where it did something. */
    key: (event) => shown !== null && dw.gestures.key(shown.picture, event),
    /** The picture that is shown, for tests and for those who look behind the page. */
    picture: () => shown?.picture ?? null,
  };
}
