// How words, numbers and times are written. Which words there are, `/status` says.

/** The states of entries, what needs attention first. */
export const STATES = ["failed", "timed_out", "check_failed", "unknown", "stale", "retrying", "running", "complete"];

export const number = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export const capital = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
/** A state of ours as people write it; what plugins call theirs is shown as it is. */
export const label = (word) => capital(word.replaceAll("_", " "));

export const count = (many, one) => `${number.format(many)} ${one}${many === 1 ? "" : "s"}`;

export function age(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  const whole = Math.floor(seconds / 3600);
  return whole < 48 ? `${whole} h ago` : `${Math.floor(whole / 24)} days ago`;
}

export function size(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let unit = 0, value = bytes;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

export function when(text) {
  const date = new Date(text);
  return isNaN(date) ? text : clock.format(date);
}

/** How many tests had which outcome. */
export const outcomes = (counts) => Object.entries(counts ?? {}).filter(([, many]) => many > 0).sort()
  .map(([word, many]) => `${number.format(many)} ${word}`).join(", ");

export const sumOf = (counts) => Object.values(counts ?? {}).reduce((sum, many) => sum + many, 0);

/** All tests, and how many had which outcome; nothing where there are none. */
export function tested(counts) {
  const tests = sumOf(counts);
  return tests ? `${count(tests, "test")}: ${outcomes(counts)}` : "";
}
