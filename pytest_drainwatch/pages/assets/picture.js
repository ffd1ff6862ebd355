/*
 * The picture of a trial: an axis of time, and below it a lane for each party.
 */
{
  const ORDER = ["api", "endpoints", "kubelet", "app", "tcp", "udp", "new", "http", "instrument"];
  const FIRST_SECOND = [-100_000, 1_100_000];
  // Lanes that have flows or attempts, and no event of their own.
  const OWN_NAMES = {
    tcp: ["TCP connections", "Connections that were open before, and were held open."],
    udp: ["UDP flows", "Datagrams sent steadily from one port, and their answers."],
    new: ["New connections", "A new connection is tried every few milliseconds."],
    http: ["Requests", "Requests, and what each of them met."],
  };

  /** A party's row: its name, and beside it one drawing or several below each other. */
  class Strip {
    constructor(id, name, label) {
      this.name = name;
      this.column = dw.el("div", { class: "plots" });
      this.element = dw.el(
        "div",
        { class: "strip", "data-lane": id, role: "group", "aria-label": label },
        name,
        this.column,
      );
      this.parts = [];
    }

    /** A drawing of its own; `kind` is events, flows, attempts or axis. */
    add(kind, content) {
      const canvas = dw.paint.canvas(content.height);
      const plot = dw.el("div", { class: "plot", "data-part": kind }, canvas.element);
      plot.style.height = `${content.height}px`;
      const part = {
        content,
        plot,
        visible: true,
        draw: (view) => content.draw(canvas.begin(view.width), view),
      };
      this.parts.push(part);
      this.column.append(plot);
      return part;
    }
  }

  function nameOf(title, about) {
    return dw.el(
      "div",
      { class: "name" },
      title ? dw.el("h3", {}, title) : null,
      about ? dw.el("p", { class: "about" }, about) : null,
    );
  }

  /** How the flows of a lane ended, counted, each with its colour and its sign. */
  function fatesOf(flows) {
    return dw.el(
      "ul",
      { class: "fates" },
      dw.ends
        .tally(flows)
        .map((fate) =>
          dw.el(
            "li",
            { class: `tone-${fate.tone}` },
            dw.el("span", { class: "swatch", "aria-hidden": "true" }),
            `${dw.say.count(fate.count)} of ${dw.say.count(flows.length)} ${dw.ends.words(fate)}`,
          ),
        ),
    );
  }

  class Picture {
    /**
     * @param trial data.Trial
     * @param {{flow: Function, list: Function}} opens what is done with a flow that is clicked,
     *     and with those of a layer of a stack
     */
    constructor(trial, opens) {
      this.trial = trial;
      this.opens = opens;
      this.view = new dw.View(trial.span, trial.recorded);
      this.axis = new dw.Axis(trial);
      this.strips = [];
      this.top = new Strip("axis", nameOf("", "Time since the trigger"), "Time");
      const { plot } = this.top.add("axis", this.axis);
      this.plot = plot;
      this.cursor = dw.el("div", { class: "cursor", hidden: true }, dw.el("span", {}));
      this.lanes = dw.el("div", { class: "lanes" }, this.axis.under, this.top.element);
      for (const id of ORDER) this.addLane(id);
      this.lanes.append(this.cursor);
      this.element = dw.el(
        "section",
        { class: "picture", "aria-label": "The picture" },
        dw.toolbar(this.view, { first: FIRST_SECOND }),
        this.lanes,
      );
      this.view.onChange(() => this.draw());
      dw.gestures(this);
      this.redrawn = () => this.draw();
      document.addEventListener("dw:theme", this.redrawn);
      this.observer = new ResizeObserver(() => this.view.resize(this.plot.clientWidth));
      this.observer.observe(this.plot);
      this.watchVisible();
    }

    get parts() {
      return this.strips.flatMap((strip) => strip.parts);
    }

    /** Drawings out of sight are made when they come into it. */
    watchVisible() {
      const parts = new Map(this.parts.map((part) => [part.plot, part]));
      this.seen = new IntersectionObserver(
        (entries) => {
          for (const entry of entries) {
            const part = parts.get(entry.target);
            part.visible = entry.isIntersecting;
            if (part.visible && this.view.width > 1) part.draw(this.view);
          }
        },
        { rootMargin: "200px" },
      );
      for (const plot of parts.keys()) this.seen.observe(plot);
    }

    /** All that is known of a party: what it said, its flows, what was tried of it. */
    addLane(id) {
      const lane = this.trial.lanes.find((each) => each.id === id);
      const flows = this.trial.flows.filter((flow) => flow.proto === id);
      const attempts = this.trial.attempts.filter((each) => each.lane === id);
      if (!lane && !flows.length && !attempts.length) return;
      const [title, about] = lane ? [lane.name, lane.about] : OWN_NAMES[id];
      const strip = new Strip(id, nameOf(title, about), title);
      if (lane) this.addEvents(strip, lane);
      if (flows.length) this.addFlows(strip, flows, title);
      for (const each of attempts) this.addAttempts(strip, each, attempts.length > 1);
      this.strips.push(strip);
      this.lanes.append(strip.element);
    }

    addEvents(strip, lane) {
      const content = new dw.EventLane(lane, this.trial);
      strip.add("events", content).plot.append(...content.buttons(this));
    }

    addFlows(strip, flows, title) {
      const many = flows.length > dw.flows.MOST_LINES;
      const content = many ? new dw.FlowStack(flows) : new dw.flows.FlowLines(flows);
      strip.name.append(fatesOf(flows));
      dw.flowStrip(strip, strip.add("flows", content), this, { title, flows, many });
    }

    addAttempts(strip, attempts, named) {
      const content = new dw.AttemptsLane(attempts, named);
      const entry = content.entry();
      const open = dw.el(
        "button",
        { type: "button", class: "more", "data-key": attempts.name },
        `${attempts.name}: ${attempts.rate}`,
      );
      this.explains(open, 0, [entry]);
      strip.name.append(open);
      const { plot } = strip.add("attempts", content);
      plot.addEventListener("pointermove", (event) => {
        const slack = (this.view.hi - this.view.lo) / this.view.width;
        dw.evidence.tip(event, content.at(this.instantOf(event), slack));
      });
      plot.addEventListener("pointerleave", dw.evidence.tipAway);
      plot.addEventListener("click", () => dw.evidence.show(0, [entry], open));
    }

    /** Makes a button tell what it stands for: in passing when pointed at, at length when used. */
    explains(button, n, among) {
      const entry = among[n];
      button.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "mouse") dw.evidence.tip(event, dw.evidence.brief(entry));
      });
      button.addEventListener("pointerleave", dw.evidence.tipAway);
      button.addEventListener("focus", () => {
        if (!button.matches(":focus-visible")) return;
        if (entry.at) this.view.reveal(entry.at);
        // In the frame after the next one it stands where it will be.
        requestAnimationFrame(() => requestAnimationFrame(() => this.tipBeside(button, entry)));
      });
      button.addEventListener("blur", dw.evidence.tipAway);
      button.addEventListener("click", () => {
        dw.evidence.tipAway();
        dw.evidence.show(n, among, button, {
          moved: (other) => other.at && this.view.reveal(other.at),
          zoom: (other) => this.view.show(other.at),
        });
      });
    }

    /** The small box for those who come with the keyboard. */
    tipBeside(button, entry) {
      if (document.activeElement !== button) return;
      const { left, right, bottom } = button.getBoundingClientRect();
      const at = { clientX: Math.min(right, left + 60), clientY: bottom - 8 };
      dw.evidence.tip(at, dw.evidence.brief(entry));
    }

    /** The pixel of the pointer, from the left edge of the drawings. */
    pixelOf(event) {
      return event.clientX - this.plot.getBoundingClientRect().left;
    }

    instantOf(event) {
      return this.view.at(this.pixelOf(event));
    }

    draw() {
      if (this.view.width <= 1) return;
      this.axis.drawUnder(this.view);
      for (const part of [...this.top.parts, ...this.parts]) {
        if (part.visible) part.draw(this.view);
      }
      this.lanes.dataset.shown = `${Math.round(this.view.lo)} ${Math.round(this.view.hi)}`;
    }

    /** The line under the pointer, with its time. */
    point(event) {
      const { view, cursor } = this;
      const x = this.pixelOf(event);
      cursor.hidden = x < 0 || x > view.width;
      if (cursor.hidden) return;
      const step = dw.scale.step((view.hi - view.lo) / view.width);
      const left = event.clientX - this.lanes.getBoundingClientRect().left;
      cursor.style.transform = `translateX(${left}px)`;
      cursor.classList.toggle("left", x > view.width - 90);
      const us = Math.round(view.at(x) / step) * step;
      cursor.firstChild.textContent = dw.scale.label(us, step);
    }

    /** Goes to a band by its id, and lets it be seen. */
    showBand(id) {
      for (const { bands } of this.trial.lanes) {
        const band = bands.find((each) => each.id === id);
        if (!band) continue;
        const lo = band.opens ? band.opens[0] : this.trial.recorded[0];
        const hi = band.closes ? band.closes[1] : this.trial.recorded[1];
        this.view.show([lo, hi]);
        return this.lanes.querySelector(`.target[data-key="${CSS.escape(id)}"]`);
      }
      return null;
    }

    close() {
      this.view.stop();
      this.observer.disconnect();
      this.seen.disconnect();
      document.removeEventListener("dw:theme", this.redrawn);
    }
  }

  dw.Picture = Picture;
}
