// All scenarios at a glance: a row for each, how its connections ended, what hurt most.
{
  /** How long a trial's worst window lasted at most, in microseconds; 0 if it is no window. */
  function lasted(trial) {
    const bands = trial.lanes.flatMap((lane) => lane.bands);
    const band = bands.find((each) => each.id === trial.hurt.band);
    if (!band) return 0;
    const [from] = band.opens ?? trial.recorded;
    const [, to] = band.closes ?? trial.recorded;
    return to - from;
  }

  /** The trial whose worst window lasted longest; null if none hurt. */
  function worst(trials) {
    const hurt = trials.filter((trial) => trial.hurt !== null);
    return hurt.length ? hurt.reduce((a, b) => (lasted(b) > lasted(a) ? b : a)) : null;
  }

  function worstCell(trials) {
    const trial = worst(trials);
    if (trial === null) return trials.length ? dw.scenarios.NO_HARM : "";
    const name = trials.length > 1 ? `in ${dw.scenarios.nameOf(trial)}` : "see it";
    return dw.el("span", {}, `${trial.hurt.text} `, dw.el("a", { href: dw.link(trial.id) }, name));
  }

  function firstCell(scenario, trials) {
    const tests = dw.filter.tested(trials);
    return dw.el(
      "th",
      { scope: "row" },
      dw.el("a", { href: `#/scenario/${encodeURIComponent(scenario.id)}` }, scenario.id),
      dw.el("span", { class: "muted" }, dw.say.plural(trials.length, "trial"), tests && `: ${tests}`),
    );
  }

  const NEW = "new connections";
  const HELD = { tcp: "TCP connections held", udp: "UDP flows held" };
  const OTHERS = "bystander "; // before the protocol of connections to pods that stay

  /** One cell for all connections to pods that stay: they must survive, whatever they are. */
  function othersCell(scenario) {
    const bars = Object.keys(HELD).flatMap((proto) => {
      const fates = dw.fates.of(scenario.fates, OTHERS + proto);
      return fates.length ? [dw.el("span", { class: "muted" }, dw.say.proto(proto)), dw.fates.bar(fates)] : [];
    });
    return bars.length ? bars : dw.el("span", { class: "muted" }, "none held");
  }

  /** Heading and content of each column; what nobody used has none. */
  function columns(scenarios) {
    const there = new Set(scenarios.flatMap((scenario) => scenario.fates.map((fate) => fate.proto)));
    const held = Object.keys(HELD).filter((proto) => there.has(proto));
    const others = [...there].some((proto) => proto.startsWith(OTHERS));
    const requests = scenarios.some((scenario) => scenario.new.includes("HTTP"));
    return [
      ...held.map((proto) => [HELD[proto], (scenario) => dw.fates.bar(dw.fates.of(scenario.fates, proto))]),
      ...(others ? [["held to pods that stay", othersCell]] : []),
      [requests ? `${NEW}, requests` : NEW, (scenario) => scenario.new.replace(`${NEW}: `, "")],
      ["what hurt most", (scenario, trials) => worstCell(trials)],
    ];
  }

  /** The table; `trialsOf` gives the trials of a scenario. */
  function table(scenarios, trialsOf) {
    const all = columns(scenarios);
    const heads = ["scenario", ...all.map(([name]) => name)];
    const rows = scenarios.map((scenario) => {
      const trials = trialsOf(scenario);
      const cells = all.map(([name, content]) => dw.el("td", { "data-label": name }, content(scenario, trials)));
      return dw.el("tr", { "data-scenario": scenario.id }, firstCell(scenario, trials), ...cells);
    });
    return dw.el(
      "table",
      { class: "wide overview" },
      dw.el("caption", {}, "Each scenario, all its repeats together"),
      dw.el("thead", {}, dw.el("tr", {}, ...heads.map((each) => dw.el("th", { scope: "col" }, each)))),
      dw.el("tbody", {}, ...rows),
    );
  }

  dw.overview = { table, worst };
}
