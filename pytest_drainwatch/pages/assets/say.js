"use strict";
/*
 * Words: elements, times and the closed sets of the reports, as a person reads them.
 *
 * Every file of this script hangs its things on the one global object `dw`, and nothing else.
 */
const dw = {};

{
  const US_PER_MS = 1e3;
  const US_PER_S = 1e6;
  const SVG = "http://www.w3.org/2000/svg";
  const MINUS = "\u2212";
  const NOT_KNOWN = "not known";
  // Intervals are rounded outward to whole microseconds: a point is one microsecond wide.
  const POINT_US = 1;

  const TONES = {
    good: { glyph: "\u25cf", word: "fine" },
    warn: { glyph: "\u25b2", word: "look here" },
    bad: { glyph: "\u2715", word: "users were hurt" },
    neutral: { glyph: "\u25c6", word: "no judgement in it" },
    unknown: { glyph: "?", word: "not measured" },
  };

  const OUTCOMES = {
    "drained-clean-close": "closed cleanly",
    severed: "cut off",
    "read-timeout": "timed out",
    "survived-observation-window": "survived",
    "not-measured": "not measured",
  };

  const MECHANISMS = {
    "announced-fin": "said goodbye, then closed (FIN)",
    "announced-rst": "said goodbye, then reset (RST)",
    "fin-unannounced": "closed without a word (FIN)",
    rst: "reset (RST)",
    epipe: "broken pipe",
    refused: "refused",
    unreachable: "unreachable",
    silence: "no answer any more",
    rehomed: "moved to another pod",
    "foreign-responder": "answered by something else",
    "accepted-never-served": "accepted, never served",
    "client-limit": "limit of the client",
    "client-stall": "the client stalled",
    none: "nothing ended it",
  };

  /** Fills an element: attributes, `on: {click: …}` for listeners, texts never as HTML. */
  function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "on") {
        for (const [event, listener] of Object.entries(value)) {
          element.addEventListener(event, listener);
        }
      } else {
        element.setAttribute(name, value === true ? "" : String(value));
      }
    }
    for (const child of children.flat()) {
      if (child !== null && child !== undefined) element.append(child);
    }
    return element;
  }

  dw.el = (tag, attributes, ...children) =>
    filled(document.createElement(tag), attributes, children);
  dw.svg = (tag, attributes, ...children) =>
    filled(document.createElementNS(SVG, tag), attributes, children);

  function unitOf(us) {
    const most = Math.abs(us);
    if (most >= US_PER_S) return { name: "s", us: US_PER_S };
    if (most >= US_PER_MS) return { name: "ms", us: US_PER_MS };
    return { name: "µs", us: 1 };
  }

  function digitsOf(unit, step) {
    return Math.max(0, Math.ceil(Math.log10(unit.us / step) - 1e-9));
  }

  function signed(text) {
    return text.startsWith("-") ? MINUS + text.slice(1) : text;
  }

  /** Outward to multiples of `step`: what is shown holds what is meant. */
  function range(at, unit, step) {
    const digits = digitsOf(unit, step);
    const low = (Math.floor(at[0] / step) * step) / unit.us;
    const high = (Math.ceil(at[1] / step) * step) / unit.us;
    if (low === high) return signed(low.toFixed(digits));
    const joint = at[0] < 0 ? " to " : "\u2013";
    return signed(low.toFixed(digits)) + joint + signed(high.toFixed(digits));
  }

  function single(us, unit, step) {
    return signed(((Math.round(us / step) * step) / unit.us + 0).toFixed(digitsOf(unit, step)));
  }

  /** Short: one number where the bounds are closer than the last digit shown, else both. */
  function duration(at) {
    if (!at) return NOT_KNOWN;
    if (at[0] === 0 && at[1] === 0) return "0 ms";
    const unit = unitOf(Math.max(Math.abs(at[0]), Math.abs(at[1])));
    const step = unit.us === US_PER_S ? unit.us / 100 : Math.max(1, unit.us / 10);
    const text =
      at[1] - at[0] < step ? single((at[0] + at[1]) / 2, unit, step) : range(at, unit, step);
    return `${text} ${unit.name}`;
  }

  /** Exact: as many digits as the interval carries, two of its width. */
  function exact(at) {
    if (!at) return NOT_KNOWN;
    const width = at[1] - at[0];
    const unit = unitOf(Math.max(Math.abs(at[0]), Math.abs(at[1])));
    if (width <= POINT_US) return `${single(at[0], unit, 1)} ${unit.name}`;
    const step = Math.max(1, 10 ** (Math.floor(Math.log10(width)) - 1));
    return `${range(at, unit, step)} ${unit.name}`;
  }

  /** An instant after the trigger wears a plus, so that nobody takes it for a duration. */
  function plus(at, text) {
    return at && at[0] > 0 ? `+${text}` : text;
  }

  dw.say = {
    duration,
    at: exact,
    instant: (at) => plus(at, duration(at)),
    exactly: (at) => plus(at, exact(at)),
    count: (number) => number.toLocaleString("en-US"),
    outcome: (outcome) => OUTCOMES[outcome] ?? outcome,
    mechanism: (mechanism) => MECHANISMS[mechanism] ?? mechanism,
    tone: (tone) => TONES[tone] ?? TONES.unknown,
    proto: (proto) => proto.toUpperCase(),
    plural: (count, one, many) =>
      `${count.toLocaleString("en-US")} ${count === 1 ? one : (many ?? `${one}s`)}`,
    NOT_KNOWN,
  };

  /** The address of a trial's view; nobody else encodes ids. */
  dw.link = (trialId) => `#/trial/${encodeURIComponent(trialId)}`;
}
