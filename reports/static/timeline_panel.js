"use strict";
// What a timeline says in words: the chosen slice, the sums of a stretch, and the text beside the pointer.

class TimelinePanel {
  static ARROWS = 200; // most arrows of one slice
  static LINKED = 8; // most links to slices in a list
  static ROWS = 100; // most rows of the table of sums

  constructor(view) {
    this.view = view;
    this.data = view.data;
    this.box = make("div", { className: "picked", "aria-live": "polite" });
    this.rest();
    view.host.append(this.box, ...(view.helps ? [make("p", { className: "note keys", textContent: TimelineView.HELP })] : []));
  }

  rest() {
    this.box.replaceChildren(make("p", { className: "note", textContent: "Click a slice for its details and what launched it; drag over a stretch for its length and sums per name." }));
  }

  category(slice) { return TimelinePanel.word(this.data.categories[this.data.category[slice]]); }

  /** A category in words. */
  static word(name) {
    return { memcpy: "copy", memset: "fill", comm: "communication", runtime: "runtime call", dataloader: "data loading", cpu_op: "op", sync: "synchronisation", python: "Python frame", overhead: "profiler overhead" }[name] || name;
  }

  from(slice) { return exactTime(Math.abs(this.data.start[slice] - this.view.zero)).replace(/^/, this.data.start[slice] < this.view.zero ? "-" : ""); }

  length(slice) { return timeText(this.data.end[slice] - this.data.start[slice]); }

  nameOf(slice) { return this.data.names[this.data.name[slice]]; }

  /** The text beside the pointer: name, duration, start, category, what launched it. */
  short(slice) {
    const { data } = this, name = this.nameOf(slice), launch = data.launch[slice], detail = data.detail[slice];
    return [
      name.length > 160 ? `${name.slice(0, 160)}\u2026` : name, `${this.length(slice)}, ${this.category(slice)}`, `starts at ${this.from(slice)}`,
      ...(launch < 0 ? [] : [`launched by ${this.nameOf(launch).slice(0, 80)}, ${timeText(data.start[slice] - data.start[launch])} before`,
        ...data.around(launch).slice(0, 1).map(one => `in ${this.nameOf(one).slice(0, 80)}`)]),
      ...(detail < 1 ? [] : [data.details[detail - 1].slice(0, 160)]),
    ].join("\n");
  }

  /** The text beside the pointer where there is no slice. */
  title(item, x) {
    const { data, view } = this;
    if (item.kind === "counter") {
      const counter = data.counters[item.index], at = firstFrom(counter.times, view.painter.time(x) + 1, 0, counter.times.length) - 1;
      return `${counter.name}\n${at < 0 || x < view.painter.left ? (counter.words.length ? "" : `at most ${counter.amount(counter.most)}`) : counter.amount(counter.values[at])}`;
    }
    if (x >= view.painter.left) return "";
    if (item.kind === "process") return data.processes[item.index];
    const { name, first, rows } = data.tracks[item.index], count = data.rows[first + rows] - data.rows[first];
    return `${name}\n${countText(count)} slices in ${rows} ${rows === 1 ? "row" : "rows"}${item.folded ? ", folded: the outermost are drawn" : ""}`;
  }

  /** Pairs [launch, work] for the arrows of a slice, both ways. */
  links(slice) {
    const launch = this.data.launch[slice];
    this.launched = this.data.launchedBy(slice);
    const down = this.launched.slice(0, TimelinePanel.ARROWS).map(work => [this.data.launch[work], work]);
    return launch < 0 ? down : [[launch, slice], ...down];
  }

  /** A button that chooses a slice. */
  jump(slice, text) {
    return make("button", { type: "button", className: "jump", textContent: text || this.nameOf(slice), title: this.nameOf(slice), on: { click: () => this.view.choose(slice, true) } });
  }

  details(slice) {
    if (slice < 0) return this.rest();
    const { data, view } = this, launch = data.launch[slice], facts = [], add = (name, ...what) => facts.push(make("dt", { textContent: name }), make("dd", {}, ...what));
    const step = data.stepsOf[data.tracks[data.trackOf(slice)].process].findLast(([, from, to]) => data.start[slice] >= from && data.start[slice] < to);
    const nanoseconds = data.end[slice] - data.start[slice];
    add("duration", nanoseconds < 1000 ? this.length(slice) : `${this.length(slice)} (${countText(nanoseconds)} ns)`);
    add("start", `${this.from(slice)}${step ? `, ${timeText(data.start[slice] - step[1])} after ${data.nameOfStep(step[0])} began` : ""}`);
    add("track", data.tracks[data.trackOf(slice)].name);
    if (data.detail[slice] > 0) add("details", data.details[data.detail[slice] - 1]);
    if (launch >= 0) add("launched by", this.jump(launch), ` at ${this.from(launch)}, ${timeText(data.start[slice] - data.start[launch])} before it starts`);
    if (launch >= 0 && data.around(launch).length) add("launched in", ...data.around(launch).map(one => this.jump(one)));
    if (this.launched.length) {
      const total = this.launched.reduce((sum, one) => sum + data.end[one] - data.start[one], 0), more = this.launched.length - TimelinePanel.LINKED;
      const list = this.launched.slice(0, TimelinePanel.LINKED).map(one => this.jump(one));
      add("launched", `${countText(this.launched.length)} GPU ${this.launched.length === 1 ? "slice" : "slices"} of ${timeText(total)} in all: `, ...list, more > 0 ? ` and ${countText(more)} more` : null);
    }
    const around = data.around(slice);
    if (around.length) add("inside of", ...around.map(one => this.jump(one)));
    add("slice", String(data.slice[slice]), make("a", { href: `#${view.address}-slice-${data.slice[slice]}`, textContent: view.aligned ? "show it in its own timeline" : "link to it", className: "self" }));
    this.box.replaceChildren(
      make("p", { className: "what" }, make("i", { className: `swatch role-${data.categories[data.category[slice]]}` }), make("b", { textContent: this.category(slice) }), " ",
        make("code", { textContent: this.nameOf(slice) }), " ", make("button", { type: "button", className: "naming", textContent: "copy name", on: { click: () => this.copy() } }),
        make("button", { type: "button", className: "naming", textContent: "find all of this name", on: { click: () => { view.find.value = this.nameOf(slice); view.searchFor(view.find.value); } } })),
      make("dl", { className: "facts" }, ...facts),
    );
  }

  /** Put the name of the chosen slice on the clipboard. */
  async copy() {
    if (this.view.chosen < 0) return;
    const name = this.nameOf(this.view.chosen), button = this.box.querySelector(".naming");
    try {
      await navigator.clipboard.writeText(name);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(this.box.querySelector("code")); // a browser that forbids it: Ctrl+C does it
      button.textContent = "marked: press Ctrl+C";
    }
  }

  /** The table of a dragged stretch. */
  sums() {
    const { data, view } = this, { from, to, tracks } = view.range, rows = data.sums(from, to, tracks), shown = rows.slice(0, TimelinePanel.ROWS);
    const cell = (text, number, exact) => make("td", { className: number ? "n" : "", textContent: text, ...(exact === undefined ? {} : { "data-v": String(exact) }) });
    const count = rows.reduce((sum, row) => sum + row.count, 0);
    view.chosen = -1;
    view.linked = [];
    view.dirty();
    this.box.replaceChildren(
      make("p", {}, make("b", { textContent: timeText(to - from) }), ` from ${exactTime(Math.max(from - view.zero, 0))}: ${countText(count)} slices of ${countText(rows.length)} names on ${tracks.length} ${tracks.length === 1 ? "track" : "tracks"}`
        + `${shown.length < rows.length ? `, ${shown.length} names shown` : ""}. Times count only what lies inside; nested slices count in each other.`),
      make("div", { className: "scroll sums", tabIndex: 0, role: "region", "aria-label": "sums per name" }, make("table", {},
        make("thead", {}, make("tr", {}, ...["name", "kind", "slices", "total", "share of the stretch", "mean"].map((text, at) => make("th", { textContent: text, scope: "col", className: at > 1 ? "n" : "" })))),
        make("tbody", {}, ...shown.map(row => make("tr", {},
          make("td", { className: "namecell" }, make("span", { className: "name", textContent: data.names[row.name], title: data.names[row.name] })),
          make("td", {}, make("i", { className: `swatch role-${data.categories[row.category]}` }), TimelinePanel.word(data.categories[row.category])),
          cell(countText(row.count), true, row.count), cell(timeText(row.total), true, row.total), cell(percentText(row.total / (to - from)), true), cell(timeText(row.total / row.count), true)))))),
    );
  }
}
