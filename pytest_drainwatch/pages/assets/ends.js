/*
 * How a flow's end is drawn: a sign for each family of mechanisms, and what it means.
 */
{
  const SIGNS = [
    {
      glyph: "dot",
      meaning: "closed as announced: the server said goodbye first",
      mechanisms: ["announced-fin", "connection-close", "goaway", "ws-1001"],
    },
    {
      glyph: "cross",
      meaning: "cut: reset, or closed without a word",
      mechanisms: ["announced-rst", "rst", "fin-unannounced", "epipe", "rst-stream", "ws-1006"],
    },
    {
      glyph: "wall",
      meaning: "turned away: refused or unreachable",
      mechanisms: ["refused", "unreachable"],
    },
    {
      glyph: "ring",
      meaning: "no answer any more",
      mechanisms: ["silence", "accepted-never-served"],
    },
    {
      glyph: "turn",
      meaning: "led elsewhere: another pod answered",
      mechanisms: ["rehomed", "foreign-responder"],
    },
    {
      glyph: "square",
      meaning: "the instrument's own limit or stall: not measured",
      mechanisms: ["client-limit", "client-stall"],
    },
  ];
  const BY_MECHANISM = new Map(
    SIGNS.flatMap((sign) => sign.mechanisms.map((mechanism) => [mechanism, sign])),
  );
  const OTHER = { glyph: "diamond", meaning: "ended otherwise" };

  /** How many flows ended in which way, the most frequent first. */
  function tally(flows) {
    const found = new Map();
    for (const flow of flows) {
      const key = `${flow.outcome}\n${flow.mechanism}`;
      const fate = found.get(key) ?? {
        outcome: flow.outcome,
        mechanism: flow.mechanism,
        tone: flow.tone,
        count: 0,
      };
      fate.count += 1;
      found.set(key, fate);
    }
    return [...found.values()].sort((a, b) => b.count - a.count);
  }

  dw.ends = {
    /** The sign of a mechanism; null: nothing ended the flow. */
    sign: (mechanism) => (mechanism === "none" ? null : (BY_MECHANISM.get(mechanism) ?? OTHER)),
    tally,
    /** A flow's fate in words: "cut off: reset (RST)". */
    words: ({ outcome, mechanism }) => {
      if (mechanism === "none") return dw.say.outcome(outcome);
      if (mechanism === "rehomed") return dw.say.mechanism(mechanism);
      return `${dw.say.outcome(outcome)}: ${dw.say.mechanism(mechanism)}`;
    },
  };
}
