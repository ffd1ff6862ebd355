/*
 * Flows as thin lines: one each, as long as it lived, and a sign where it ended.
 */
{
  const MOST_LINES = 200;
  const PAD_PX = 6;
  const BREAK_PX = 14; // between the flows of target pods and those of others
  const SIZES = [
    { flows: 24, row: 13, line: 5, sign: 4 },
    { flows: 60, row: 9, line: 4, sign: 3.2 },
    { flows: MOST_LINES, row: 6, line: 3, sign: 2.4 },
  ];

  /** The order in which flows stand below each other: whose they are, then who ended first. */
  function inOrder(flows) {
    const rank = (flow) => (flow.role === "target" ? 0 : flow.role === null ? 1 : 2);
    const end = (flow) => (flow.end ? flow.end[1] : Infinity);
    return [...flows].sort(
      (a, b) => rank(a) - rank(b) || end(a) - end(b) || (a.id < b.id ? -1 : 1),
    );
  }

  /** Whether a piece was answered by another pod than the one that answered first. */
  function elsewhere(flow, piece) {
    const first = flow.pieces.find((each) => each.by !== null);
    return piece.by !== null && first !== undefined && piece.by !== first.by;
  }

  class FlowLines {
    /** @param flows data.Flow[] of one transport */
    constructor(flows) {
      this.flows = inOrder(flows);
      const size = SIZES.find((each) => flows.length <= each.flows) ?? SIZES[SIZES.length - 1];
      this.size = size;
      this.tops = [];
      let y = PAD_PX;
      this.flows.forEach((flow, n) => {
        if (n > 0 && flow.role !== this.flows[n - 1].role) y += BREAK_PX;
        this.tops.push(y);
        y += size.row;
      });
      this.height = y + PAD_PX;
      this.chosen = -1;
      this.strokes = this.flows.map((flow) =>
        flow.pieces.map((piece) => ({
          from: piece.at[0],
          edge: piece.at[0] + (piece.edge ?? 0),
          to: piece.at[1],
          tone: piece.tone,
          state: piece.state,
          other: elsewhere(flow, piece),
        })),
      );
    }

    draw(ink, view) {
      const colours = dw.paint.colours();
      const { row, line } = this.size;
      if (this.chosen >= 0) {
        ink.fillStyle = dw.paint.pale(colours.accent, 0.22);
        ink.fillRect(0, this.tops[this.chosen], view.width, row);
      }
      this.strokes.forEach((strokes, n) => {
        const y = this.tops[n] + (row - line) / 2;
        for (const stroke of strokes) this.drawStroke(ink, view, colours, stroke, y, line);
      });
      this.flows.forEach((flow, n) => this.drawEnd(ink, view, colours, flow, this.tops[n]));
      this.writeRoles(ink, colours);
    }

    drawStroke(ink, view, colours, stroke, y, line) {
      const x0 = view.x(stroke.from);
      const x1 = view.x(stroke.to);
      if (x1 < 0 || x0 > view.width) return;
      const [a, b] = [Math.max(-9, x0), Math.min(view.width + 9, Math.max(x1, x0 + 1))];
      const sure = Math.min(b, Math.max(a, view.x(stroke.edge)));
      ink.fillStyle = colours[stroke.tone];
      if (sure - a > 2) {
        // It began somewhere in here.
        ink.globalAlpha = 0.4;
        ink.fillRect(a, y, sure - a, line);
        ink.globalAlpha = 1;
      }
      const begun = sure - a > 2 ? sure : a;
      const wide = b - begun;
      if (stroke.state === "answered" && stroke.other) {
        // Two lines: another pod than before.
        const thin = Math.max(1, line * 0.34);
        ink.fillRect(begun, y, wide, thin);
        ink.fillRect(begun, y + line - thin, wide, thin);
      } else if (stroke.state === "answered" || stroke.state === "open") {
        ink.fillRect(begun, y, wide, line);
      } else {
        dashes(ink, begun, b, y + line * 0.25, Math.max(1.5, line * 0.5));
      }
    }

    drawEnd(ink, view, colours, flow, top) {
      if (!flow.end) return;
      const sign = dw.ends.sign(flow.mechanism);
      const { row, sign: size } = this.size;
      const [lo, hi] = flow.end.map((us) => view.x(us));
      if (hi < -8 || lo > view.width + 8) return;
      const colour = colours[flow.tone];
      if (hi - lo > 3) {
        ink.fillStyle = dw.paint.pale(colour, 0.25);
        ink.fillRect(lo, top + 1, hi - lo, row - 2);
      }
      if (!sign) return;
      dw.paint.glyph(ink, sign.glyph, (lo + hi) / 2, top + row / 2, size, colour, colours.bg);
    }

    writeRoles(ink, colours) {
      ink.fillStyle = colours.muted;
      this.flows.forEach((flow, n) => {
        if (n > 0 && flow.role !== this.flows[n - 1].role) {
          const whose =
            flow.role === "target" ? "of the pod that ends" : "of other pods, which must survive";
          ink.fillText(whose, 4, this.tops[n] - BREAK_PX / 2);
        }
      });
    }

    /** The flow at a height of the lane, or -1. */
    hit(y) {
      return this.tops.findIndex((top) => y >= top && y < top + this.size.row);
    }

    /** What stands in the small box at the pointer. */
    tip(y, us) {
      const n = this.hit(y);
      if (n < 0) return null;
      const flow = this.flows[n];
      const piece = flow.pieces.find((each) => us >= each.at[0] && us <= each.at[1]);
      return [`${flow.id}: ${dw.ends.words(flow)}`, piece ? piece.state : "", flow.story];
    }
  }

  function dashes(ink, x0, x1, y, height) {
    const [on, off] = [4, 3];
    // Dashes keep their places while the picture moves under them: no more than a screenful.
    for (let x = x0; x < x1; x += on + off) ink.fillRect(x, y, Math.min(on, x1 - x), height);
  }

  dw.flows = { MOST_LINES, FlowLines, inOrder, elsewhere };
}
