/*
 * What lies behind what is seen: a small box in passing, a panel that stays.
 *
 * An entry is {kind, key, title, tone, at, label, lines, table}: what a mark, a band, a flow or a
 * prober has to say. `lines` are paragraphs, or pairs of a name and a value.
 */
{
  const TIP_LINES = 8;
  const TIP_GAP_PX = 14;

  let tipBox = null;
  let panel = null;
  let back = null;

  /** "+46.43–46.91 ms", and for a mark of which only the end is known, "by +782 ms". */
  function when(mark) {
    return mark.approximate
      ? `by ${dw.say.instant([mark.at[1], mark.at[1]])}`
      : dw.say.exactly(mark.at);
  }

  function ofMark(lane, mark) {
    const at = when(mark);
    return {
      kind: "mark",
      key: mark.key,
      title: mark.text,
      tone: mark.tone,
      at: dw.shownAt(mark),
      label: `${mark.text}, ${at}`,
      lines: [
        ["When", mark.approximate ? `${at}; how long before is not known` : at],
        mark.approximate || mark.at[1] - mark.at[0] <= 1
          ? null
          : [
              "Known to within",
              dw.say.duration([mark.at[1] - mark.at[0], mark.at[1] - mark.at[0]]),
            ],
        ["Seen by", mark.source],
        ["Evidence", mark.detail],
        ["Lane", lane.name],
        ["Event", mark.key],
      ],
    };
  }

  /** How long a band lasted: every length that its edges allow. */
  function lasted(band) {
    if (!band.opens || !band.closes) return null;
    return [band.closes[0] - band.opens[1], band.closes[1] - band.opens[0]];
  }

  function stretch(band) {
    const opens = band.opens ? dw.say.instant(band.opens) : "beginning not known";
    return band.closes ? `${opens} until ${dw.say.instant(band.closes)}` : `${opens}, no end seen`;
  }

  function ofBand(lane, band) {
    const lasts = lasted(band);
    const unknown = "never, or not known";
    const at =
      band.opens || band.closes
        ? [(band.opens ?? band.closes)[0], (band.closes ?? band.opens)[1]]
        : null;
    return {
      kind: "band",
      key: band.id,
      title: band.text,
      tone: band.tone,
      at,
      label: at
        ? `${band.text}: ${stretch(band)}${band.met ? `, ${band.met}` : ""}`
        : `${band.text}: not known`,
      lines: [
        ["Opens", band.opens ? dw.say.exactly(band.opens) : unknown],
        ["Closes", band.closes ? dw.say.exactly(band.closes) : unknown],
        lasts ? ["Lasts", dw.say.at(lasts)] : null,
        band.met ? ["New connections in it", band.met] : null,
        ["What it is", band.detail],
        ["Lane", lane.name],
      ],
    };
  }

  function ofFlow(flow, responders) {
    const who = (piece) => (piece.by === null ? "" : (responders[piece.by]?.name ?? ""));
    const rows = flow.rows ?? [];
    return {
      kind: "flow",
      key: flow.id,
      title: `${flow.id}: ${dw.ends.words(flow)}`,
      tone: flow.tone,
      at: flow.end,
      label: `${flow.id}: ${flow.story}`,
      lines: [
        flow.story,
        ["Ended", flow.end ? dw.say.exactly(flow.end) : "did not end while it was watched"],
        flow.role ? ["Role", roleOf(flow.role)] : null,
        ["Outcome", `${flow.outcome}, by ${flow.mechanism}`],
        flow.rows ? null : "The single events of flows are left out on a page of so many.",
      ],
      table: {
        head: ["From", "What it was like", "By"],
        rows: flow.pieces.map((piece) => [
          dw.say.instant([piece.at[0], piece.at[0] + (piece.edge ?? 0)]),
          piece.state,
          who(piece),
        ]),
        left: 0,
      },
      more: rows.length
        ? {
            head: ["When", "Event", "Detail"],
            rows: rows.map((row) => [row.at ? dw.say.instant(row.at) : "", row.event, row.detail]),
            left: 0,
          }
        : null,
    };
  }

  function roleOf(role) {
    return (
      {
        target: "target: of a pod that is terminated",
        bystander: "bystander: of another pod, it must survive",
      }[role] ?? role
    );
  }

  /** The first of what an entry says, for the small box. */
  function brief(entry) {
    const pairs = entry.lines.filter((line) => Array.isArray(line)).slice(0, 5);
    return [entry.title, ...pairs.map(([name, value]) => `${name}: ${value}`)];
  }

  // A page that scrolls beneath a resting pointer sends events too: nobody pointed at anything.
  let pointer = { x: NaN, y: NaN };
  let scrolled = false;
  const rests = (event) => event.clientX === pointer.x && event.clientY === pointer.y;
  addEventListener("scroll", () => (scrolled = true), { capture: true, passive: true });
  addEventListener(
    "pointermove",
    (event) => {
      if (!rests(event)) scrolled = false;
      pointer = { x: event.clientX, y: event.clientY };
    },
    { capture: true },
  );

  /** Shows lines beside the pointer; the first one is the heading. Nothing: goes away. */
  function tip(event, lines) {
    if (scrolled && event.type && rests(event)) return tipAway();
    if (event.pointerType === "touch" || !lines.length || event.buttons) return tipAway();
    if (!tipBox) {
      tipBox = dw.el("div", { class: "tip", "aria-hidden": "true" });
      document.body.append(tipBox);
    }
    tipBox.replaceChildren(
      ...lines
        .slice(0, TIP_LINES)
        .filter(Boolean)
        .map((line, n) => dw.el(n ? "span" : "strong", {}, line)),
    );
    tipBox.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = tipBox;
    const right = event.clientX + TIP_GAP_PX;
    const below = event.clientY + TIP_GAP_PX;
    const x = right + width > innerWidth ? Math.max(4, event.clientX - TIP_GAP_PX - width) : right;
    const y =
      below + height > innerHeight ? Math.max(4, event.clientY - TIP_GAP_PX - height) : below;
    tipBox.style.transform = `translate(${x}px, ${y}px)`;
  }

  function tipAway() {
    if (tipBox) tipBox.hidden = true;
  }

  function line(each) {
    if (!each) return null;
    if (!Array.isArray(each)) return dw.el("p", {}, each);
    const [name, value] = each;
    return dw.el("dl", {}, dw.el("dt", {}, name), dw.el("dd", {}, value));
  }

  function zoomed(entry, zoom) {
    const attributes = { type: "button", class: "zoom-here", on: { click: () => zoom(entry) } };
    return dw.el("button", attributes, "Zoom here");
  }

  /**
   * Opens the panel on an entry.
   *
   * @param n which of them it tells
   * @param {{length: number, at: function(number): object}} among it and its neighbours, which
   *     "previous" and "next" go to
   * @param origin where the focus goes back to
   * @param {{moved?: Function, zoom?: Function}} goes called with an entry that was gone to, and
   *     with one that is to fill the picture
   */
  function show(n, among, origin, goes = {}) {
    hide(false);
    back = origin;
    const entry = among.at(n);
    const step = (by, text) =>
      dw.el(
        "button",
        {
          type: "button",
          disabled: n + by < 0 || n + by >= among.length,
          on: {
            click: () => {
              goes.moved?.(among.at(n + by));
              show(n + by, among, origin, goes);
            },
          },
        },
        text,
      );
    panel = dw.el(
      "aside",
      {
        class: `evidence tone-${entry.tone}`,
        role: "dialog",
        "aria-label": "Evidence",
        tabindex: "-1",
        "data-kind": entry.kind,
        "data-key": entry.key,
      },
      dw.el(
        "div",
        { class: "evidence-head" },
        dw.el(
          "h2",
          {},
          dw.el(
            "span",
            { class: "glyph", "aria-hidden": "true" },
            `${dw.say.tone(entry.tone).glyph} `,
          ),
          entry.title,
        ),
        dw.el(
          "button",
          {
            type: "button",
            class: "close",
            "aria-label": "Close",
            on: { click: () => hide(true) },
          },
          "\u2715",
        ),
      ),
      entry.lines.map(line),
      entry.table ? dw.table(entry.table) : null,
      entry.more ? dw.table(entry.more) : null,
      dw.el(
        "div",
        { class: "steps" },
        among.length > 1 ? step(-1, "\u2190 Previous") : null,
        goes.zoom && entry.at ? zoomed(entry, goes.zoom) : null,
        among.length > 1 ? step(1, "Next \u2192") : null,
      ),
    );
    document.body.append(panel);
    panel.focus({ preventScroll: true });
  }

  /** Closes the panel; true where there was one. */
  function hide(refocus) {
    if (!panel) return false;
    panel.remove();
    panel = null;
    if (refocus && back?.isConnected) back.focus({ preventScroll: true });
    return true;
  }

  dw.evidence = { ofMark, ofBand, ofFlow, brief, tip, tipAway, show, hide, roleOf, stretch, when };
}
