/*
 * The inputs: for each one a field, and a slider where it is a number; both say the same.
 *
 * What there is, and how far it goes, stands in the page's data: `fields`, as
 * render/simulation_page.py writes them.
 */
{
  const NS_PER_S = 1e9;
  const { el } = dw;
  const SECONDS = /^\d+(\.\d{1,9})?$/;
  const WHOLE = /^\d+$/;

  /** As a number field shows it: seconds, exactly. */
  function shown(field, value) {
    return field.kind === "duration" ? dw.simulation.exactSeconds(value) : String(value);
  }

  /** What was typed as an input's value. Throws an Error that says what is accepted. */
  function parsed(field, text) {
    const typed = text.trim();
    if (field.kind === "duration") {
      if (!SECONDS.test(typed)) throw new Error("Expected seconds, such as 10 or 2.5.");
      // At most 15 digits count, so that rounding gives the very nanosecond.
      return within(field, Math.round(Number(typed) * NS_PER_S));
    }
    if (!WHOLE.test(typed)) throw new Error("Expected a whole number.");
    return within(field, Number(typed));
  }

  function within(field, value) {
    if (value >= field.least && value <= field.most) return value;
    const [least, most] = [field.least, field.most].map((each) => shown(field, each));
    throw new Error(`Expected ${least} to ${most}${field.unit ? ` ${field.unit}` : ""}.`);
  }

  /**
   * @param {object} field one of the page's data
   * @param {(name: string, value: unknown) => void} changed
   */
  function numberField(field, changed) {
    const id = `in-${field.name}`;
    const scale = field.kind === "duration" ? NS_PER_S : 1;
    const number = el("input", {
      id,
      type: "text",
      inputmode: "decimal",
      autocomplete: "off",
      spellcheck: "false",
      "aria-describedby": `${id}-why`,
      title: field.about,
    });
    const slider = el("input", {
      type: "range",
      min: 0,
      max: field.slider_most / scale,
      step: field.step / scale,
      "aria-label": `${field.label}, slider`,
    });
    const why = el("p", { class: "why", id: `${id}-why` });
    const tick = field.optional
      ? el("input", { type: "checkbox", "aria-label": `${field.label}: there is one` })
      : null;
    let last = field.usual;

    function wrong(text) {
      why.textContent = text;
      if (text) number.setAttribute("aria-invalid", "true");
      else number.removeAttribute("aria-invalid");
    }
    function put(value) {
      wrong("");
      last = value;
      changed(field.name, value);
    }
    number.addEventListener("input", () => {
      try {
        put(parsed(field, number.value));
        toSlider(last);
      } catch (error) {
        wrong(error.message);
        changed(field.name, undefined);
      }
    });
    slider.addEventListener("input", () => {
      const value = Math.max(field.least, Math.round(Number(slider.value) * scale));
      number.value = shown(field, value);
      saySlider(value);
      put(value);
    });
    tick?.addEventListener("change", () => {
      enable(tick.checked);
      wrong("");
      number.value = shown(field, last);
      changed(field.name, tick.checked ? last : null);
    });
    function enable(there) {
      number.disabled = slider.disabled = !there;
    }
    function toSlider(value) {
      slider.value = String(value / scale);
      saySlider(value);
    }
    function saySlider(value) {
      slider.setAttribute("aria-valuetext", `${shown(field, value)} ${field.spoken}`.trim());
    }

    return {
      element: el(
        "div",
        { class: "field" },
        el("label", { for: id, title: field.about }, field.label),
        el(
          "span",
          { class: "number" },
          tick,
          number,
          el("span", { class: "unit", "aria-hidden": "true" }, field.unit),
        ),
        slider,
        why,
      ),
      set(value) {
        if (value !== null) last = value;
        if (tick) tick.checked = value !== null;
        enable(value !== null);
        number.value = shown(field, last);
        toSlider(last);
        wrong("");
      },
      wrong,
    };
  }

  function choiceField(field, changed) {
    const id = `in-${field.name}`;
    const select = el(
      "select",
      { id, title: field.about },
      field.choices.map(([value, word]) => el("option", { value }, word)),
    );
    select.addEventListener("change", () => changed(field.name, select.value));
    return {
      element: el(
        "div",
        { class: "field choice" },
        el("label", { for: id, title: field.about }, field.label),
        el("span", { class: "number" }, select),
      ),
      set: (value) => {
        select.value = value;
      },
      wrong: () => {},
    };
  }

  function tickField(field, changed) {
    const id = `in-${field.name}`;
    const box = el("input", { id, type: "checkbox" });
    box.addEventListener("change", () => changed(field.name, box.checked));
    return {
      element: el(
        "div",
        { class: "field tick" },
        box,
        el("label", { for: id, title: field.about }, field.label),
      ),
      set: (value) => {
        box.checked = value;
      },
      wrong: () => {},
    };
  }

  const KINDS = {
    duration: numberField,
    whole: numberField,
    choice: choiceField,
    tick: tickField,
  };

  /** All fields: an element, `set(inputs)`, and `wrong(name, text)` for what contradicts. */
  dw.simulation.fields = (fields, changed) => {
    const made = new Map(fields.map((field) => [field.name, KINDS[field.kind](field, changed)]));
    const [rare, usual] = [true, false].map((folded) =>
      fields.filter((field) => Boolean(field.rare) === folded),
    );
    const element = ({ name }) => made.get(name).element;
    const more = el("details", {}, el("summary", {}, "Delays, and what is slow"), rare.map(element));
    return {
      elements: [...usual.map(element), more],
      set(inputs) {
        for (const [name, field] of made) field.set(inputs[name]);
        // What is not as usual must be in sight.
        more.open ||= rare.some(({ name, usual: value }) => inputs[name] !== value);
      },
      wrong(name, text) {
        made.get(name)?.wrong(text);
      },
    };
  };
}
