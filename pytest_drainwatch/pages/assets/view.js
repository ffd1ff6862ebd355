/*
 * What stretch of time is on the screen, and how it moves.
 */
{
  // Closer than this nothing is known: intervals are whole microseconds.
  const LEAST_SPAN_US = 20;
  const MOVE_MS = 220;
  const BEYOND = 0.02; // of the whole: room beyond the first and last thing known

  /** A stretch of time on a number of pixels. Tells its listeners of each change, once a frame. */
  class View {
    /**
     * @param {[number, number]} fit what is shown at first
     * @param {[number, number]} whole all that is known
     */
    constructor(fit, whole) {
      const beyond = Math.max(1, (whole[1] - whole[0]) * BEYOND);
      this.least = Math.min(whole[0], fit[0]) - beyond;
      this.most = Math.max(whole[1], fit[1]) + beyond;
      this.fitted = [Math.max(this.least, fit[0]), Math.min(this.most, fit[1])];
      this.width = 1;
      this.listeners = [];
      this.frame = 0;
      this.moving = 0;
      [this.lo, this.hi] = this.fitted;
    }

    onChange(listener) {
      this.listeners.push(listener);
    }

    /** The pixel of an instant, left of zero or right of the width where it is not visible. */
    x(us) {
      return ((us - this.lo) / (this.hi - this.lo)) * this.width;
    }

    /** The instant of a pixel. */
    at(x) {
      return this.lo + (x / this.width) * (this.hi - this.lo);
    }

    /** Shows [lo, hi], or what of it there is. */
    set(lo, hi) {
      const whole = this.most - this.least;
      const span = Math.min(whole, Math.max(LEAST_SPAN_US, hi - lo));
      const middle = (lo + hi) / 2;
      const from = Math.min(this.most - span, Math.max(this.least, middle - span / 2));
      this.lo = from;
      this.hi = from + span;
      this.changed();
    }

    changed() {
      if (this.frame) return;
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        for (const listener of this.listeners) listener(this);
      });
    }

    resize(width) {
      if (width === this.width || width <= 0) return;
      this.width = width;
      this.changed();
    }

    /** Above 1 is closer; the instant at pixel `x` stays where it is. */
    zoom(factor, x = this.width / 2) {
      this.stop();
      const span = Math.min(
        this.most - this.least,
        Math.max(LEAST_SPAN_US, (this.hi - this.lo) / factor),
      );
      const fixed = this.at(x);
      const lo = fixed - (x / this.width) * span;
      this.set(lo, lo + span);
    }

    /** Moves what is shown by so many pixels to the left. */
    pan(pixels) {
      this.stop();
      const by = (pixels / this.width) * (this.hi - this.lo);
      this.set(this.lo + by, this.hi + by);
    }

    /** Goes to [lo, hi] so that the eye can follow, or at once for those who ask for that. */
    go(lo, hi) {
      this.stop();
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
        this.set(lo, hi);
        return;
      }
      const from = [this.lo, this.hi];
      const begun = performance.now();
      const move = (now) => {
        const done = Math.min(1, Math.max(0, (now - begun) / MOVE_MS));
        const eased = done * done * (3 - 2 * done);
        this.set(from[0] + (lo - from[0]) * eased, from[1] + (hi - from[1]) * eased);
        this.moving = done < 1 ? requestAnimationFrame(move) : 0;
      };
      this.moving = requestAnimationFrame(move);
    }

    stop() {
      cancelAnimationFrame(this.moving);
      this.moving = 0;
    }

    /** Shows a stretch with some room on both sides. */
    show(at) {
      const room = Math.max(10 * LEAST_SPAN_US, (at[1] - at[0]) * 0.6);
      this.go(at[0] - room, at[1] + room);
    }

    /** Moves just so far that an instant is visible. */
    reveal(at) {
      if (at[1] >= this.lo && at[0] <= this.hi) return;
      const half = (this.hi - this.lo) / 2;
      const middle = (at[0] + at[1]) / 2;
      this.stop();
      this.set(middle - half, middle + half);
    }

    fit() {
      this.go(...this.fitted);
    }

    everything() {
      this.go(this.least, this.most);
    }
  }

  dw.View = View;
}
