/*
 * A lane of marks and bands: what one party said and did, each as wide as it is uncertain.
 *
 * The line of a mark stands where it was seen, which is the latest that it can have been; the box
 * reaches back to the earliest.
 *
 * The canvas carries the ink. Over each mark and band lies a button, which carries hovering,
 * tapping, the keyboard and the words for those who don't see the canvas.
 */
{
  const BAND_PX = 18;
  const BAND_GAP_PX = 3;
  const MARK_PX = 14;
  const LABEL_PX = 15;
  const MOST_LABEL_ROWS = 5;
  const PAD_PX = 5;
  const LEAST_HIT_PX = 16;
  const TAIL_PX = 26; // of a mark of which only the latest instant is known
  const BOX_SHARE = 1 / 14; // of the width: what is wider is drawn as a line, it says little
  const ALPHA = { good: 0.22, warn: 0.3, bad: 0.42, neutral: 0.2, unknown: 0.16 };

  class EventLane {
    /**
     * @param lane data.Lane
     * @param trial data.Trial
     */
    constructor(lane, trial) {
      this.lane = lane;
      this.marks = [...lane.marks].sort((a, b) => a.at[1] - b.at[1]);
      const known = lane.bands.filter((band) => band.opens || band.closes);
      this.bands = known.sort((a, b) => from(a) - from(b));
      this.unknown = lane.bands.filter((band) => !band.opens && !band.closes);
      const packed = dw.scale.pack(this.bands.map((band) => [from(band), to(band)]));
      this.bandRow = packed.row;
      this.bandRows = packed.rows + this.unknown.length;
      // What comes before the picture's beginning is sparse, and needs no rows of its own.
      const near = this.marks.filter((mark) => mark.at[1] >= trial.span[0]).length;
      this.labelRows = this.marks.length ? Math.min(MOST_LABEL_ROWS, Math.max(1, near)) : 0;
      this.marksTop = PAD_PX + this.bandRows * (BAND_PX + BAND_GAP_PX);
      this.height =
        this.marksTop + (this.labelRows ? (this.labelRows - 1) * LABEL_PX + MARK_PX : 0) + PAD_PX;
      this.entries = [
        ...this.bands.map((band) => dw.evidence.ofBand(lane, band)),
        ...this.unknown.map((band) => dw.evidence.ofBand(lane, band)),
        ...this.marks.map((mark) => dw.evidence.ofMark(lane, mark)),
      ];
    }

    /** The buttons, in the order in which Tab goes through them: that of time. */
    buttons(picture) {
      const inTime = [...this.entries].sort((a, b) => (a.at?.[1] ?? 0) - (b.at?.[1] ?? 0));
      const made = new Map(
        inTime.map((entry, n) => {
          const button = dw.el("button", {
            type: "button",
            class: `target tone-${entry.tone}`,
            "data-kind": entry.kind,
            "data-key": entry.key,
            "data-at": entry.at ? entry.at.join(" ") : "",
            "aria-label": entry.label,
          });
          picture.explains(button, n, inTime);
          return [entry, button];
        }),
      );
      this.targets = this.entries.map((entry) => made.get(entry));
      return [...made.values()];
    }

    draw(ink, view) {
      const colours = dw.paint.colours();
      this.bands.forEach((band, n) => this.drawBand(ink, view, colours, band, n));
      this.unknown.forEach((band, n) => this.drawUnknown(ink, view, colours, band, n));
      this.drawMarks(ink, view, colours);
    }

    rowTop(row) {
      return PAD_PX + row * (BAND_PX + BAND_GAP_PX);
    }

    drawBand(ink, view, colours, band, n) {
      const y = this.rowTop(this.bandRow[n]);
      const colour = colours[band.tone];
      const edges = [
        band.opens ? view.x(band.opens[0]) : -LEAST_HIT_PX,
        band.opens ? view.x(band.opens[1]) : -LEAST_HIT_PX,
        band.closes ? view.x(band.closes[0]) : view.width + LEAST_HIT_PX,
        band.closes ? view.x(band.closes[1]) : view.width + LEAST_HIT_PX,
      ];
      dw.paint.soft(ink, edges, y, BAND_PX, colour, ALPHA[band.tone] ?? 0.2);
      const [a, b, c, d] = edges;
      if (c > b) {
        ink.fillStyle = colour;
        ink.fillRect(b, y, c - b, 2);
        if (band.tone === "bad" && c - b > 4) {
          ink.fillStyle = dw.paint.hatch(ink, dw.paint.pale(colour, 0.5));
          ink.fillRect(b, y, c - b, BAND_PX);
        }
      }
      const lo = Math.max(0, a);
      const next = this.bands.findIndex((other, m) => m > n && this.bandRow[m] === this.bandRow[n]);
      const end = next < 0 ? view.width : view.x(from(this.bands[next]));
      this.put(n, lo, Math.max(d, lo + LEAST_HIT_PX), y, BAND_PX, view);
      if (d < 0 || a > view.width) return;
      const before = this.bands.findLastIndex(
        (_, m) => m < n && this.bandRow[m] === this.bandRow[n],
      );
      const begin = before < 0 ? 0 : Math.max(0, view.x(to(this.bands[before])));
      this.writeBand(
        ink,
        colours,
        band,
        { begin, lo, hi: Math.min(d, view.width), end: Math.min(end, view.width) },
        y,
      );
    }

    /** A band's name and what it met: in it, or where there is more room right or left of it. */
    writeBand(ink, colours, band, { begin, lo, hi, end }, y) {
      const open = band.opens ? "" : "\u2190 ";
      const closes = band.closes ? "" : " \u2192 no end seen";
      const name = `${open}${band.text}${closes}`;
      const middle = y + BAND_PX / 2 + 1;
      const needed = dw.paint.textWidth(ink, name) + 8;
      const outside = needed > hi - lo;
      if (outside && needed > end - hi && needed < lo - begin) {
        dw.paint.write(ink, name, lo - needed + 2, middle, colours.fg);
        return;
      }
      const x = outside ? Math.min(hi, Math.max(lo, end - needed)) + 5 : lo + 5;
      const text = dw.paint.fitting(ink, name, end - x - 3);
      if (!text) return;
      dw.paint.write(ink, text, x, middle, colours.fg);
      if (!band.met) return;
      const taken = dw.paint.textWidth(ink, text) + 12;
      const within = dw.paint.textWidth(ink, band.met) + taken + x < hi;
      const next = outside || within ? x + taken : Math.max(x + taken, hi + 5);
      if (dw.paint.textWidth(ink, band.met) > end - next - 3) return;
      dw.paint.write(ink, band.met, next, middle, colours.muted);
    }

    /** A window of which neither edge is known has a line in words, and no place in time. */
    drawUnknown(ink, view, colours, band, n) {
      const y = this.rowTop(this.bandRows - this.unknown.length + n);
      ink.fillStyle = dw.paint.hatch(ink, dw.paint.pale(colours.unknown, 0.25));
      ink.fillRect(0, y, view.width, BAND_PX);
      const text = dw.paint.fitting(ink, `${band.text}: not known`, view.width - 8);
      dw.paint.write(ink, text, 5, y + BAND_PX / 2 + 1, colours.muted);
      this.put(this.bands.length + n, 0, view.width, y, BAND_PX, view);
    }

    /** Where a mark's box, line and text stand, in pixels. */
    measure(ink, view, mark) {
      const [lo, hi] = mark.at.map((us) => view.x(us));
      const from = mark.approximate ? Math.max(lo, hi - TAIL_PX) : lo;
      const text = dw.paint.fitting(ink, mark.text, Math.max(140, view.width * 0.4));
      const width = dw.paint.textWidth(ink, text) + 12;
      const line = hi - from > view.width * BOX_SHARE;
      // Near the right edge the text stands on the left.
      const near = line ? hi : from;
      const left = hi + width > view.width && near - width > 0;
      const start = left ? near - width : hi;
      return { from, hi, text, width, line, left, start, end: left ? hi + 6 : hi + width };
    }

    drawMarks(ink, view, colours) {
      const first = this.bands.length + this.unknown.length;
      const places = this.marks.map((mark) => this.measure(ink, view, mark));
      const seen = places.map(({ from, hi }) => hi >= -2 && from <= view.width + 2);
      const shown = this.marks.map((_, n) => n).filter((n) => seen[n]);
      // A row for each with its box; a line may be written upon.
      const wanted = shown.map((n) => {
        const { from, hi, line, start, end } = places[n];
        const x = Math.min(start, line ? hi - 6 : from);
        return { x, width: end - x };
      });
      const rows = dw.scale.place(wanted, this.labelRows, 6);
      shown.forEach((n, m) => this.drawMark(ink, view, colours, this.marks[n], places[n], rows[m]));
      this.marks.forEach((_, n) => {
        const row = seen[n] ? rows[shown.indexOf(n)] : -1;
        const { from, hi, line, start, end } = places[n];
        const half = LEAST_HIT_PX / 2;
        const [x0, x1] =
          row >= 0 ? [Math.min(start, line ? hi : from, hi - 6), end] : [hi - half, hi + half];
        this.put(first + n, x0, x1, this.marksTop + Math.max(0, row) * LABEL_PX, MARK_PX, view);
      });
    }

    drawMark(ink, view, colours, mark, { from, hi, text, line, left, start }, row) {
      const colour = colours[mark.tone];
      if (row < 0) {
        ink.fillStyle = colour;
        ink.fillRect(hi - 0.75, this.marksTop - 3, 1.5, 6);
        return;
      }
      const top = this.marksTop + row * LABEL_PX;
      const middle = top + MARK_PX / 2;
      const [a, b] = [Math.max(-9, from), Math.min(view.width + 9, hi)];
      if (mark.approximate) {
        dw.paint.soft(ink, [from, hi, hi, hi], top, MARK_PX, colour, 0.3);
      } else if (line) {
        ink.fillStyle = dw.paint.pale(colour, 0.5);
        ink.fillRect(a, middle - 0.5, b - a, 1);
        ink.fillRect(a, top + 3, 1, MARK_PX - 6);
      } else if (hi - from > 3) {
        ink.fillStyle = dw.paint.pale(colour, 0.22);
        ink.fillRect(a, top, b - a, MARK_PX);
      }
      ink.fillStyle = colour;
      ink.fillRect(hi - 0.75, top, 1.5, MARK_PX);
      dw.paint.glyph(ink, dw.paint.toneGlyph(mark.tone), hi, middle, 3.2, colour, colours.bg);
      dw.paint.write(ink, text, left ? start + 2 : hi + 8, middle + 0.5, colours.fg);
    }

    /** Puts a button over what it explains; one that is out of sight waits at the edge. */
    put(n, x0, x1, y, height, view) {
      const left = Math.max(-LEAST_HIT_PX, Math.min(view.width, x0));
      const right = Math.max(left + 2, Math.min(view.width + LEAST_HIT_PX, x1));
      const style = this.targets[n].style;
      style.transform = `translate(${left.toFixed(1)}px, ${y}px)`;
      style.width = `${(right - left).toFixed(1)}px`;
      style.height = `${height}px`;
    }
  }

  /** When a mark was: of an approximate one only the latest instant says something. */
  function shownAt(mark) {
    return mark.approximate ? [mark.at[1], mark.at[1]] : mark.at;
  }

  function from(band) {
    return band.opens ? band.opens[0] : -Infinity;
  }

  function to(band) {
    return band.closes ? band.closes[1] : Infinity;
  }

  dw.EventLane = EventLane;
  dw.shownAt = shownAt;
}
