/*
 * What is told of a request while the pointer or the focus is on it.
 */
{
  const EDGE_PX = 4; // what stays free beside the window's edges
  const AWAY_PX = 6; // from what it tells of
  const { el } = dw;

  dw.simulation.tips = () => {
    const box = el("div", { class: "tip", role: "tooltip", hidden: true });
    function show(mark, text) {
      box.textContent = text;
      box.hidden = false;
      const at = mark.getBoundingClientRect();
      const { width, height } = box.getBoundingClientRect();
      const left = Math.max(EDGE_PX, Math.min(at.left, innerWidth - width - EDGE_PX));
      const above = at.top - height - AWAY_PX;
      const top = above > EDGE_PX ? above : at.bottom + AWAY_PX;
      box.style.transform = `translate(${left}px, ${top}px)`;
    }
    function hide() {
      box.hidden = true;
    }
    return {
      box,
      hide,
      on(mark, text) {
        mark.addEventListener("pointerenter", () => show(mark, text));
        mark.addEventListener("focus", () => show(mark, text));
        mark.addEventListener("pointerleave", hide);
        mark.addEventListener("blur", hide);
        mark.addEventListener("click", () => show(mark, text));
      },
    };
  };
}
