/*
 * The page: its header, its routes, its keys and its theme.
 */
{
  const TRIAL = /^#\/trial\/(.+)$/;
  const SCENARIO = /^#\/scenario\/(.+)$/;
  const MAKER = "drainwatch";
  const KEYS = [
    ["← →", "move through time"],
    ["+ −", "zoom in, zoom out"],
    ["0", "from the trigger to the end"],
    ["Tab", "through lanes, events and windows"],
    ["Enter", "the evidence behind an event, the story of a connection"],
    ["↑ ↓", "in a lane of connections: choose one"],
    ["Esc", "close what was opened"],
    ["p n", "previous trial, next trial"],
    ["r", "the whole run"],
    ["d", "dark or light"],
    ["?", "these keys"],
  ];

  const page = dw.page();
  const main = dw.el("main", { id: "main" });
  const around = dw.el("nav", { class: "around", "aria-label": "Trials" });
  const theme = dw.el("button", { type: "button", class: "theme" });
  const help = dw.el("button", { type: "button", class: "keys-help", "aria-label": "Keys" }, "?");
  const keys = dw.el(
    "dialog",
    { class: "keys", "aria-label": "Keys" },
    dw.el("h2", {}, "Keys"),
    dw.pairs(KEYS),
    dw.el("form", { method: "dialog" }, dw.el("button", {}, "Close")),
  );

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text; // typed by hand: then there is no such trial
    }
  }

  function current() {
    const trial = TRIAL.exec(location.hash);
    if (trial) return decoded(trial[1]);
    // A page of one trial has nothing else to show.
    return page.run === null && page.trials.length === 1 ? page.trials[0].id : null;
  }

  function link(trial, text, rel) {
    return trial
      ? dw.el("a", { href: dw.link(trial.id), rel, title: trial.id }, text)
      : dw.el("span", { class: "off", "aria-hidden": "true" }, text);
  }

  function writeAround(id) {
    around.replaceChildren();
    if (page.trials.length < 2) return;
    const n = page.trials.findIndex((trial) => trial.id === id);
    if (id === null) return;
    around.append(dw.el("a", { href: "#/", rel: "up" }, page.title));
    if (n < 0) return;
    around.append(
      link(page.trials[n - 1], "\u2190 previous", "prev"),
      dw.el("span", {}, `${n + 1} of ${page.trials.length}`),
      link(page.trials[n + 1], "next \u2192", "next"),
    );
  }

  /** Pages of single trials that were laid beside each other: a list of them. */
  function showList() {
    main.append(
      dw.el("h1", { tabindex: "-1" }, page.title),
      dw.el(
        "ul",
        { class: "trial-list" },
        page.trials.map((trial) =>
          dw.el(
            "li",
            {},
            dw.el("a", { href: dw.link(trial.id) }, trial.id),
            dw.el("p", {}, trial.says[0] ?? trial.asked),
          ),
        ),
      ),
    );
  }

  function route(moved) {
    const id = current();
    dw.trial.leave();
    main.replaceChildren();
    writeAround(id);
    document.title = id === null ? page.title : `${id} · ${page.title}`;
    if (id !== null) {
      dw.trial.show(page, main, id);
    } else if (page.run) {
      const scenario = SCENARIO.exec(location.hash);
      dw.run.show(page, main, scenario ? decoded(scenario[1]) : null);
    } else {
      showList();
    }
    // A view that went to a part of itself has put the focus there.
    if (!moved || main.contains(document.activeElement)) return;
    scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  }

  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function nameTheme() {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  }

  function toggleTheme() {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
    dw.paint.themeChanged();
  }

  function goTo(rel) {
    const anchor = around.querySelector(`a[rel="${rel}"]`);
    if (anchor) location.hash = anchor.hash;
  }

  const ACTS = {
    Escape: () => dw.evidence.hide(true),
    "?": () => keys.showModal(),
    p: () => goTo("prev"),
    n: () => goTo("next"),
    r: () => goTo("up"),
    d: toggleTheme,
  };

  function pressed(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || keys.open)
      return;
    if (event.target.closest("input, select, textarea") && event.key !== "Escape") return;
    const act = Object.hasOwn(ACTS, event.key) ? ACTS[event.key] : null;
    // Escape with nothing open is the browser's: it clears a search field.
    const done = act ? act() !== false : dw.trial.key(event);
    if (done) event.preventDefault();
  }

  theme.addEventListener("click", toggleTheme);
  help.addEventListener("click", () => keys.showModal());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    nameTheme();
    dw.paint.themeChanged();
  });
  // Paper is white, whatever the screen is.
  matchMedia("print").addEventListener("change", () => dw.paint.themeChanged());
  addEventListener("hashchange", () => route(true));
  document.addEventListener("keydown", pressed);

  nameTheme();
  document.body.append(
    dw.el(
      "header",
      { class: "top" },
      dw.el("span", { class: "maker" }, MAKER),
      around,
      dw.el("span", { class: "tools" }, theme, help),
    ),
    main,
    dw.el("footer", { class: "bottom" }, `Made by ${page.made_by}`),
    keys,
  );
  route(false);
}
