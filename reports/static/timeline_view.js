"use strict";
// One timeline on the page: its buttons, what the pointer and the keys do, and which part of the trace is shown.

/** An element with properties, attributes (names with a dash, role) and children. */
const make = (tag, properties = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") node.setAttribute(name, value);
    else if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else node[name] = value;
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
};

class TimelineView {
  static LEAST_NS = 50;
  static KEYS = {
    w: "in", s: "out", a: "left", d: "right", "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right",
    0: "whole", t: "typical", "[": "before", "]": "after", f: "fit", "/": "find", n: "next", N: "back", ".": "slice after", ",": "slice before", c: "copy", Escape: "clear",
  };
  static HELP = "Keys: W/S or +/- zoom, A/D or arrows move, 0 whole trace, T typical steps, [ ] step by step, F fit the chosen slice, comma and period slice before and after, "
    + "/ search, N and Shift+N next and previous hit, C copy the name, Esc clear. Ctrl+wheel zooms, Shift+wheel moves, the plain wheel "
    + "scrolls the page. Drag to measure and sum a stretch; Shift+drag moves. Click a name on the left to fold its track.";

  /**
   * host: the element that it fills. data: TimelineData. options: label; zero: the time that the ruler calls 0;
   * low, high: what can be shown; from, to: what is shown first; address: begin of links to slices; aligned: it is one of
   * two that move together; helps: whether the keys are listed below it.
   */
  constructor(host, data, options) {
    Object.assign(this, { host, data, zero: 0, low: 0, high: data.span, aligned: false, helps: true }, options);
    this.home = [this.from, this.to];
    this.scroll = 0;
    this.chosen = this.hovered = -1;
    this.linked = [];
    this.range = this.search = this.grip = this.moved = this.searched = null;
    this.folded = TimelineView.foldedAtFirst(data);
    this.build();
    this.painter = new TimelinePainter(this.canvas, data);
    this.panel = new TimelinePanel(this);
    this.listen();
    this.relayout();
  }

  /** Python frames, copies of annotations and all ranks but four are folded at first. */
  static foldedAtFirst(data) {
    const folded = new Set();
    data.tracks.forEach((track, index) => { if (track.kind === "python" || track.kind === "annotations") folded.add(`track ${index}`); });
    data.processes.forEach((_, process) => { if (process > 3) folded.add(`process ${process}`); });
    return folded;
  }

  build() {
    const button = (action, text, title) => make("button", { type: "button", textContent: text, title, "data-do": action, on: { click: () => this.act(action) } });
    this.find = make("input", { type: "search", placeholder: "search names", "aria-label": "search the names of slices" });
    this.hits = make("output", { className: "hits", "aria-live": "polite" });
    this.extent = make("span", { className: "range" });
    this.tools = make("div", { className: "tools", role: "group", "aria-label": "view of the timeline" },
      button("in", "+", "zoom in (W)"), button("out", "\u2212", "zoom out (S)"), button("left", "\u2190", "earlier (A)"),
      button("right", "\u2192", "later (D)"), this.data.steps.length && !this.data.run && !this.aligned ? button("typical", "typical steps", "the typical step, whose time is nearest to the median, and the next one (T)") : null,
      this.aligned ? button("whole", this.data.run ? "whole run" : "whole step", `all of the longer ${this.data.run ? "run" : "step"} (0)`) : button("whole", "whole trace", "from the first to the last slice (0)"), make("span", { className: "finder" }, this.find,
        button("back", "\u2191", "hit before (Shift+N)"), button("next", "\u2193", "next hit (N)"), this.hits), this.extent);
    this.canvas = make("canvas", { tabIndex: 0, role: "application", "aria-label": `timeline of ${this.label}`, "aria-description": TimelineView.HELP });
    this.tall = make("div", { className: "tall" }, this.canvas);
    this.box = make("div", { className: "box" }, this.tall);
    this.tip = make("div", { className: "tip", hidden: true });
    this.host.append(this.tools, this.box, this.tip);
  }

  listen() {
    const { canvas, box } = this;
    for (const name of ["pointerdown", "pointermove", "pointerup", "pointercancel", "pointerleave", "wheel"]) {
      canvas.addEventListener(name, event => this[name](event), { passive: false });
    }
    canvas.addEventListener("pointerenter", () => { // so that the keys work without a click
      if (document.activeElement === document.body) canvas.focus({ preventScroll: true });
    });
    box.addEventListener("scroll", () => { this.scroll = box.scrollTop; this.dirty(); });
    this.host.addEventListener("keydown", event => this.keydown(event));
    this.find.addEventListener("input", () => this.searchFor(this.find.value));
    this.find.addEventListener("keydown", event => {
      event.stopPropagation();
      if (event.key === "Enter") this.act(event.shiftKey ? "back" : "next");
      if (event.key === "Escape") { this.act("clear"); canvas.focus(); }
    });
    new ResizeObserver(() => this.dirty()).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.painter.palette(); this.dirty(); });
  }

  relayout() {
    this.tall.style.height = `${this.painter.layout(this.folded, this.aligned)}px`;
    this.dirty();
  }

  /** Draw with the next frame. */
  dirty() {
    this.canvas.dataset.from = this.from;
    this.canvas.dataset.to = this.to;
    this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  draw() {
    const width = this.box.clientWidth, height = Math.min(this.box.clientHeight, this.tall.clientHeight);
    if (!width || !height) return;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const first = !this.canvas.dataset.drawn;
    this.canvas.dataset.drawn = this.painter.draw(this, width, height);
    if (first) performance.mark("timeline drawn");
    this.extent.textContent = `${timeText(this.from - this.zero)} to ${timeText(this.to - this.zero)} (${timeText(this.to - this.from)})`;
  }

  /** Show from a to b ns, as far as the trace and the smallest width allow. */
  show(a, b, silent = false) {
    const most = this.high - this.low, size = Math.min(Math.max(b - a, Math.min(TimelineView.LEAST_NS, most)), most);
    this.from = Math.min(Math.max(a, this.low), this.high - size);
    this.to = this.from + size;
    this.dirty();
    if (!silent && this.moved) this.moved(this.from - this.zero, this.to - this.zero);
  }

  zoom(factor) {
    const middle = this.pointer >= this.painter.left ? this.painter.time(this.pointer) : (this.from + this.to) / 2;
    this.show(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  }

  move(part) { this.show(this.from + part * (this.to - this.from), this.to + part * (this.to - this.from)); }

  act(action) {
    const { data } = this;
    if (action === "in" || action === "out") this.zoom(action === "in" ? 0.5 : 2);
    else if (action === "left" || action === "right") this.move(action === "left" ? -0.25 : 0.25);
    else if (action === "whole") this.show(this.low, this.high);
    else if (action === "typical") this.show(...this.home);
    else if (action === "before" || action === "after") this.toStep(action === "after");
    else if (action === "fit" && this.chosen >= 0) this.fit(data.start[this.chosen], data.end[this.chosen]);
    else if (action === "fit" && this.range) this.fit(this.range.from, this.range.to);
    else if (action.startsWith("slice ")) this.choose(data.beside(this.chosen, action === "slice after", this.from), true);
    else if (action === "find") this.find.focus();
    else if (action === "next" || action === "back") this.hit(action === "back");
    else if (action === "copy") this.panel.copy();
    else if (action === "clear") {
      this.range = null;
      this.find.value = "";
      this.searchFor("");
      this.choose(-1);
    }
  }

  /** A stretch with a quarter of it on each side. */
  fit(from, to) {
    const side = Math.max((to - from) / 4, 20);
    this.show(from - side, to + side);
  }

  /** The step after or before the one in the middle of the view. */
  toStep(later) {
    const { steps, stepsOf } = this.data, mine = steps.length ? stepsOf[steps[0][1]] : [], middle = (this.from + this.to) / 2;
    const now = mine.findIndex(step => step[2] > middle), place = now < 0 ? mine.length : now;
    const step = mine[Math.min(Math.max(place + (later ? 1 : -1), 0), mine.length - 1)];
    if (step) this.show(step[1], step[2]);
  }

  keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
    if (event.target.closest("button") && !/^[a-z/[\]]$/i.test(event.key)) return;
    const action = TimelineView.KEYS[event.key] || (event.shiftKey ? undefined : TimelineView.KEYS[event.key.toLowerCase()]);
    if (!action) return;
    event.preventDefault();
    this.act(action);
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.pointer = event.offsetX;
      this.zoom(1.0015 ** Math.max(Math.min(event.deltaY, 400), -400));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.move((event.deltaX || event.deltaY) / 1000);
    }
  }

  pointerdown(event) {
    if (event.button) return;
    const moves = event.shiftKey || event.pointerType === "touch";
    this.grip = { x: event.offsetX, y: event.offsetY, from: this.from, to: this.to, moves, far: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  pointermove(event) {
    const { grip, painter } = this, [x, y] = [event.offsetX, event.offsetY];
    this.pointer = x;
    if (!grip) return this.hover(x, y);
    if (Math.abs(grip.x - x) > 3) grip.far = true;
    if (!grip.far) return;
    this.tip.hidden = true;
    if (grip.moves) {
      const shift = (grip.x - x) / (painter.width - painter.left) * (grip.to - grip.from);
      this.show(grip.from + shift, grip.to + shift);
    } else if (Math.max(grip.x, x) > painter.left) this.measure(grip, x, y);
  }

  pointerup(event) {
    const { grip } = this;
    this.grip = null;
    if (!grip) return;
    if (grip.far) { if (!grip.moves && this.range) this.panel.sums(); return; }
    const found = this.painter.itemAt(grip.y);
    if (found && (grip.x < this.painter.left || found.item.kind === "process")) this.fold(found.item);
    else { this.range = null; this.choose(this.sliceAt(grip.x, grip.y), event); }
  }

  pointercancel() { this.grip = null; }

  pointerleave() {
    this.pointer = -1;
    this.tip.hidden = true;
    if (this.hovered >= 0) { this.hovered = -1; this.dirty(); }
  }

  /** A dragged stretch: the tracks between its ends; from the ruler, all. */
  measure(grip, x, y) {
    const { painter } = this, times = [grip.x, x].map(one => Math.min(Math.max(painter.time(Math.max(one, painter.left)), this.low), this.high));
    const [top, bottom] = [Math.min(grip.y, y), Math.max(grip.y, y)], ruler = grip.y < TimelinePainter.AXIS;
    const tracks = painter.items.filter(item => item.kind === "track"
      && (ruler || (painter.top(item) <= bottom && painter.top(item) + item.height > top))).map(item => item.index);
    this.range = { from: Math.round(Math.min(...times)), to: Math.round(Math.max(...times)), tracks };
    this.dirty();
  }

  fold(item) {
    const key = `${item.kind} ${item.index}`;
    if (!this.folded.delete(key)) this.folded.add(key);
    this.relayout();
  }

  sliceAt(x, y) {
    const { painter } = this, found = x >= painter.left ? painter.itemAt(y) : null;
    if (!found || found.row < 0) return -1;
    return this.data.at(found.row, painter.time(x), 1.5 * (this.to - this.from) / (painter.width - painter.left));
  }

  hover(x, y) {
    const now = this.sliceAt(x, y), found = this.painter.itemAt(y);
    const text = now >= 0 ? this.panel.short(now) : found ? this.panel.title(found.item, x) : "";
    this.canvas.style.cursor = now >= 0 || (found && x < this.painter.left) ? "pointer" : "crosshair";
    this.tip.hidden = !text;
    if (text) {
      this.tip.replaceChildren(...text.split("\n").map((line, at) => make("div", { className: at ? "" : "first", textContent: line })));
      const right = Math.max(this.box.clientWidth - this.tip.offsetWidth - 8, 0);
      this.tip.style.left = `${Math.min(x + 14, right)}px`;
      this.tip.style.top = `${this.box.offsetTop + y + 18}px`;
    }
    if (now !== this.hovered) { this.hovered = now; this.dirty(); }
  }

  /** Choose a slice, -1 for none; `bring` brings it into view. */
  choose(slice, bring) {
    this.chosen = slice;
    this.linked = slice < 0 ? [] : this.panel.links(slice);
    if (slice >= 0 && bring === true) this.bring(slice);
    this.panel.details(slice);
    this.dirty();
  }

  /** Unfold the track of a slice and move the view so that the slice can be seen. */
  bring(slice) {
    const { data } = this, row = data.rowOf(slice), index = data.trackOfRow[row], track = data.tracks[index];
    this.folded.delete(`process ${track.process}`);
    if (row > track.first) this.folded.delete(`track ${index}`);
    this.relayout();
    const [start, end] = [data.start[slice], data.end[slice]], size = this.to - this.from;
    if (end - start > size || end - start < size / 400) this.fit(start, Math.max(end, start + 400));
    else if (start < this.from || end > this.to) this.show((start + end - size) / 2, (start + end + size) / 2);
    const item = this.painter.items.find(one => one.kind === "track" && one.index === index);
    const top = item.top + (row - track.first) * TimelinePainter.ROW, high = this.box.clientHeight - TimelinePainter.AXIS;
    if (top < this.box.scrollTop || top + 40 > this.box.scrollTop + high) this.box.scrollTop = Math.max(top - high / 3, 0);
  }

  searchFor(text, silent = false) {
    if (!silent && this.searched) this.searched(text);
    this.search = text ? this.data.search(text) : null;
    this.hits.textContent = this.search ? `${countText(this.search.count)} ${this.search.count === 1 ? "slice" : "slices"}` : "";
    this.dirty();
  }

  hit(back) {
    if (!this.search || !this.search.count) return;
    const { found, number } = this.data.nextHit(this.search, this.chosen, back);
    this.choose(found, true);
    this.hits.textContent = `${countText(number)} of ${countText(this.search.count)}`;
  }
}
