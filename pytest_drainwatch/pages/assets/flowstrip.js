/*
 * What a lane of flows does when it is pointed at, clicked, or moved through with the keyboard.
 */
{
  /**
   * @param strip the lane
   * @param part of it: its content is FlowLines or FlowStack
   * @param {{title: string, flows: object[], many: boolean}} group
   */
  dw.flowStrip = (strip, part, picture, group) => {
    const { plot, content } = part;
    const redraw = () => picture.view.changed();
    const topOf = (event) => event.clientY - plot.getBoundingClientRect().top;
    plot.addEventListener("pointermove", (event) => {
      const us = picture.instantOf(event);
      const lines = content.tip(topOf(event), us);
      dw.evidence.tip(event, lines ?? []);
      if (!group.many) {
        content.chosen = content.hit(topOf(event));
        redraw();
      }
    });
    plot.addEventListener("pointerleave", () => {
      dw.evidence.tipAway();
      if (!group.many && document.activeElement !== plot) {
        content.chosen = -1;
        redraw();
      }
    });
    plot.addEventListener("click", (event) => {
      if (group.many) {
        const us = picture.instantOf(event);
        const layer = content.layerAt(topOf(event), us);
        if (!layer) return;
        const ids = new Set(content.within(layer, us).map((flow) => flow.id));
        picture.opens.list(`${layer.text}, at ${dw.say.instant([us, us])}`, ids);
        return;
      }
      const n = content.hit(topOf(event));
      if (n >= 0) picture.opens.flow(content.flows[n], content.flows, plot);
    });
    if (group.many) listed(strip, picture, group);
    else walks(part, picture, redraw);
  };

  /** A stack is listed as a whole by a button; its layers by a click at an instant. */
  function listed(strip, picture, group) {
    const button = dw.el(
      "button",
      { type: "button", class: "more", "data-key": `list-${strip.element.dataset.lane}` },
      `List all ${dw.say.count(group.flows.length)}`,
    );
    button.addEventListener("click", () => {
      picture.opens.list(group.title, new Set(group.flows.map((flow) => flow.id)));
    });
    strip.name.append(button);
  }

  /** Up and down choose a flow, Enter tells its story. */
  function walks({ plot, content }, picture, redraw) {
    const told = dw.el("span", { class: "unseen", "aria-live": "polite" });
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute(
      "aria-label",
      `${dw.say.plural(content.flows.length, "flow")}: up and down choose one, Enter tells its story`,
    );
    plot.append(told);
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        const last = content.flows.length - 1;
        content.chosen = Math.max(0, Math.min(last, content.chosen + step));
        const flow = content.flows[content.chosen];
        told.textContent = `${flow.id}: ${dw.ends.words(flow)}`;
        redraw();
      } else if ((event.key === "Enter" || event.key === " ") && content.chosen >= 0) {
        picture.opens.flow(content.flows[content.chosen], content.flows, plot);
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    });
    plot.addEventListener("blur", () => {
      content.chosen = -1;
      redraw();
    });
  }
}
