/*
 * Nanoseconds as text, as core/simulation/words.py and command.py write them.
 *
 * Nanoseconds of a day, and their products with a hundred nodes or percent, are below 2^53: here
 * every number is exact, and divisions are of whole numbers.
 */
{
  const NS_PER_S = 1e9;
  const NS_PER_MS = 1e6;

  /** Python's a // b and a % b, for a positive b. */
  function modulo(a, b) {
    const rest = a % b;
    return rest < 0 ? rest + b : rest;
  }
  function floored(a, b) {
    return (a - modulo(a, b)) / b;
  }

  function trimmed(whole, fraction, digits) {
    if (fraction === 0) return String(whole);
    return `${whole}.${String(fraction).padStart(digits, "0").replace(/0+$/, "")}`;
  }

  /** Without a digit lost: 2500000000 -> "2.5". */
  function exactSeconds(ns) {
    return trimmed(floored(ns, NS_PER_S), modulo(ns, NS_PER_S), 9);
  }

  /** To the millisecond: "2.667 s". */
  function seconds(ns) {
    const ms = floored(Math.abs(ns) + NS_PER_MS / 2, NS_PER_MS);
    return `${ns < 0 ? "-" : ""}${trimmed(floored(ms, 1000), modulo(ms, 1000), 3)} s`;
  }

  Object.assign(dw.simulation, {
    modulo,
    floored,
    exactSeconds,
    seconds,
    /** An instant within a sentence. */
    when: (ns) => (ns >= 0 ? `at ${seconds(ns)}` : `${seconds(-ns)} before the deletion`),
    /** A source within a sentence. */
    named: (source) => (source.startsWith("node ") ? source : `the ${source}`),
    counted: (count, thing) => (count === 1 ? `1 ${thing}` : `${count} ${thing}s`),
    /** An instant since the deletion wears a sign, so that nobody takes it for a duration. */
    instant: (ns) => (ns > 0 ? `+${seconds(ns)}` : seconds(ns).replace("-", "\u2212")),
  });
}
