/*
 * How time is moved: wheel, drag, pinch, double click, keys and buttons.
 */
{
  const WHEEL_PER_ZOOM = 320;
  const LINE_PX = 16;
  const STEP = 1.6; // of a button or a key
  const PAN_SHARE = 0.15;
  const DRAG_PX = 4;

  function scrolled(event) {
    return event.deltaMode === 1 ? LINE_PX : 1;
  }

  /**
   * A plain wheel scrolls the page, as everywhere; over the axis, or with Ctrl or ⌘ (which is
   * what a pinch on a touchpad sends), it zooms. Sideways, or with Shift, it pans.
   */
  function wheels(picture) {
    picture.lanes.addEventListener(
      "wheel",
      (event) => {
        const { view } = picture;
        const x = picture.pixelOf(event);
        const [dx, dy] = [event.deltaX * scrolled(event), event.deltaY * scrolled(event)];
        const overAxis = picture.top.element.contains(event.target);
        if (event.ctrlKey || event.metaKey || (overAxis && !event.shiftKey && dy !== 0)) {
          const speed = event.ctrlKey && Math.abs(dy) < 20 ? 4 : 1; // pinches send little
          view.zoom(2 ** ((-dy * speed) / WHEEL_PER_ZOOM), Math.max(0, x));
        } else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
          view.pan(dx !== 0 ? dx : dy);
        } else {
          return;
        }
        event.preventDefault();
      },
      { passive: false },
    );
  }

  /** One pointer drags, two pinch. A click is one that hardly moved. */
  function drags(picture) {
    const { lanes, view } = picture;
    const pointers = new Map();
    let dragged = false;
    let travelled = 0;
    const spread = () => {
      const [a, b] = [...pointers.values()];
      return { middle: (a.x + b.x) / 2, apart: Math.max(10, Math.abs(a.x - b.x)) };
    };
    lanes.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !event.target.closest(".plot")) return;
      if (pointers.size === 0) {
        dragged = false;
        travelled = 0;
      }
      pointers.set(event.pointerId, { x: event.clientX });
    });
    lanes.addEventListener("pointermove", (event) => {
      picture.point(event);
      const known = pointers.get(event.pointerId);
      if (!known) return;
      if (pointers.size === 2) {
        const before = spread();
        known.x = event.clientX;
        const after = spread();
        const { left } = picture.plot.getBoundingClientRect();
        view.pan(before.middle - after.middle);
        view.zoom(after.apart / before.apart, after.middle - left);
        dragged = true;
        return;
      }
      const by = known.x - event.clientX;
      travelled += Math.abs(by);
      known.x = event.clientX;
      if (!dragged && travelled < DRAG_PX) return;
      if (!dragged) {
        dragged = true;
        lanes.setPointerCapture(event.pointerId);
        lanes.classList.add("dragging");
        dw.evidence.tipAway();
      }
      view.pan(by);
    });
    const over = (event) => {
      pointers.delete(event.pointerId);
      if (pointers.size === 0) lanes.classList.remove("dragging");
    };
    lanes.addEventListener("pointerup", over);
    lanes.addEventListener("pointercancel", over);
    lanes.addEventListener("pointerleave", () => {
      picture.cursor.hidden = true;
    });
    // The click that ends a drag is none.
    lanes.addEventListener(
      "click",
      (event) => {
        if (dragged) event.stopPropagation();
        dragged = false;
      },
      true,
    );
    lanes.addEventListener("dblclick", (event) => {
      if (!event.target.closest(".plot")) return;
      const x = picture.pixelOf(event);
      view.zoom(event.shiftKey ? 1 / 3 : 3, x);
    });
  }

  const KEYS = {
    ArrowLeft: (view) => view.pan(-view.width * PAN_SHARE),
    ArrowRight: (view) => view.pan(view.width * PAN_SHARE),
    "+": (view) => view.zoom(STEP),
    "=": (view) => view.zoom(STEP),
    "-": (view) => view.zoom(1 / STEP),
    0: (view) => view.fit(),
  };

  /** The buttons above the picture. */
  dw.toolbar = (view, { first }) => {
    const button = (name, text, title, act) =>
      dw.el(
        "button",
        { type: "button", "data-zoom": name, title, "aria-label": title, on: { click: act } },
        text,
      );
    return dw.el(
      "div",
      { class: "toolbar", role: "toolbar", "aria-label": "What of the time is shown" },
      button("in", "+", "Zoom in", () => view.zoom(STEP)),
      button("out", "\u2212", "Zoom out", () => view.zoom(1 / STEP)),
      button("fit", "trigger to end", "From the trigger to the end", () => view.fit()),
      button("first", "first second", "The first second after the trigger", () =>
        view.go(...first),
      ),
      button("whole", "whole recording", "The whole recording", () => view.everything()),
      dw.el(
        "span",
        { class: "hint" },
        "Drag to move; Ctrl + wheel, pinch or double-click to zoom; ? for the keys",
      ),
    );
  };

  dw.gestures = (picture) => {
    wheels(picture);
    drags(picture);
  };

  /** What a key does to the picture; true where it did something. */
  dw.gestures.key = (picture, event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return false;
    act(picture.view);
    return true;
  };
}
