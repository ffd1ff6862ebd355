// Which trials the reader wants to see: by scenario, by the test's outcome, by how a connection ended.
{
  /** Kept, so that coming back from a trial finds the run as it was left. */
  const asked = { scenario: "", tests: null, ended: "" };

  const distinct = (values) => [...new Set(values)].sort();
  const testOf = (trial) => (trial.outcome === null ? "not known" : trial.outcome);

  /** How many trials' tests ended in which way: `[["failed", 1], ["passed", 24]]`. */
  function tally(trials) {
    return distinct(trials.map(testOf)).map((outcome) => [
      outcome,
      trials.filter((trial) => testOf(trial) === outcome).length,
    ]);
  }

  /** The same in words, such as "24 passed, 1 failed"; empty where no test's outcome is known. */
  function tested(trials) {
    if (trials.every((trial) => trial.outcome === null)) return "";
    return tally(trials)
      .map(([outcome, count]) => `${dw.say.count(count)} ${outcome}`)
      .join(", ");
  }

  /** Whether a trial is one that the reader asked to see. */
  function wanted(trial) {
    const name = trial.scenario.toLowerCase();
    const words = asked.scenario.toLowerCase().split(/\s+/);
    return (
      words.every((word) => name.includes(word)) &&
      (asked.tests === null || asked.tests.has(testOf(trial))) &&
      (asked.ended === "" || trial.flows.some((flow) => flow.outcome === asked.ended))
    );
  }

  /** The form. `changed` is called after each change; `say` puts a sentence beside it. */
  function form(trials, changed) {
    const count = dw.el("output", { class: "filter-count", "aria-live": "polite" });
    const clear = dw.el("button", { type: "button", class: "filter-clear" }, "show all");
    const made = dw.el(
      "form",
      { class: "filter", role: "search", "aria-label": "Filter trials" },
      scenarioField(changed),
      testField(trials, changed),
      endedField(trials, changed),
      clear,
      count,
    );
    made.addEventListener("submit", (event) => event.preventDefault());
    clear.addEventListener("click", () => {
      Object.assign(asked, { scenario: "", tests: null, ended: "" });
      for (const box of made.querySelectorAll("input[type=checkbox]")) box.checked = true;
      for (const field of made.querySelectorAll("input[type=search], select")) field.value = "";
      changed();
    });
    const say = (text) => {
      count.textContent = text;
      clear.disabled = asked.scenario === "" && asked.tests === null && asked.ended === "";
    };
    return { form: made, say };
  }

  function scenarioField(changed) {
    const text = dw.el("input", { type: "search", name: "scenario", placeholder: "a part of its name" });
    text.value = asked.scenario;
    text.addEventListener("input", () => {
      asked.scenario = text.value.trim();
      changed();
    });
    return dw.el("label", {}, "Scenario ", text);
  }

  function testField(trials, changed) {
    if (!tested(trials)) return null;
    const outcomes = tally(trials);
    const boxes = outcomes.map(([outcome, count]) => {
      const box = dw.el("input", { type: "checkbox", name: "test", value: outcome });
      box.checked = asked.tests === null || asked.tests.has(outcome);
      return dw.el("label", {}, box, ` ${outcome} (${dw.say.count(count)})`);
    });
    const field = dw.el("fieldset", {}, dw.el("legend", {}, "Its test"), ...boxes);
    field.addEventListener("change", () => {
      const checked = [...field.querySelectorAll("input:checked")].map((box) => box.value);
      asked.tests = checked.length === outcomes.length ? null : new Set(checked);
      changed();
    });
    return field;
  }

  function endedField(trials, changed) {
    const outcomes = distinct(trials.flatMap((trial) => trial.flows.map((flow) => flow.outcome)));
    const options = [["", "any"], ...outcomes.map((each) => [each, dw.say.outcome(each)])];
    const choice = dw.el(
      "select",
      { name: "ended" },
      ...options.map(([value, name]) => dw.el("option", { value }, name)),
    );
    choice.value = asked.ended;
    choice.addEventListener("change", () => {
      asked.ended = choice.value;
      changed();
    });
    return dw.el("label", {}, "With a connection ", choice);
  }

  dw.filter = { form, wanted, tested };
}
