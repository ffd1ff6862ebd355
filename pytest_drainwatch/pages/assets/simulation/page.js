/*
 * The simulator's page: inputs, what follows from them, and the evidence to keep.
 */
{
  const { el } = dw;
  const NOT_SAID_MS = 500; // a slider that is dragged says only where it came to rest
  const FILE = "drainwatch-simulated.json";
  const page = dw.simulation.page;

  let inputs = { ...page.inputs };
  let wrong = new Set();
  let told = null; // the document of the inputs shown
  let saying = 0;

  const fields = dw.simulation.fields(page.fields, changed);
  const verdict = el("section", { class: "verdict", "aria-label": "Outcome" });
  const status = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
  const timeline = dw.simulation.timeline();
  const trace = dw.simulation.trace((at) => timeline.seen(at));
  const numbers = el("table", { class: "numbers" });
  const command = el("code", { tabindex: "0" });
  const copied = el("p", { role: "status" });
  const about = el("p", { class: "preset-about" });
  const presets = page.presets.map((preset) =>
    el("button", { type: "button", on: { click: () => take(preset.inputs) } }, preset.label),
  );

  function changed(name, value) {
    if (value === undefined) wrong.add(name);
    else {
      wrong.delete(name);
      inputs = { ...inputs, [name]: value };
    }
    show();
  }

  function take(found) {
    inputs = { ...found };
    wrong = new Set();
    fields.set(inputs);
    show();
  }

  function same(one, other) {
    return Object.keys(one).every((name) => one[name] === other[name]);
  }

  function show() {
    if (wrong.size) return stale("an input cannot be read");
    try {
      dw.simulation.check(inputs);
      told = dw.simulation.document(dw.simulation.simulate(inputs));
    } catch (error) {
      if (!(error instanceof dw.simulation.InputError)) throw error;
      return stale(error.message);
    }
    const [headline, ...reasons] = told.says;
    const { failed, total } = told.requests;
    const tone = failed ? "bad" : total ? "good" : "neutral";
    const { glyph } = dw.say.tone(tone);
    verdict.className = `verdict tone-${tone}`;
    verdict.replaceChildren(
      el("h2", {}, el("span", { class: "glyph", "aria-hidden": "true" }, glyph), headline),
      el(
        "ul",
        {},
        reasons.map((reason) => el("li", {}, reason)),
      ),
    );
    timeline.draw(dw.simulation.view(told));
    trace.set(told.steps);
    dw.simulation.numbers(numbers, told);
    command.textContent = dw.simulation.command(inputs);
    copied.textContent = "";
    const chosen = page.presets.findIndex((preset) => same(inputs, preset.inputs));
    presets.forEach((button, n) => button.setAttribute("aria-pressed", String(n === chosen)));
    about.textContent = chosen < 0 ? "Inputs of your own." : page.presets[chosen].about;
    document.body.dataset.stale = "false";
    exporting.disabled = false;
    say([headline, ...reasons].join(" "));
  }

  /** What is shown is of inputs that are no longer there: it says so, and cannot be exported. */
  function stale(why) {
    document.body.dataset.stale = "true";
    exporting.disabled = true;
    verdict.className = "verdict tone-unknown";
    const text = `Not simulated: ${why}`;
    verdict.replaceChildren(
      el("h2", {}, text),
      el("p", {}, "Below is still the last run that could be simulated."),
    );
    command.textContent = "";
    say(text);
  }

  function say(text) {
    clearTimeout(saying);
    saying = setTimeout(() => {
      status.textContent = text;
    }, NOT_SAID_MS);
  }

  /** The very bytes of `drainwatch simulate --json`. */
  dw.simulation.exported = () => `${JSON.stringify(told, null, 2)}\n`;

  function save() {
    const url = URL.createObjectURL(
      new Blob([dw.simulation.exported()], { type: "application/json" }),
    );
    el("a", { href: url, download: FILE }).click();
    setTimeout(() => URL.revokeObjectURL(url), 0);
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(command.textContent);
      copied.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(command);
      copied.textContent = "The browser does not let a page copy: it is selected now.";
    }
  }

  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function nameTheme() {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  }

  const theme = el("button", { type: "button" });
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  nameTheme();

  const exporting = el("button", { type: "button", on: { click: save } }, "Export JSON");
  const main = el(
    "main",
    { class: "sim", id: "main" },
    el("h1", {}, page.title),
    el("p", { class: "lead" }, page.lead),
    el("div", { class: "presets", role: "group", "aria-label": "Presets" }, presets),
    about,
    verdict,
    status,
    el(
      "div",
      { class: "sim-grid" },
      el(
        "section",
        { "aria-labelledby": "timeline-title" },
        el("h2", { id: "timeline-title" }, "Timeline"),
        timeline.elements,
        dw.simulation.legend(),
      ),
      el(
        "section",
        { class: "sim-inputs", "aria-labelledby": "inputs-title" },
        el(
          "div",
          { class: "head" },
          el("h2", { id: "inputs-title" }, "Inputs"),
          el("button", { type: "button", on: { click: () => take(page.usual) } }, "Reset"),
        ),
        fields.elements,
        el(
          "div",
          { class: "command" },
          el("p", {}, "The same in a terminal:"),
          command,
          el("button", { type: "button", on: { click: copy } }, "Copy"),
          el("span", { class: "export" }, exporting),
          copied,
        ),
      ),
      el(
        "div",
        { class: "sim-more" },
        el(
          "section",
          { "aria-labelledby": "numbers-title" },
          el("h2", { id: "numbers-title" }, "Requests of the whole run"),
          el("div", { class: "scroll", tabindex: "0", "aria-labelledby": "numbers-title" }, numbers),
        ),
        trace.element,
      ),
    ),
    el(
      "section",
      { class: "limits", "aria-labelledby": "limits-title" },
      el("h2", { id: "limits-title" }, "What this does not model"),
      el(
        "ul",
        {},
        page.limits.map((limit) => el("li", {}, limit)),
      ),
    ),
  );

  document.body.append(
    el(
      "header",
      { class: "top" },
      el("span", { class: "maker" }, "drainwatch"),
      el("strong", { class: "simulated" }, "Simulated"),
      el("span", {}, page.marked),
      el("span", { class: "tools" }, theme),
    ),
    main,
    el("footer", { class: "bottom" }, `Made by ${page.made_by}. ${page.marked}`),
  );
  fields.set(inputs);
  show();
}
