// How numbers and times are written.

const DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const shown = (value) =>
  value === null || value === undefined ? "–"
    : Math.abs(value) >= 1000 ? WHOLE.format(value) : DIGITS.format(value);

// A mean count over an interval, to a hundredth.
const LEVEL = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
export const level = (value) =>
  value > 0 && value < 0.01 ? "less than 0.01" : value < 10 ? LEVEL.format(value) : shown(value);

// Seconds as days and a clock; short runs have decimals.
export function clock(seconds, span) {
  const decimals = span < 20 ? 3 : span < 2000 ? 1 : 0;
  const sign = seconds < 0 ? "−" : "";
  const scale = 10 ** decimals;
  const parts = Math.round(Math.abs(seconds) * scale);
  const whole = Math.floor(parts / scale);
  const two = (number) => String(number).padStart(2, "0");
  const days = Math.floor(whole / 86400);
  const rest = `${two(Math.floor(whole / 3600) % 24)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  const fraction = decimals ? `.${String(parts % scale).padStart(decimals, "0")}` : "";
  return `${sign}${days ? `${days} d ` : ""}${rest}${fraction}`;
}

// Seconds and name of the unit for a time of that length.
export const unitOf = (span) =>
  [[86400, "days"], [3600, "hours"], [60, "minutes"]].find(([seconds]) => span >= 3 * seconds) ?? [1, "s"];

export const counted = (count, what) => `${shown(count)} ${what}${count === 1 ? "" : "s"}`;

// An element with attributes, and texts or elements in it.
export function make(name, attributes = {}, ...inner) {
  const one = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  one.append(...inner);
  return one;
}

// A long name by its ends: names of many VOs share their beginning.
export const ends = (name) => (name.length > 9 ? `${name.slice(0, 3)}…${name.slice(-5)}` : name);
