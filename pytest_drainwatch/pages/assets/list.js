/*
 * The flows as a list that can be searched. Of thousands only those in sight are in the document.
 */
{
  const ROW_PX = 30;
  const ROOM_ROWS = 14;
  const BEYOND_ROWS = 6;
  const ALL = "";

  /** What can be chosen of the flows, with how many there are. */
  function choices(flows) {
    const found = new Map();
    for (const flow of flows) {
      const name = `${dw.say.proto(flow.proto)} ${dw.ends.words(flow)}`;
      found.set(name, (found.get(name) ?? 0) + 1);
    }
    return [...found].sort((a, b) => b[1] - a[1]);
  }

  // Who was hurt stands first: nobody scrolls through thousands that were served.
  const WORST_FIRST = { bad: 0, warn: 2, unknown: 4, neutral: 6, good: 8 };

  function rank(flow) {
    return WORST_FIRST[flow.tone] + (flow.proto === "tcp" ? 0 : 1);
  }

  class FlowList {
    /**
     * @param flows data.Flow[]
     * @param {Function} open what is done with a flow that is clicked
     */
    constructor(flows, open) {
      this.flows = dw.flows.inOrder(flows).sort((a, b) => rank(a) - rank(b));
      this.open = open;
      this.only = null;
      this.virtual = flows.length > dw.flows.MOST_LINES;
      this.text = dw.el("input", {
        type: "search",
        placeholder: "id, word of its story",
        "aria-label": "Search flows",
      });
      this.choice = dw.el(
        "select",
        { "aria-label": "Only flows that ended so" },
        dw.el("option", { value: ALL }, `all ${dw.say.count(flows.length)}`),
        choices(flows).map(([name, many]) =>
          dw.el("option", { value: name }, `${name} (${dw.say.count(many)})`),
        ),
      );
      this.count = dw.el("span", { class: "count", role: "status" });
      this.drilled = dw.el("button", {
        type: "button",
        hidden: true,
        on: { click: () => this.limit(null, null) },
      });
      this.body = dw.el("div", { role: "rowgroup", class: "rows" });
      this.scroller = dw.el(
        "div",
        { class: "flow-rows", tabindex: "0", role: "region", "aria-label": "Flows" },
        this.body,
      );
      const heads = ["Flow", "How it ended", "When", "Its story"];
      this.grid = dw.el(
        "div",
        {
          role: "table",
          class: `flow-list${this.virtual ? " virtual" : ""}`,
          "aria-label": "Flows",
          "aria-colcount": heads.length,
        },
        dw.el(
          "div",
          { role: "rowgroup" },
          dw.el(
            "div",
            { role: "row", class: "flow-head" },
            heads.map((head) => dw.el("span", { role: "columnheader" }, head)),
          ),
        ),
        this.scroller,
      );
      this.element = dw.el(
        "div",
        { class: "flow-table" },
        dw.el(
          "div",
          { class: "flow-filter", role: "search" },
          this.text,
          this.choice,
          this.drilled,
          this.count,
        ),
        this.grid,
      );
      this.text.addEventListener("input", () => this.filter());
      this.choice.addEventListener("change", () => this.filter());
      if (this.virtual) this.scroller.addEventListener("scroll", () => this.fill());
      this.filter();
    }

    /** Shows only flows of these ids; null: all again. */
    limit(title, ids) {
      this.only = ids;
      this.drilled.hidden = !ids;
      this.drilled.textContent = title ? `${title} \u2715` : "";
      this.filter();
    }

    filter() {
      const text = this.text.value.trim().toLowerCase();
      const choice = this.choice.value;
      this.shown = this.flows.filter(
        (flow) =>
          (!this.only || this.only.has(flow.id)) &&
          (choice === ALL || `${dw.say.proto(flow.proto)} ${dw.ends.words(flow)}` === choice) &&
          (!text ||
            flow.id.toLowerCase().includes(text) ||
            flow.story.toLowerCase().includes(text)),
      );
      this.count.textContent = `${dw.say.count(this.shown.length)} of ${dw.say.plural(this.flows.length, "flow")}`;
      this.grid.setAttribute("aria-rowcount", this.shown.length + 1);
      this.scroller.scrollTop = 0;
      if (this.virtual) {
        this.body.style.height = `${this.shown.length * ROW_PX}px`;
        this.scroller.style.height = `${Math.min(ROOM_ROWS, Math.max(1, this.shown.length)) * ROW_PX}px`;
        this.first = -1;
      }
      this.fill();
    }

    fill() {
      if (!this.virtual) {
        this.body.replaceChildren(...this.shown.map((flow, n) => this.row(flow, n)));
        return;
      }
      const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_PX) - BEYOND_ROWS);
      if (first === this.first) return;
      this.first = first;
      const last = first + ROOM_ROWS + 2 * BEYOND_ROWS;
      this.body.replaceChildren(
        ...this.shown.slice(first, last).map((flow, n) => {
          const row = this.row(flow, first + n);
          row.style.transform = `translateY(${(first + n) * ROW_PX}px)`;
          return row;
        }),
      );
    }

    row(flow, n) {
      const button = dw.el("button", { type: "button", "data-flow": flow.id }, flow.id);
      button.addEventListener("click", () => this.open(flow, this.shown, button));
      return dw.el(
        "div",
        { role: "row", class: `flow-row tone-${flow.tone}`, "aria-rowindex": n + 2 },
        dw.el("span", { role: "cell" }, button),
        dw.el(
          "span",
          { role: "cell", class: "fate" },
          `${dw.say.tone(flow.tone).glyph} ${dw.ends.words(flow)}`,
        ),
        dw.el("span", { role: "cell" }, flow.end ? dw.say.instant(flow.end) : "\u2013"),
        dw.el("span", { role: "cell", class: "story" }, flow.story),
      );
    }
  }

  dw.FlowList = FlowList;
}
