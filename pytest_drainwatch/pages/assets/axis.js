/*
 * The axis of time, and the lines that go through all lanes.
 */
{
  const HEIGHT_PX = 46;
  const FLAG_Y = 10;
  const TICK_Y = 36;
  const TICK_ROOM_PX = 78;
  // Where a line is less certain than this part of the width, it says "by then".
  const VAGUE_SHARE = 1 / 14;
  // What everything else happens before or after, by the names of the timeline.
  const LINES = [
    ["sigterm_received", "SIGTERM"],
    ["trigger_issued", "trigger"],
    ["container_terminated", "container ended"],
  ];

  /** The lines of a trial: one for each mark of these keys. */
  function linesOf(trial) {
    const marks = trial.lanes.flatMap((lane) => lane.marks);
    return LINES.flatMap(([key, text]) =>
      marks.filter((mark) => mark.key === key).map((mark) => ({ key, text, at: dw.shownAt(mark) })),
    );
  }

  class Axis {
    constructor(trial) {
      this.lines = linesOf(trial);
      this.height = HEIGHT_PX;
      this.under = dw.el("div", { class: "under", "aria-hidden": "true" });
    }

    /** Ticks, numbers, and the lines' names. */
    draw(ink, view) {
      const colours = dw.paint.colours();
      const found = dw.scale.ticks(view.lo, view.hi, Math.max(2, view.width / TICK_ROOM_PX));
      const every = dw.scale.stepOf(found);
      ink.fillStyle = colours.fg;
      for (const us of found) {
        const x = view.x(us);
        ink.fillRect(x - 0.5, HEIGHT_PX - 5, 1, 5);
        const text = dw.scale.label(us, every);
        const width = dw.paint.textWidth(ink, text);
        const left = Math.max(2, Math.min(view.width - width - 2, x - width / 2));
        ink.fillText(text, left, TICK_Y - 4);
      }
      ink.fillStyle = colours.line;
      ink.fillRect(0, HEIGHT_PX - 1, view.width, 1);
      this.drawFlags(ink, view, colours);
    }

    drawFlags(ink, view, colours) {
      ink.font = "600 12px system-ui, sans-serif";
      const visible = this.lines
        .map((line) => {
          const [lo, hi] = line.at.map((us) => view.x(us));
          const vague = hi - lo > view.width * VAGUE_SHARE;
          return { ...line, x: hi, text: vague ? `${line.text} by then` : line.text };
        })
        .filter(({ x }) => x >= -1 && x <= view.width + 1);
      // Where the trigger and SIGTERM are too close to tell apart, SIGTERM is the one to name.
      const wanted = visible.map((line) => {
        const width = ink.measureText(line.text).width + 8;
        const left = Math.max(0, Math.min(view.width - width, line.x - width / 2));
        return { x: left, width };
      });
      const rows = dw.scale.place(wanted, 1, 4);
      visible.forEach((line, n) => {
        if (rows[n] < 0) return;
        const colour = colourOf(line, colours);
        ink.fillStyle = colour;
        ink.fillRect(wanted[n].x, FLAG_Y - 9, wanted[n].width, 17);
        ink.fillRect(line.x - 0.5, FLAG_Y, 1, HEIGHT_PX - FLAG_Y);
        ink.fillStyle = colours.bg;
        ink.fillText(line.text, wanted[n].x + 4, FLAG_Y);
      });
    }

    /** The grid and the lines, behind all lanes. */
    drawUnder(view) {
      const grid = dw.scale
        .ticks(view.lo, view.hi, Math.max(2, view.width / TICK_ROOM_PX))
        .map((us) => ({ kind: "grid", x: view.x(us), wide: 0 }));
      const lines = this.lines.map(({ key, at }) => {
        const [lo, hi] = at.map((us) => view.x(us));
        const vague = hi - lo > view.width * VAGUE_SHARE;
        return { kind: vague ? `${key} vague` : key, x: hi, wide: vague ? 0 : hi - lo };
      });
      const seen = [...grid, ...lines].filter(({ x, wide }) => x >= 0 && x - wide <= view.width);
      while (this.under.children.length < seen.length) this.under.append(dw.el("i", {}));
      [...this.under.children].forEach((element, n) => {
        element.hidden = n >= seen.length;
        if (element.hidden) return;
        const { kind, x, wide } = seen[n];
        const left = Math.max(-2, x - wide);
        element.className = kind;
        element.style.width = `${Math.max(1, x - left)}px`;
        element.style.transform = `translateX(${left}px)`;
      });
    }
  }

  function colourOf(line, colours) {
    return line.key === "sigterm_received" ? colours.accent : colours.muted;
  }

  dw.Axis = Axis;
}
