// Formats numbers, shares and dates.
"use strict";

/** Write a number with `digits` significant digits, or more if `spread` is small beside it. */
function numberText(value, digits = 4, spread = Infinity) {
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (spread > 0 && spread < Infinity) {
    digits = Math.max(digits, digits + size - Math.floor(Math.log10(spread)));
  }
  digits = Math.min(digits, 15);
  if (size < -4 || size >= 9)
    return minusSign(value.toExponential(Math.min(digits, 4) - 1).replace("e+", "e"));
  const decimals = Math.min(Math.max(0, digits - 1 - size), 15);
  return minusSign(withoutZeros(value.toFixed(decimals)));
}

/** Write a number of the model: in full if it has at most nine digits, else with three or more. */
function modelText(value, spread = Infinity) {
  const short = Number(value.toPrecision(9));
  const isShort = Math.abs(value - short) <= 1e-14 * Math.abs(value);
  return isShort ? minusSign(String(short).replace("e+", "e")) : numberText(value, 3, spread);
}

/** Write a probability as a percentage: that of a leaf in full if it is short. */
function probabilityText(value) {
  const percent = Number((100 * value).toPrecision(7));
  return Math.abs(percent - 100 * value) <= 1e-12 ? `${modelText(percent)} %` : shareText(value);
}

function withoutZeros(text) {
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

function minusSign(text) {
  return text.replace(/(^|e)-/g, "$1−");
}

/** Write a count of rows, which sample weights may have made fractional. */
function countText(count) {
  return Number.isInteger(count) ? count.toLocaleString("en") : numberText(count);
}

function plural(n, one, many = one + "s") {
  return `${countText(n)} ${n === 1 ? one : many}`;
}

/** Write a share of one as a percentage. */
function shareText(share) {
  const percent = 100 * share;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent < 100 && percent > 99.9) return "> 99.9 %";
  return `${percent === 0 || percent === 100 ? percent : percent.toFixed(1)} %`;
}

/** Write a number as in the table: as a date, a duration, a boolean or a number. */
function quantityText(value, origin, spread = Infinity) {
  if (origin === "date") return dateText(value, spread);
  if (origin === "duration") return durationText(value);
  if (origin === "boolean" && (value === 0 || value === 1)) return value ? "true" : "false";
  return numberText(value, 3, spread);
}

const DAY = 86400;
const TIME_UNITS = [
  ["day", DAY],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

function dateText(seconds, spread = 1) {
  const date = new Date(1000 * seconds);
  if (Number.isNaN(date.getTime())) return numberText(seconds, 12);
  const text = date.toISOString();
  return spread >= 10 * DAY ? text.slice(0, 10) : text.slice(0, 19).replace("T", " ");
}

function durationText(seconds) {
  const [name, unit] = TIME_UNITS.find(([, size]) => size <= Math.abs(seconds)) ?? TIME_UNITS[3];
  return `${numberText(seconds / unit, 4)} ${name}s`;
}
