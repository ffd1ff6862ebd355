/*
 * Many flows as a stack: how many of them were answered, silent, ended … at each instant.
 *
 * Each column of pixels shows the mean over its time, so that nothing is too short to be counted.
 */
{
  const HEIGHT_PX = 190;
  const PAD_PX = 6;
  const TONES = { good: 0, neutral: 1, unknown: 2, warn: 3, bad: 4 };

  /** Instants in order, with the running sum that makes means cheap. */
  class Instants {
    constructor(values) {
      this.at = Float64Array.from(values).sort();
      this.sum = new Float64Array(this.at.length + 1);
      for (let n = 0; n < this.at.length; n += 1) this.sum[n + 1] = this.sum[n] + this.at[n];
    }

    /** How many are at or before an instant. */
    before(us) {
      let [lo, hi] = [0, this.at.length];
      while (lo < hi) {
        const middle = (lo + hi) >> 1;
        if (this.at[middle] <= us) lo = middle + 1;
        else hi = middle;
      }
      return lo;
    }

    /** The integral over time, up to an instant, of how many there are. */
    integral(us) {
      const many = this.before(us);
      return many * us - this.sum[many];
    }
  }

  /** What flows have in common at an instant: a layer of the stack. */
  class Layer {
    constructor(key, tone, text, ended) {
      Object.assign(this, { key, tone, text, ended, begins: [], finishes: [] });
    }

    freeze() {
      this.begins = new Instants(this.begins);
      this.finishes = new Instants(this.finishes);
    }

    at(us) {
      return this.begins.before(us) - this.finishes.before(us);
    }

    integral(us) {
      return this.begins.integral(us) - this.finishes.integral(us);
    }
  }

  /** The layer of a piece of a flow, and of its time after its end. */
  function layerOf(flow, piece) {
    if (!piece) return [`ended ${flow.mechanism} ${flow.outcome}`, flow.tone, dw.ends.words(flow)];
    const other = dw.flows.elsewhere(flow, piece);
    const text = other ? `${piece.state} by another pod` : piece.state;
    return [`${text} ${piece.tone}`, piece.tone, text];
  }

  /** Since when there is nothing more of a flow. Some go on after their fate is known: null. */
  function endOf(flow) {
    const last = flow.pieces[flow.pieces.length - 1];
    if (!flow.end || (last && last.at[1] > flow.end[1])) return null;
    return last ? last.at[1] : flow.end[1];
  }

  class FlowStack {
    /** @param flows data.Flow[] of one transport */
    constructor(flows) {
      this.flows = flows;
      this.height = HEIGHT_PX;
      const layers = new Map();
      const layer = (flow, piece) => {
        const [key, tone, text] = layerOf(flow, piece);
        if (!layers.has(key)) layers.set(key, new Layer(key, tone, text, !piece));
        return layers.get(key);
      };
      for (const flow of flows) {
        for (const piece of flow.pieces) {
          if (piece.at[1] <= piece.at[0]) continue;
          layer(flow, piece).begins.push(piece.at[0]);
          layer(flow, piece).finishes.push(piece.at[1]);
        }
        const over = endOf(flow);
        if (over !== null) layer(flow, null).begins.push(over);
      }
      this.layers = [...layers.values()].sort(
        (a, b) => a.ended - b.ended || TONES[a.tone] - TONES[b.tone] || (a.key < b.key ? -1 : 1),
      );
      for (const each of this.layers) each.freeze();
    }

    draw(ink, view) {
      const colours = dw.paint.colours();
      const columns = Math.ceil(view.width);
      const scale = (HEIGHT_PX - 2 * PAD_PX) / this.flows.length;
      const base = new Float64Array(columns).fill(HEIGHT_PX - PAD_PX);
      for (const layer of this.layers) {
        const path = new Path2D();
        const upper = new Float64Array(columns);
        const width = view.at(1) - view.at(0);
        let before = layer.integral(view.at(0));
        for (let x = 0; x < columns; x += 1) {
          const after = layer.integral(view.at(x + 1));
          upper[x] = base[x] - ((after - before) / width) * scale;
          before = after;
        }
        if (!upper.some((y, x) => base[x] - y > 1e-3)) continue;
        path.moveTo(0, base[0]);
        for (let x = 0; x < columns; x += 1) {
          path.lineTo(x, upper[x]);
          path.lineTo(x + 1, upper[x]);
        }
        for (let x = columns - 1; x >= 0; x -= 1) {
          path.lineTo(x + 1, base[x]);
          path.lineTo(x, base[x]);
        }
        path.closePath();
        this.fill(ink, colours, layer, path);
        for (let x = 0; x < columns; x += 1) base[x] = upper[x];
      }
      this.write(ink, view, colours, scale);
    }

    fill(ink, colours, layer, path) {
      const colour = colours[layer.tone];
      const other = layer.text.includes("another pod") && !layer.ended;
      ink.fillStyle = dw.paint.pale(colour, layer.ended ? 0.3 : other ? 0.6 : 0.85);
      ink.fill(path);
      if (layer.ended || other || layer.tone === "bad") {
        ink.fillStyle = dw.paint.hatch(ink, dw.paint.pale(layer.ended ? colour : colours.bg, 0.5));
        ink.fill(path);
      }
    }

    /** Names the layers where they are tall enough to hold a name. */
    write(ink, view, colours, scale) {
      const stops = [0.02, 0.2, 0.4, 0.6, 0.8].map((share) => share * view.width);
      const named = new Set();
      for (const x of stops) {
        let y = HEIGHT_PX - PAD_PX;
        for (const layer of this.layers) {
          const many = layer.at(view.at(x + 4));
          const tall = many * scale;
          y -= tall;
          if (tall < 16 || named.has(layer)) continue;
          named.add(layer);
          const text = `${dw.say.count(many)} ${layer.text}`;
          const shown = dw.paint.fitting(ink, text, view.width - x - 10);
          dw.paint.write(ink, shown, x + 5, y + tall / 2, colours.fg);
        }
      }
    }

    /** The layer at a height, at an instant; null where there is none. */
    layerAt(y, us) {
      const scale = (HEIGHT_PX - 2 * PAD_PX) / this.flows.length;
      let top = HEIGHT_PX - PAD_PX;
      for (const layer of this.layers) {
        top -= layer.at(us) * scale;
        if (y >= top) return layer.at(us) > 0 ? layer : null;
      }
      return null;
    }

    /** Which flows lie in a layer at an instant. */
    within(layer, us) {
      return this.flows.filter((flow) => {
        const over = endOf(flow);
        if (over !== null && us >= over) return layerOf(flow, null)[0] === layer.key;
        const piece = flow.pieces.find((each) => us >= each.at[0] && us < each.at[1]);
        return piece !== undefined && layerOf(flow, piece)[0] === layer.key;
      });
    }

    tip(y, us) {
      const counts = this.layers
        .map((layer) => [layer, layer.at(us)])
        .filter(([, many]) => many > 0)
        .map(
          ([layer, many]) => `${dw.say.count(many)} ${layer.ended ? "ended: " : ""}${layer.text}`,
        );
      const here = this.layerAt(y, us);
      const more = here
        ? [`click: list the ${dw.say.count(here.at(us))} flows “${here.text}”`]
        : [];
      return [...counts.reverse(), ...more];
    }
  }

  dw.FlowStack = FlowStack;
}
