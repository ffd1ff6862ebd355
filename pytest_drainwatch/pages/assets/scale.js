/*
 * The scale of time, without a screen: ticks, their labels, and where labels find room.
 *
 * All of it is pure, in whole microseconds since the trigger and in CSS pixels.
 */
{
  const US_PER_S = 1e6;
  const US_PER_MIN = 6e7;
  // Above a second people count in twelfths and sixtieths, not in tenths.
  const LONG_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

  /** The least step of a round number of microseconds that is not below `us`. */
  function step(us) {
    if (us > US_PER_S / 2) {
      const seconds = us / US_PER_S;
      const found = LONG_STEPS.find((each) => each >= seconds * (1 - 1e-9));
      return (found ?? Math.ceil(seconds / 3600) * 3600) * US_PER_S;
    }
    const power = 10 ** Math.floor(Math.log10(Math.max(us, 1)) + 1e-9);
    const found = [1, 2, 5, 10].find((each) => each * power >= us * (1 - 1e-9));
    return Math.max(1, found * power);
  }

  /** At most `most` round instants within [lo, hi], in order. */
  function ticks(lo, hi, most) {
    if (!(hi > lo) || most < 1) return [];
    const every = step((hi - lo) / most);
    const found = [];
    for (let n = Math.ceil(lo / every - 1e-9); n * every <= hi; n += 1) found.push(n * every);
    return found.length > most ? found.slice(0, most) : found;
  }

  /** The distance of two ticks, from the ticks themselves. */
  function stepOf(found) {
    return found.length > 1 ? found[1] - found[0] : US_PER_S;
  }

  function digits(unit, every) {
    return Math.max(0, Math.ceil(Math.log10(unit / every) - 1e-9));
  }

  /** What stands at a tick: as many digits as tell it from its neighbour. */
  function label(us, every) {
    if (us === 0) return "0";
    const size = Math.abs(us);
    const sign = us < 0 ? "\u2212" : "";
    if (every >= US_PER_S && size >= 2 * US_PER_MIN) {
      const minutes = Math.floor(size / US_PER_MIN);
      const seconds = Math.round((size - minutes * US_PER_MIN) / US_PER_S);
      return `${sign}${minutes}:${String(seconds).padStart(2, "0")} min`;
    }
    if (every >= US_PER_S / 10 || size >= US_PER_S) {
      return `${sign}${(size / US_PER_S).toFixed(digits(US_PER_S, every))} s`;
    }
    if (every >= 100 || size >= 1000) {
      return `${sign}${(size / 1000).toFixed(digits(1000, every))} ms`;
    }
    return `${sign}${size.toFixed(0)} µs`;
  }

  /**
   * Gives each label a row in which it covers no other one, first come, first served.
   *
   * @param {{x: number, width: number}[]} wanted in the order of their importance
   * @param {number} rows how many there are
   * @param {number} gap the least distance of two labels in a row
   * @returns {number[]} the row of each, or -1: no room
   */
  function place(wanted, rows, gap) {
    const taken = Array.from({ length: rows }, () => []);
    return wanted.map(({ x, width }) => {
      const row = taken.findIndex((others) =>
        others.every(([lo, hi]) => x >= hi + gap || x + width + gap <= lo),
      );
      if (row >= 0) taken[row].push([x, x + width]);
      return row;
    });
  }

  /**
   * Gives each stretch the first row that is free for all of it.
   *
   * @param {[number, number][]} stretches in order of their beginning
   * @returns {{row: number[], rows: number}}
   */
  function pack(stretches) {
    const ends = [];
    const row = stretches.map(([lo, hi]) => {
      let found = ends.findIndex((end) => end <= lo);
      if (found < 0) found = ends.length;
      ends[found] = hi;
      return found;
    });
    return { row, rows: ends.length };
  }

  dw.scale = { step, ticks, stepOf, label, place, pack };
}
