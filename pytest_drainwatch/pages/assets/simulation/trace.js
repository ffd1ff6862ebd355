/*
 * The trace: what happens, step by step, as much of it as the reader wants to see.
 */
{
  const { el } = dw;
  // What hurts; all else has no judgement in it.
  const TONES = {
    fails: "bad",
    sigkill: "bad",
    "drain-deadline": "bad",
    retried: "warn",
    "hook-cut": "warn",
    "route-ends-late": "warn",
  };

  /**
   * @param {(at: number | null) => void} moved told of the instant up to which is shown;
   *   null: all of it
   */
  dw.simulation.trace = (moved) => {
    let steps = [];
    let shown = 0;
    const list = el("ol", { class: "steps-list", "aria-label": "Trace" });
    const slider = el("input", { type: "range", min: 0, step: 1, value: 0 });
    const count = el("output", { role: "status" });
    const button = (text, act) => el("button", { type: "button", on: { click: act } }, text);
    const start = button("Start trace", () => show(Math.min(1, steps.length)));
    const next = button("Next step", () => show(shown + 1));
    const all = button("Show all", () => show(steps.length));
    slider.addEventListener("input", () => show(Number(slider.value)));

    function item(step, newest) {
      return el(
        "li",
        { class: `tone-${TONES[step.kind] ?? "neutral"}${newest ? " newest" : ""}` },
        el("span", { class: "at" }, dw.simulation.instant(step.at_ns)),
        el("span", {}, step.text),
      );
    }

    function show(many) {
      shown = Math.max(0, Math.min(steps.length, many));
      slider.value = String(shown);
      slider.setAttribute("aria-valuetext", `step ${shown} of ${steps.length}`);
      count.textContent = `${shown} of ${steps.length}`;
      // Not `disabled`: that would take the focus away from whoever just pressed it.
      for (const each of [next, all]) {
        each.setAttribute("aria-disabled", String(shown === steps.length));
      }
      const part = shown > 0 && shown < steps.length;
      list.replaceChildren(
        ...steps.slice(0, shown).map((step, n) => item(step, part && n === shown - 1)),
      );
      if (shown === 0) {
        list.append(el("li", { class: "nothing" }, "Nothing shown yet: Start trace, or Show all."));
      }
      moved(part ? steps[shown - 1].at_ns : null);
    }

    return {
      element: el(
        "section",
        { class: "trace", "aria-labelledby": "trace-title" },
        el("h2", { id: "trace-title" }, "Trace"),
        el(
          "div",
          { class: "trace-tools" },
          start,
          next,
          all,
          el("label", {}, "Steps shown", slider),
          count,
        ),
        list,
      ),
      /** Other steps: as many of them stay shown, or all if all were. */
      set(found) {
        const whole = shown === steps.length;
        steps = found;
        slider.max = String(steps.length);
        show(whole ? steps.length : shown);
      },
    };
  };
}
