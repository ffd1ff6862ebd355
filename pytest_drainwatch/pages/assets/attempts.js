/*
 * New connections (or requests): how many of those begun at each instant were served.
 *
 * Each column of pixels is filled to the top with what the attempts in it met. The failing part
 * stands at the bottom, in the colour and the hatching of what hurts.
 */
{
  const HEIGHT_PX = 42;
  const PAD_PX = 4;
  const ORDER = { bad: 0, warn: 1, unknown: 2, neutral: 3, good: 4 };
  const ALPHA = { bad: 0.95, warn: 0.8, unknown: 0.35, neutral: 0.35, good: 0.3 };

  class AttemptsLane {
    /**
     * @param attempts data.Attempts
     * @param named whether it must say whose they are, as it is not alone in its lane
     */
    constructor(attempts, named) {
      this.attempts = attempts;
      this.named = named;
      this.ends = [
        Math.min(...attempts.runs.map((run) => run[0])),
        Math.max(...attempts.runs.map((run) => run[1])),
      ];
      this.height = HEIGHT_PX;
      this.order = attempts.results
        .map(([, tone], index) => ({ index, tone }))
        .sort((a, b) => ORDER[a.tone] - ORDER[b.tone]);
    }

    /** How many attempts of each result fall into each column of pixels. */
    count(view) {
      const columns = Math.ceil(view.width);
      const counts = this.attempts.results.map(() => new Float64Array(columns));
      for (const [from, to, result, many] of this.attempts.runs) {
        const [x0, x1] = [view.x(from), view.x(to)];
        if (x1 < 0 || x0 >= columns) continue;
        const bins = counts[result];
        if (x1 - x0 < 1) {
          bins[Math.max(0, Math.min(columns - 1, Math.floor((x0 + x1) / 2)))] += many;
          continue;
        }
        const rate = many / (x1 - x0);
        const last = Math.min(columns - 1, Math.floor(x1));
        for (let x = Math.max(0, Math.floor(x0)); x <= last; x += 1) {
          bins[x] += rate * (Math.min(x + 1, x1) - Math.max(x, x0));
        }
      }
      return counts;
    }

    draw(ink, view) {
      const colours = dw.paint.colours();
      const counts = this.count(view);
      const columns = Math.ceil(view.width);
      const room = HEIGHT_PX - 2 * PAD_PX;
      const total = new Float64Array(columns);
      for (const bins of counts) for (let x = 0; x < columns; x += 1) total[x] += bins[x];
      const base = new Float64Array(columns).fill(HEIGHT_PX - PAD_PX);
      for (const { index, tone } of this.order) {
        const bins = counts[index];
        const path = new Path2D();
        for (let x = 0; x < columns;) {
          const tall = heightOf(bins, total, x, room);
          const begun = x;
          const from = base[x];
          // Neighbours that are alike are one box.
          do {
            base[x] -= tall;
            x += 1;
          } while (x < columns && base[x] === from && heightOf(bins, total, x, room) === tall);
          if (tall > 0) path.rect(begun, from - tall, x - begun, tall);
        }
        ink.fillStyle = dw.paint.pale(colours[tone], ALPHA[tone]);
        ink.fill(path);
        if (tone === "bad") {
          ink.fillStyle = dw.paint.hatch(ink, dw.paint.pale(colours.bg, 0.6));
          ink.fill(path);
        }
      }
      this.drawGaps(ink, view, colours, total);
      if (!this.named) return;
      const name = dw.paint.fitting(ink, this.attempts.name, view.width - 8);
      dw.paint.write(ink, name, 4, PAD_PX + 8, colours.fg);
    }

    /** Between two runs, or where runs are left out, nobody knows what an attempt had met. */
    drawGaps(ink, view, colours, total) {
      const path = new Path2D();
      const [from, to] = this.ends.map((us) => view.x(us));
      const last = Math.min(total.length, Math.floor(to));
      for (let x = Math.max(0, Math.ceil(from)); x < last; x += 1) {
        if (!total[x]) path.rect(x, PAD_PX, 1, HEIGHT_PX - 2 * PAD_PX);
      }
      ink.fillStyle = dw.paint.hatch(ink, dw.paint.pale(colours.unknown, 0.35));
      ink.fill(path);
    }

    /** What the runs near an instant were, in words. */
    at(us, slack) {
      const { runs, results } = this.attempts;
      const near = runs.filter(([from, to]) => to >= us - slack && from <= us + slack);
      if (!near.length) return [];
      if (near.length > 3) {
        const many = results.map(() => 0);
        for (const [, , result, count] of near) many[result] += count;
        const words = many
          .map((count, n) => (count ? `${dw.say.count(count)} ${results[n][0]}` : null))
          .filter(Boolean);
        return [`begun around here: ${words.join(", ")}`];
      }
      return near.map(
        ([from, to, result, count]) =>
          `${dw.say.count(count)} ${results[result][0]}${count > 1 ? " in a row" : ""}, begun ${dw.say.instant([from, to])}`,
      );
    }

    /** All of it in words. */
    entry() {
      const { name, rate, notes, runs, results } = this.attempts;
      const worst = this.order.find(({ index }) => runs.some((run) => run[2] === index));
      return {
        kind: "attempts",
        key: name,
        title: `${this.attempts.lane === "http" ? "Requests" : "New connections"}: ${name}`,
        tone: worst ? worst.tone : "unknown",
        at: null,
        label: `${name}: ${rate}`,
        lines: [rate, ...notes],
        table: {
          head: ["Begun", "What they met", "How many in a row"],
          rows: runs
            .slice(0, 400)
            .map(([from, to, result, count]) => [
              dw.say.exactly([from, to]),
              results[result][0],
              dw.say.count(count),
            ]),
          left: Math.max(0, runs.length - 400),
        },
      };
    }
  }

  function heightOf(bins, total, x, room) {
    return total[x] > 0 ? (bins[x] / total[x]) * room : 0;
  }

  dw.AttemptsLane = AttemptsLane;
}
