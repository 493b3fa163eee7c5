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
