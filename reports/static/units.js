"use strict";
// Numbers as text, as contract/units.py formats them. The other scripts of the page use it.
// The twin of `time_text` in contract/units.py; tests/contract/test_units.py holds them equal.
const significantDigits = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, roundingMode: "halfEven", useGrouping: false });
const timeText = ns => {
  if (Math.abs(ns) < 0.05) return "0 ns";
  const units = ["ns", "us", "ms", "s"];
  let size = 1, place = 0;
  while (place < 3 && Math.abs(Number(significantDigits.format(ns / size))) >= 1e3) { size *= 1e3; place += 1; }
  const shown = ns / size;
  return `${Math.abs(shown) < 9999.5 ? significantDigits.format(shown) : shown.toFixed(0)} ${units[place]}`;
};
// A time with all its digits in the unit that suits it: "41.196441 ms".
const exactTime = ns => {
  const [size, unit] = ns >= 1e9 ? [9, "s"] : ns >= 1e6 ? [6, "ms"] : ns >= 1e3 ? [3, "us"] : [0, "ns"];
  const digits = String(Math.round(ns)).padStart(size + 1, "0");
  const whole = digits.slice(0, digits.length - size), part = size ? digits.slice(-size).replace(/0+$/, "") : "";
  return `${whole}${part ? `.${part}` : ""} ${unit}`;
};
// The twin of `count_text`: "12 345".
const countText = count => String(count).replace(/\B(?=(\d{3})+$)/g, " ");
// The twin of `percent_text`: "50.0 %".
const oneDecimal = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1, roundingMode: "halfEven", useGrouping: false });
const percentText = share => `${oneDecimal.format(100 * share)} %`;
// The twin of `bytes_text`: "1.5 MiB".
const bytesText = count => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = 1, place = 0;
  while (place < 4 && Math.abs(Number(significantDigits.format(count / size))) >= 1024) { size *= 1024; place += 1; }
  const shown = count / size;
  return `${Math.abs(shown) < 9999.5 ? significantDigits.format(shown) : shown.toFixed(0)} ${units[place]}`;
};
