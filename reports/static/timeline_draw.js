"use strict";
// Draws a timeline on a canvas. The rows of slices are painted pixel by pixel: slices that are narrower than a
// pixel become one pixel together, found by a binary search, so that a picture costs what its pixels cost and
// not what the slices cost. Its colour is that of its longest slice, its strength says how much of it is covered.

class TimelinePainter {
  static ROW = 16;
  static BOX = 13;
  static GAP = 8;
  static AXIS = 36;
  static COUNTER = 40;
  static SHADES = 16;
  static FONT = "11px ui-monospace, 'SF Mono', Menlo, Consolas, monospace";

  constructor(canvas, data) {
    this.canvas = canvas;
    this.data = data;
    this.context = canvas.getContext("2d", { alpha: false });
    this.items = [];
    this.left = 0;
    this.palette();
  }

  /** Colours of the style sheet, and a table of shades: [faded][category][share of the pixel that is covered]. */
  palette() {
    const style = getComputedStyle(document.documentElement);
    const get = name => style.getPropertyValue(`--${name}`).trim();
    this.colours = Object.fromEntries(["text", "soft", "rule", "bg", "panel", "accent", "share"].map(name => [name, get(name)]));
    const rgb = text => {
      this.context.fillStyle = "#000";
      this.context.fillStyle = text;
      const value = parseInt(this.context.fillStyle.slice(1), 16);
      return [value >> 16 & 255, value >> 8 & 255, value & 255];
    };
    const ground = rgb(this.colours.bg), rich = this.data.categories.map(name => rgb(get(name) || "#888"));
    const pixel = parts => (255 << 24 | parts[2] << 16 | parts[1] << 8 | parts[0]) >>> 0;
    const mixed = (colour, share) => pixel(colour.map((part, at) => Math.round(part * share + ground[at] * (1 - share))));
    const levels = strength => rich.map(colour => Uint32Array.from({ length: TimelinePainter.SHADES }, (_, level) =>
      mixed(colour, strength * (0.35 + 0.65 * level / (TimelinePainter.SHADES - 1)))));
    this.shades = [levels(1), levels(0.25)];
    this.ground = pixel(ground);
    this.rule = pixel(rgb(this.colours.rule));
    const light = parts => parts.map(part => (part / 255) ** 2.2).reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    this.ink = rich.map(colour => (light(colour) > 0.22 ? "#000" : "#fff"));
  }

  /** Where each process, track and counter stands, GPUs above the host if `gpusFirst`; returns the height of all. */
  layout(folded, gpusFirst) {
    const { ROW, GAP, COUNTER } = TimelinePainter, several = this.data.processes.length > 1;
    this.items = [];
    let top = 4;
    const add = (kind, index, height, more = {}) => { this.items.push({ kind, index, top, height, ...more }); top += height + GAP; };
    this.data.processes.forEach((_, process) => {
      const hidden = several && folded.has(`process ${process}`);
      if (several) add("process", process, ROW, { folded: hidden });
      if (hidden) return;
      const tracks = [...this.data.tracks.entries()].filter(([, track]) => track.process === process);
      if (gpusFirst) tracks.sort(([, one], [, other]) => (other.kind === "gpu") - (one.kind === "gpu"));
      tracks.forEach(([index, track]) => {
        const short = track.rows > 1 && folded.has(`track ${index}`);
        add("track", index, (short ? 1 : track.rows) * ROW, { folded: short, rows: short ? 1 : track.rows });
      });
      this.data.counters.forEach((counter, index) => { if (counter.process === process) add("counter", index, COUNTER); });
    });
    return top + TimelinePainter.AXIS;
  }

  x(time) { return this.left + (time - this.view.from) / (this.view.to - this.view.from) * (this.width - this.left); }

  time(x) { return this.view.from + (x - this.left) / (this.width - this.left) * (this.view.to - this.view.from); }

  /** What stands at a height of the canvas: its item and row. */
  itemAt(y) {
    if (y < TimelinePainter.AXIS) return null;
    const down = y - TimelinePainter.AXIS + this.view.scroll;
    const item = this.items.find(one => down >= one.top && down < one.top + one.height);
    if (!item) return null;
    const row = item.kind === "track" ? this.data.tracks[item.index].first + Math.floor((down - item.top) / TimelinePainter.ROW) : -1;
    return { item, row };
  }

  /** The top of an item on the canvas. */
  top(item) { return TimelinePainter.AXIS + item.top - this.view.scroll; }

  /** Where a slice is drawn, as [x, y, width, height]; null where its track is folded away. */
  box(slice) {
    const row = this.data.rowOf(slice), track = this.data.trackOfRow[row];
    const item = this.items.find(one => one.kind === "track" && one.index === track);
    if (!item) return null;
    const down = Math.min(row - this.data.tracks[track].first, item.rows - 1);
    const a = Math.max(this.x(this.data.start[slice]), this.left), b = Math.min(this.x(this.data.end[slice]), this.width);
    return [a, this.top(item) + down * TimelinePainter.ROW, Math.max(b - a, 1), TimelinePainter.BOX];
  }

  /** Draw everything. `view` is a TimelineView. Returns how many slices and groups of slices were painted. */
  draw(view, width, height) {
    const ratio = window.devicePixelRatio || 1, { canvas, context } = this;
    this.view = view;
    this.width = width;
    this.height = height;
    this.left = width < 700 ? 96 : 190;
    const wide = Math.round(width * ratio), high = Math.round(height * ratio);
    if (canvas.width !== wide || canvas.height !== high || !this.image) {
      canvas.width = wide;
      canvas.height = high;
      this.image = context.createImageData(wide, high);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(this.ground);
    this.labels = [];
    const seen = this.items.filter(item => this.top(item) + item.height > TimelinePainter.AXIS && this.top(item) < height);
    let drawn = 0;
    for (const item of seen) if (item.kind === "track") drawn += this.track(item, ratio);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(this.image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = TimelinePainter.FONT;
    this.letter ||= context.measureText("0").width;
    this.names();
    for (const item of seen) this.head(item);
    context.fillStyle = this.colours.rule;
    context.fillRect(this.left - 1, TimelinePainter.AXIS, 1, height);
    this.marks();
    this.axis(this.steps());
    return drawn;
  }

  track(item, ratio) {
    const { ROW, BOX, AXIS } = TimelinePainter, { first, process } = this.data.tracks[item.index];
    const left = Math.round(this.left * ratio), wide = this.canvas.width;
    const line = new Uint32Array(wide - left), ground = new Uint32Array(wide - left).fill(this.ground);
    for (const x of this.begins(process)) ground[Math.round((x - this.left) * ratio)] = this.rule;
    let drawn = 0;
    for (let down = 0; down < item.rows; down += 1) {
      const y = this.top(item) + down * ROW;
      if (y + BOX <= AXIS || y >= this.height) continue;
      line.set(ground);
      drawn += this.row(first + down, line, y, ratio);
      const stop = Math.min(Math.round((y + BOX) * ratio), this.canvas.height);
      for (let at = Math.max(Math.round(y * ratio), 0); at < stop; at += 1) this.pixels.set(line, at * wide + left);
    }
    return drawn;
  }

  /** One row of slices as a line of pixels. */
  row(row, line, y, ratio) {
    const { data, view } = this, { start, end, before, longest, category, name } = data;
    const stop = data.rows[row + 1], size = (view.to - view.from) / line.length, hits = view.search;
    let drawn = 0, at = data.firstAt(row, view.from);
    while (at < stop && start[at] < view.to) {
      const a = (start[at] - view.from) / size, b = (end[at] - view.from) / size;
      drawn += 1;
      if (b - a >= 1.5) {
        const x0 = Math.max(Math.round(a), 0), x1 = Math.min(Math.max(Math.round(b), x0 + 1), line.length);
        const faded = hits && !hits.hit[name[at]] ? 1 : 0;
        line.fill(this.shades[faded][category[at]][TimelinePainter.SHADES - 1], x0, x1 - (x1 - x0 > 3 ? 1 : 0));
        if ((x1 - x0) / ratio > 26) this.labels.push(at, this.left + x0 / ratio, y, (x1 - x0) / ratio);
        at += 1;
        continue;
      }
      const pixel = Math.max(Math.floor(a), 0), limit = view.from + (pixel + 1) * size;
      let next = at + 1;
      if (next < stop && start[next] < limit) {
        let reach = 2; // doubling steps: the end of a pixel is near, or far where many slices share it
        while (next + reach < stop && start[next + reach] < limit) reach *= 2;
        next = firstFrom(start, limit, next, Math.min(next + reach, stop));
      }
      let best = longest.of(at, next);
      if (end[best] - start[best] >= 1.5 * size && best > at) { // it has pixels of its own, next time round
        next = best;
        best = longest.of(at, next);
      }
      const covered = Math.min((before[next] - before[at]) / size, 1);
      const level = next === at + 1 && covered < 0.2 ? TimelinePainter.SHADES >> 1 : Math.round(covered * (TimelinePainter.SHADES - 1));
      const faded = hits && hits.before[next] === hits.before[at] ? 1 : 0;
      if (pixel < line.length) line[pixel] = this.shades[faded][category[best]][hits && !faded ? TimelinePainter.SHADES - 1 : level];
      at = next;
    }
    return drawn;
  }

  /** Names inside of slices that are wide enough. */
  names() {
    const { context, labels, data } = this;
    context.textBaseline = "middle";
    for (let at = 0; at < labels.length; at += 4) {
      const slice = labels[at], room = Math.floor((labels[at + 3] - 6) / this.letter), text = data.names[data.name[slice]];
      context.fillStyle = this.ink[data.category[slice]];
      if (this.view.search && !this.view.search.hit[data.name[slice]]) context.fillStyle = this.colours.soft;
      context.fillText(text.length > room ? text.slice(0, room) : text, labels[at + 1] + 3, labels[at + 2] + 7);
    }
  }

  /** The name of a process, track or counter, on the left; and the line of a counter. */
  head(item) {
    const { context, colours, data, left } = this, { GAP, AXIS, ROW } = TimelinePainter, y = this.top(item);
    context.fillStyle = colours.rule;
    context.fillRect(0, y - GAP / 2, this.width, 1);
    const counter = item.kind === "counter" && data.counters[item.index];
    if (counter) counter.words.length ? this.band(counter, y) : this.counter(counter, y);
    const track = item.kind === "track" && data.tracks[item.index];
    const top = Math.min(Math.max(y, AXIS + 4), y + item.height - ROW); // a name stays in sight as long as its track
    const text = item.kind === "process" ? data.processes[item.index] : track ? track.name : data.counters[item.index].name;
    const arrow = item.kind === "process" || (track && track.rows > 1) ? (item.folded ? "\u25b8 " : "\u25be ") : "  ";
    context.fillStyle = item.kind === "process" ? colours.text : colours.soft;
    const room = Math.floor(((item.kind === "process" ? this.width : left) - 8) / this.letter);
    this.lines(arrow + text, room, top + 24 < y + item.height ? 2 : 1).forEach((part, line) => context.fillText(part, 4, top + 7 + 13 * line));
    if (counter && !counter.words.length) context.fillText(`  at most ${counter.amount(counter.most)}`, 4, y + 33);
  }

  /** A text in at most `most` lines of `room` letters; what does not fit is cut. */
  lines(text, room, most) {
    if (text.length <= room) return [text];
    if (most === 1) { // the end of a name tells as much as its begin
      const head = Math.ceil((room - 1) * 0.45);
      return [`${text.slice(0, head)}\u2026${text.slice(text.length - Math.max(room - 1 - head, 0))}`];
    }
    const gap = text.lastIndexOf(" ", room), cut = gap > 4 ? gap : room;
    return [text.slice(0, cut), ...this.lines(`  ${text.slice(cut).trim()}`, room, most - 1)];
  }

  /** A counter as an area from 0; each pixel shows the largest value in it. */
  counter(counter, y) {
    const { context, colours, view, left, width } = this, { times, values, largest, most, least } = counter;
    const high = TimelinePainter.COUNTER - 4, scale = most > least ? high / (most - least) : 0;
    const size = (view.to - view.from) / (width - left);
    context.fillStyle = colours.accent;
    context.globalAlpha = 0.45;
    for (let at = firstFrom(times, view.from, 0, times.length) - 1, x = 0; x < width - left; x += 1) {
      const next = firstFrom(times, view.from + (x + 1) * size, Math.max(at, 0), times.length);
      if (next === 0) continue;
      const value = values[largest.of(Math.max(at, 0), Math.max(next, Math.max(at, 0) + 1))];
      context.fillRect(left + x, y + high - (Math.max(value, 0) - least) * scale, 1, Math.abs(value) * scale);
      at = next - 1;
    }
    context.globalAlpha = 1;
  }

  /** States as a band: a bar with its words while there is something to be told. */
  band(counter, y) {
    const { context, colours, view, left, width } = this, { times, values, words } = counter;
    for (let at = Math.max(firstFrom(times, view.from + 1, 0, times.length) - 1, 0); at < times.length && times[at] < view.to; at += 1) {
      if (!values[at]) continue;
      const from = Math.max(this.x(times[at]), left), to = at + 1 < times.length ? Math.min(this.x(times[at + 1]), width) : width;
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.45;
      context.fillRect(from, y + 4, Math.max(to - from, 1), TimelinePainter.COUNTER - 12);
      context.globalAlpha = 1;
      context.fillStyle = colours.text;
      const room = Math.floor((to - from - 6) / this.letter);
      if (room > 3) context.fillText(this.lines(words[values[at]], room, 1)[0], from + 3, y + TimelinePainter.COUNTER / 2 - 2);
    }
  }

  /** Where steps of a process begin, in pixels of the canvas. */
  begins(process) {
    const { from, to } = this.view;
    return this.data.stepsOf[process].filter(step => step[1] >= from && step[1] < to).map(step => this.x(step[1]));
  }

  /** [text, x] of the numbers of steps, which stand in the ruler. */
  steps() {
    const { data, view } = this, mine = data.steps.length ? data.stepsOf[data.steps[0][1]] : [], numbers = [];
    let free = this.left;
    mine.forEach(([number, start, end], at) => {
      const stop = at + 1 < mine.length ? Math.min(end, mine[at + 1][1]) : end; // its GPU work may run into the next
      if (stop < view.from || start > view.to) return;
      const text = data.nameOfStep(number), x = Math.max(this.x(start), this.left) + 3;
      if (x < free || x + text.length * this.letter > Math.min(this.x(stop), this.width)) return;
      numbers.push([text, x]);
      free = x + (text.length + 1) * this.letter;
    });
    return numbers;
  }

  /** The chosen slice, the one under the pointer, arrows between launches and GPU work, and the chosen range. */
  marks() {
    const { context, colours, view } = this, { AXIS } = TimelinePainter;
    context.save();
    context.beginPath();
    context.rect(this.left, AXIS, this.width - this.left, this.height - AXIS);
    context.clip();
    if (view.range) {
      const a = this.x(view.range.from), b = this.x(view.range.to);
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.16;
      for (const item of this.items) {
        if (item.kind === "track" && view.range.tracks.includes(item.index)) context.fillRect(a, this.top(item) - 3, b - a, item.height + 3);
      }
      context.globalAlpha = 1;
      context.fillRect(a, AXIS, 1, this.height);
      context.fillRect(b, AXIS, 1, this.height);
    }
    if (view.hovered >= 0) this.outline(view.hovered, colours.soft, 1);
    if (view.chosen >= 0) {
      this.outline(view.chosen, colours.text, 2);
      for (const [from, to] of view.linked) this.arrow(from, to);
    }
    context.restore();
  }

  outline(slice, colour, wide) {
    const box = this.box(slice);
    if (!box || this.data.end[slice] < this.view.from || this.data.start[slice] > this.view.to) return;
    this.context.strokeStyle = colour;
    this.context.lineWidth = wide;
    this.context.strokeRect(box[0] - 0.5, box[1] - 0.5, box[2] + 1, box[3] + 1);
    this.context.lineWidth = 1;
  }

  /** From the middle of a launch to the begin of what it launched. */
  arrow(launch, work) {
    const from = this.box(launch), to = this.box(work), { context, data } = this;
    if (!from || !to) return;
    const x0 = this.x((data.start[launch] + data.end[launch]) / 2), y0 = from[1] + from[3] / 2;
    const x1 = this.x(data.start[work]), y1 = to[1] + to[3] / 2, bend = Math.max(Math.abs(x1 - x0) / 2, 12);
    context.strokeStyle = context.fillStyle = this.colours.text;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 1, y1);
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 6, y1 - 3.5);
    context.lineTo(x1 - 6, y1 + 3.5);
    context.fill();
  }

  /** The ruler: times from the first slice; far from it relative to a time that stands on the left. */
  axis(numbers) {
    const { context, colours, view, width, left } = this, { AXIS } = TimelinePainter;
    context.fillStyle = colours.bg;
    context.fillRect(0, 0, width, AXIS);
    const span = view.to - view.from, rough = span / Math.max((width - left) / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(one => one * power).find(one => one >= rough) || 10 * power;
    const from = view.from - view.zero, base = from > 20 * span ? Math.floor(from / (10 * step)) * 10 * step : 0;
    context.fillStyle = colours.soft;
    if (base) context.fillText(`${exactTime(base)} +`, 4, 8);
    for (let at = Math.ceil(from / step) * step; at <= view.to - view.zero; at += step) {
      const x = this.x(at + view.zero), text = timeText(at - base);
      context.fillRect(x, 13, 1, 5);
      if (x + text.length * this.letter < width - 4) context.fillText(text, x + 3, 8);
    }
    for (const [text, x] of numbers) context.fillText(text, x, AXIS - 9);
    context.fillStyle = colours.rule;
    context.fillRect(0, AXIS - 1, width, 1);
    if (!view.range) return;
    const a = Math.max(this.x(view.range.from), left), b = Math.min(this.x(view.range.to), width);
    if (b <= a) return;
    context.fillStyle = colours.accent;
    context.fillRect(a, AXIS - 4, b - a, 4);
    context.fillStyle = colours.text;
    const text = timeText(view.range.to - view.range.from), at = Math.min(Math.max((a + b) / 2 - text.length * this.letter / 2, left), width - text.length * this.letter);
    context.fillStyle = colours.bg;
    context.fillRect(at - 2, 17, text.length * this.letter + 4, 14);
    context.fillStyle = colours.text;
    context.fillText(text, at, 25);
  }
}
