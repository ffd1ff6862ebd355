/*
 * Ink: colours of the theme, canvases, soft edges, hatching, texts and glyphs.
 */
{
  const NAMES = [
    "bg",
    "fg",
    "muted",
    "line",
    "panel",
    "accent",
    "good",
    "warn",
    "bad",
    "neutral",
    "unknown",
  ];
  const FONT = "12px system-ui, sans-serif";
  const HATCH_PX = 6;
  // Beyond the edges a canvas draws nothing, but gradients must still begin where they begin.
  const FAR_PX = 4000;
  const ELLIPSIS = "\u2026";

  let palette = null;
  const hatches = new Map();
  const widths = new Map();

  /** The theme's colours as canvases want them; `light-dark()` is resolved by the browser. */
  function colours() {
    if (palette) return palette;
    const probe = dw.el("span", { hidden: true });
    document.body.append(probe);
    palette = {};
    for (const name of NAMES) {
      probe.style.color = `var(--${name})`;
      palette[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    return palette;
  }

  /** Forgets the colours, and tells everybody who drew with them. */
  function themeChanged() {
    palette = null;
    hatches.clear();
    document.dispatchEvent(new CustomEvent("dw:theme"));
  }

  /** A canvas of a given height that is as sharp as the screen is. Hidden: texts say the same. */
  function canvas(height) {
    const element = dw.el("canvas", { "aria-hidden": "true" });
    element.style.height = `${height}px`;
    return {
      element,
      height,
      /** Empty, in CSS pixels, and as wide as asked. */
      begin(width) {
        const ratio = window.devicePixelRatio || 1;
        const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
        if (element.width !== w || element.height !== h) {
          element.width = w;
          element.height = h;
        }
        const ink = element.getContext("2d");
        ink.setTransform(ratio, 0, 0, ratio, 0, 0);
        ink.clearRect(0, 0, width, height);
        ink.font = FONT;
        ink.textBaseline = "middle";
        return ink;
      },
    };
  }

  /** Diagonal lines of a colour, to fill with: what is uncertain, and what must not be missed. */
  function hatch(ink, colour) {
    let pattern = hatches.get(colour);
    if (!pattern) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = HATCH_PX;
      const brush = tile.getContext("2d");
      brush.strokeStyle = colour;
      brush.lineWidth = 1.2;
      brush.beginPath();
      for (const shift of [-HATCH_PX, 0, HATCH_PX]) {
        brush.moveTo(shift - 1, HATCH_PX + 1);
        brush.lineTo(shift + HATCH_PX + 1, -1);
      }
      brush.stroke();
      pattern = ink.createPattern(tile, "repeat");
      hatches.set(colour, pattern);
    }
    return pattern;
  }

  function near(x) {
    return Math.max(-FAR_PX, Math.min(FAR_PX * 2, x));
  }

  /** A colour of the palette, paler: browsers give those as "rgb(r, g, b)". */
  function pale(colour, alpha) {
    return `${colour.replace("rgb(", "rgba(").slice(0, -1)}, ${alpha})`;
  }

  function faded(ink, x0, x1, from, to, colour) {
    const gradient = ink.createLinearGradient(x0, 0, x1, 0);
    gradient.addColorStop(0, pale(colour, from));
    gradient.addColorStop(1, pale(colour, to));
    return gradient;
  }

  /**
   * A stretch whose edges are as soft as they are uncertain.
   *
   * @param {number[]} edges the pixels of opens.lo, opens.hi, closes.lo, closes.hi
   */
  function soft(ink, edges, y, height, colour, alpha) {
    const [a, b, c, d] = edges.map(near);
    if (d - a < 3) {
      ink.fillStyle = pale(colour, Math.min(1, alpha * 2));
      ink.fillRect((a + d) / 2 - 1.5, y, 3, height);
      return;
    }
    if (b <= c) {
      ink.fillStyle = pale(colour, alpha);
      ink.fillRect(b, y, c - b, height);
      if (b > a) {
        ink.fillStyle = faded(ink, a, b, 0, alpha, colour);
        ink.fillRect(a, y, b - a, height);
      }
      if (d > c) {
        ink.fillStyle = faded(ink, c, d, alpha, 0, colour);
        ink.fillRect(c, y, d - c, height);
      }
      hatched(ink, a, y, b - a, height, colour);
      hatched(ink, c, y, d - c, height, colour);
      return;
    }
    // It may be that it never was: nowhere it is certain.
    const middle = (a + d) / 2;
    ink.fillStyle = faded(ink, a, middle, 0, alpha * 0.7, colour);
    ink.fillRect(a, y, middle - a, height);
    ink.fillStyle = faded(ink, middle, d, alpha * 0.7, 0, colour);
    ink.fillRect(middle, y, d - middle, height);
    hatched(ink, a, y, d - a, height, colour);
  }

  function hatched(ink, x, y, width, height, colour) {
    if (width < 3) return;
    ink.fillStyle = hatch(ink, pale(colour, 0.45));
    ink.fillRect(x, y, width, height);
  }

  function textWidth(ink, text) {
    let width = widths.get(text);
    if (width === undefined) {
      if (widths.size > 5000) widths.clear();
      width = ink.measureText(text).width;
      widths.set(text, width);
    }
    return width;
  }

  /** The text, cut to the room there is; "" where not even a few letters find any. */
  function fitting(ink, text, room) {
    if (textWidth(ink, text) <= room) return text;
    if (room < 34) return "";
    let [lo, hi] = [1, text.length];
    while (lo < hi) {
      const middle = Math.ceil((lo + hi) / 2);
      if (textWidth(ink, text.slice(0, middle) + ELLIPSIS) <= room) lo = middle;
      else hi = middle - 1;
    }
    return text.slice(0, lo).trimEnd() + ELLIPSIS;
  }

  /** A text with a rim of the background, to be read on whatever lies below. */
  function write(ink, text, x, y, colour) {
    ink.lineJoin = "round";
    ink.lineWidth = 3.5;
    ink.strokeStyle = pale(colours().bg, 0.8);
    ink.strokeText(text, x, y);
    ink.fillStyle = colour;
    ink.fillText(text, x, y);
  }

  const GLYPHS = {
    dot: (ink, x, y, r) => {
      ink.beginPath();
      ink.arc(x, y, r, 0, 7);
      ink.fill();
    },
    ring: (ink, x, y, r) => {
      ink.beginPath();
      ink.arc(x, y, r - 0.5, 0, 7);
      ink.stroke();
    },
    cross: (ink, x, y, r) => {
      ink.beginPath();
      ink.moveTo(x - r, y - r);
      ink.lineTo(x + r, y + r);
      ink.moveTo(x + r, y - r);
      ink.lineTo(x - r, y + r);
      ink.stroke();
    },
    wall: (ink, x, y, r) => {
      ink.beginPath();
      ink.moveTo(x, y - r);
      ink.lineTo(x, y + r);
      ink.moveTo(x + r * 0.9, y - r);
      ink.lineTo(x + r * 0.9, y + r);
      ink.stroke();
    },
    turn: (ink, x, y, r) => {
      ink.beginPath();
      ink.moveTo(x - r, y - r);
      ink.lineTo(x + r, y);
      ink.lineTo(x - r, y + r);
      ink.closePath();
      ink.fill();
    },
    square: (ink, x, y, r) => ink.strokeRect(x - r + 0.5, y - r + 0.5, 2 * r - 1, 2 * r - 1),
    diamond: (ink, x, y, r) => {
      ink.beginPath();
      ink.moveTo(x, y - r);
      ink.lineTo(x + r, y);
      ink.lineTo(x, y + r);
      ink.lineTo(x - r, y);
      ink.closePath();
      ink.fill();
    },
    peak: (ink, x, y, r) => {
      ink.beginPath();
      ink.moveTo(x, y - r);
      ink.lineTo(x + r, y + r * 0.8);
      ink.lineTo(x - r, y + r * 0.8);
      ink.closePath();
      ink.fill();
    },
  };

  /** A small sign with a rim of the background, so that it stands out on whatever lies below. */
  function glyph(ink, name, x, y, r, colour, rim) {
    const draw = GLYPHS[name] ?? GLYPHS.dot;
    ink.lineJoin = ink.lineCap = "round";
    if (rim) {
      ink.strokeStyle = ink.fillStyle = rim;
      ink.lineWidth = 4.5;
      draw(ink, x, y, r + 0.8);
    }
    ink.strokeStyle = ink.fillStyle = colour;
    ink.lineWidth = 1.8;
    draw(ink, x, y, r);
  }

  const TONE_GLYPHS = {
    good: "dot",
    warn: "peak",
    bad: "cross",
    neutral: "diamond",
    unknown: "ring",
  };

  dw.paint = {
    colours,
    themeChanged,
    canvas,
    hatch,
    pale,
    soft,
    textWidth,
    fitting,
    write,
    glyph,
    toneGlyph: (tone) => TONE_GLYPHS[tone] ?? "ring",
  };
}
