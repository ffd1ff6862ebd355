/*
 * What the colours and shapes mean, in words, each beside a sample drawn with the same ink.
 */
{
  const WIDTH_PX = 46;
  const HEIGHT_PX = 18;
  const LINE_Y = 6;
  const ROOMY = "(min-width: 1000px), print"; // there it is open at once

  function sample(draw) {
    const canvas = dw.paint.canvas(HEIGHT_PX);
    canvas.element.style.width = `${WIDTH_PX}px`;
    canvas.redraw = () => draw(canvas.begin(WIDTH_PX), dw.paint.colours());
    return canvas;
  }

  const tone = (name) => (ink, colours) => {
    ink.fillStyle = colours[name];
    ink.fillRect(2, LINE_Y, 24, 6);
    dw.paint.glyph(ink, dw.paint.toneGlyph(name), 37, HEIGHT_PX / 2, 3.6, colours[name]);
  };

  const sign = (glyph) => (ink, colours) => {
    ink.fillStyle = colours.neutral;
    ink.fillRect(2, LINE_Y + 1, 20, 4);
    dw.paint.glyph(ink, glyph, 26, HEIGHT_PX / 2, 4, colours.fg);
  };

  const GENERAL = [
    [
      (ink, colours) => {
        ink.fillStyle = dw.paint.pale(colours.neutral, 0.3);
        ink.fillRect(6, 2, 26, 14);
        ink.fillStyle = colours.neutral;
        ink.fillRect(31.5, 2, 1, 14);
        dw.paint.glyph(ink, "diamond", 32, 9, 3, colours.neutral);
      },
      "An event. The line is where it was seen; it happened somewhere in the box before it, which is as wide as its time is uncertain (a thin line, where that is very wide). A fading box: how long before is not known.",
    ],
    [
      (ink, colours) => dw.paint.soft(ink, [2, 16, 30, 44], 2, 14, colours.warn, 0.5),
      "A window of time. Hatched, fading edges: it opened or closed somewhere in there.",
    ],
    [
      (ink, colours) => {
        ink.fillStyle = colours.good;
        ink.fillRect(2, LINE_Y, 20, 5);
        ink.fillRect(22, LINE_Y, 22, 1.7);
        ink.fillRect(22, LINE_Y + 3.3, 22, 1.7);
      },
      "A connection: a full line while the pod answered that answered first, a double line while another pod did.",
    ],
    [
      (ink, colours) => {
        ink.fillStyle = colours.bad;
        for (let x = 2; x < 44; x += 7) ink.fillRect(x, LINE_Y + 1, 4, 2.5);
      },
      "Dashes: no answer, or turned away.",
    ],
    [
      (ink, colours) => {
        ink.fillStyle = dw.paint.pale(colours.good, 0.3);
        ink.fillRect(2, 2, 42, 14);
        ink.fillStyle = colours.bad;
        ink.fillRect(12, 2, 14, 14);
        ink.fillRect(26, 9, 8, 7);
        ink.fillStyle = dw.paint.hatch(ink, dw.paint.pale(colours.bg, 0.6));
        ink.fillRect(12, 2, 14, 14);
      },
      "New connections begun at that time: pale were served, strong and hatched were not. A box half as high: half of them. Hatched only: not known what they met there.",
    ],
    [
      (ink, colours) => {
        ink.fillStyle = colours.accent;
        ink.fillRect(22, 0, 1.4, HEIGHT_PX);
      },
      "SIGTERM: the moment the pod's process is told to end. The grey lines are the trigger and the container's end.",
    ],
  ];

  const TONES = [
    ["good", "served, or ended cleanly"],
    ["bad", "users were hurt"],
    ["warn", "nobody was hurt yet, or it cannot be told"],
    ["neutral", "no judgement in it"],
    ["unknown", "not measured"],
  ];

  /** The legend of a trial: of the ends only those that occur in it. */
  dw.legend = (trial) => {
    const glyphs = new Map();
    for (const { mechanism } of trial.flows) {
      const found = dw.ends.sign(mechanism);
      if (found) glyphs.set(found.glyph, found.meaning);
    }
    const entries = [
      ...TONES.map(([name, words]) => [tone(name), words]),
      ...GENERAL,
      ...[...glyphs].map(([glyph, words]) => [sign(glyph), `The end of a connection: ${words}.`]),
    ];
    const samples = entries.map(([draw, words]) => ({ canvas: sample(draw), words }));
    const redraw = () => {
      for (const { canvas } of samples) canvas.redraw();
    };
    const element = dw.el(
      "details",
      { class: "legend", open: matchMedia(ROOMY).matches },
      dw.el("summary", {}, "What the colours and shapes mean"),
      dw.el(
        "ul",
        {},
        samples.map(({ canvas, words }) =>
          dw.el("li", {}, canvas.element, dw.el("span", {}, words)),
        ),
      ),
    );
    return { element, redraw };
  };
}
