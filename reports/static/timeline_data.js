"use strict";
// The slices of one timeline as typed arrays, and the questions that the view asks of them. The format is
// described in reports/timeline_packing.py. Every answer costs a few binary searches per row or one pass over
// an array; nothing makes an object per slice.

/** Index of the first of values[low .. high) that is not below `limit`; the values do not decrease. */
const firstFrom = (values, limit, low, high) => {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < limit) low = middle + 1; else high = middle;
  }
  return low;
};

/** Where the largest value of any stretch of an array is: levels of blocks, each with its largest value. */
class LargestOf {
  static BLOCK = 16;

  constructor(count, value) {
    this.value = value;
    this.levels = [null];
    for (let size = count; size > LargestOf.BLOCK;) {
      const below = this.levels[this.levels.length - 1], blocks = Math.ceil(size / LargestOf.BLOCK);
      const level = new Int32Array(blocks);
      for (let block = 0; block < blocks; block += 1) {
        const low = block * LargestOf.BLOCK, high = Math.min(low + LargestOf.BLOCK, size);
        let best = below ? below[low] : low;
        for (let at = low + 1; at < high; at += 1) {
          const one = below ? below[at] : at;
          if (value(one) > value(best)) best = one;
        }
        level[block] = best;
      }
      this.levels.push(level);
      size = blocks;
    }
  }

  /** The index of the largest value in [low, high), which is not empty. */
  of(low, high) {
    if (high - low === 1) return low;
    let best = low;
    for (let level = 0; ; level += 1) {
      const blocks = this.levels[level];
      const see = at => {
        const one = blocks ? blocks[at] : at;
        if (this.value(one) > this.value(best)) best = one;
      };
      if (high - low <= 2 * LargestOf.BLOCK || level + 1 === this.levels.length) {
        for (let at = low; at < high; at += 1) see(at);
        return best;
      }
      while (low % LargestOf.BLOCK) see(low++);
      while (high % LargestOf.BLOCK) see(--high);
      low /= LargestOf.BLOCK;
      high /= LargestOf.BLOCK;
    }
  }
}

class TimelineData {
  /** Unpack the text that reports/timeline_packing.py wrote. */
  static async unpack(text) {
    let bytes;
    if (Uint8Array.fromBase64) bytes = Uint8Array.fromBase64(text);
    else {
      const raw = atob(text);
      bytes = new Uint8Array(raw.length);
      for (let at = 0; at < raw.length; at += 1) bytes[at] = raw.charCodeAt(at);
    }
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new TimelineData(new Uint8Array(await new Response(stream).arrayBuffer()));
  }

  constructor(bytes) {
    const size = new DataView(bytes.buffer).getUint32(0, true);
    Object.assign(this, JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size))));
    let offset = 4 + size;
    const column = {};
    for (const [name, width, count] of this.columns) {
      column[name] = name.startsWith("values")
        ? TimelineData.doubles(bytes, offset, width, count)
        : TimelineData.planes(bytes, offset, width, count);
      offset += width * count;
    }
    const { start, dur } = column;
    const count = this.count = start.length;
    this.name = column.name;
    this.category = new Uint8Array(column.category);
    this.detail = column.detail;
    this.launch = TimelineData.signed(column.launch, new Int32Array(count));
    this.slice = TimelineData.signed(column.slice, new Float64Array(count));
    this.rows = new Int32Array(column.rows.length + 1);
    for (let row = 0; row < column.rows.length; row += 1) this.rows[row + 1] = this.rows[row] + column.rows[row];
    this.place(start, dur);
    this.longest = new LargestOf(count, at => this.end[at] - this.start[at]);
    this.readTracks();
    this.nameOfStep = number => this.run ?? `step ${number}`; // a program without steps is one run
    this.stepsOf = this.processes.map(() => []);
    for (const [number, process, from, to] of this.steps) this.stepsOf[process].push([number, from, to]);
    this.counters = this.counters.map(([name, unit, process, words], number) =>
      TimelineData.counter(name, unit, process, words, column[`times${number}`], column[`values${number}`]));
  }

  /** A column that is split into planes of bytes, the lowest first, as whole numbers below 2^53. */
  static planes(bytes, offset, width, count) {
    const found = width < 4 ? new Int32Array(count) : new Float64Array(count);
    found.set(bytes.subarray(offset, offset + count));
    for (let plane = 1, scale = 256; plane < width; plane += 1, scale *= 256) {
      const from = offset + plane * count;
      for (let at = 0; at < count; at += 1) if (bytes[from + at]) found[at] += bytes[from + at] * scale;
    }
    return found;
  }

  static doubles(bytes, offset, width, count) {
    const found = new Uint8Array(8 * count);
    for (let plane = 0; plane < width; plane += 1) {
      for (let at = 0; at < count; at += 1) found[8 * at + plane] = bytes[offset + plane * count + at];
    }
    return new Float64Array(found.buffer);
  }

  /** Sums of differences whose sign is in the lowest bit. */
  static signed(values, into) {
    let sum = 0;
    for (let at = 0; at < values.length; at += 1) {
      const one = values[at];
      sum += one % 2 ? -(one + 1) / 2 : one / 2;
      into[at] = sum;
    }
    return into;
  }

  static counter(name, unit, process, words, gaps, values) {
    const times = new Float64Array(gaps.length);
    let now = 0, most = 0, least = 0;
    for (let at = 0; at < gaps.length; at += 1) {
      times[at] = now += gaps[at];
      most = Math.max(most, values[at]);
      least = Math.min(least, values[at]);
    }
    const amount = value => words.length ? words[value] || "nothing" : (/^bytes?$/.test(unit) ? bytesText(value) : `${significantDigits.format(value)}${unit === "1" ? "" : ` ${unit}`}`);
    return { name, unit, process, words, amount, times, values, most, least, largest: new LargestOf(values.length, at => values[at]) };
  }

  /** Starts and ends in ns; the latest end so far in each row; and the time of all slices before each. */
  place(gaps, dur) {
    const start = this.start = new Float64Array(this.count), end = this.end = new Float64Array(this.count);
    const reach = this.reach = new Float64Array(this.count), before = this.before = new Float64Array(this.count + 1);
    for (let row = 0; row + 1 < this.rows.length; row += 1) {
      let now = 0, latest = 0;
      for (let at = this.rows[row]; at < this.rows[row + 1]; at += 1) {
        start[at] = now += gaps[at];
        end[at] = now + dur[at];
        reach[at] = latest = Math.max(latest, end[at]);
        before[at + 1] = before[at] + dur[at];
      }
    }
  }

  readTracks() {
    let first = 0;
    this.trackOfRow = new Int32Array(this.rows.length - 1);
    this.tracks = this.tracks.map(([name, process, kind, rows], number) => {
      this.trackOfRow.fill(number, first, first + rows);
      first += rows;
      return { name, process, kind, rows, first: first - rows };
    });
  }

  /** The row of a slice. */
  rowOf(slice) {
    let low = 0, high = this.rows.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (this.rows[middle] <= slice) low = middle; else high = middle;
    }
    return low;
  }

  trackOf(slice) { return this.trackOfRow[this.rowOf(slice)]; }

  /** The first slice of a row that ends at or after a time. */
  firstAt(row, time) { return firstFrom(this.reach, time, this.rows[row], this.rows[row + 1]); }

  /** The slice of a row at a time, the longest within `slack` ns around it, else -1. */
  at(row, time, slack) {
    let best = -1;
    const low = this.firstAt(row, time - slack), high = firstFrom(this.start, time + slack, low, this.rows[row + 1]);
    if (high - low > 64) return this.longest.of(low, high);
    for (let one = low; one < high; one += 1) {
      if (this.end[one] < time - slack) continue;
      const inside = this.start[one] <= time && time < this.end[one];
      const bestInside = best >= 0 && this.start[best] <= time && time < this.end[best];
      if (best < 0 || (inside && !bestInside)) best = one;
      else if (inside === bestInside && (inside || this.end[one] - this.start[one] > this.end[best] - this.start[best])) best = one;
    }
    return best;
  }

  /** The slice with this id in the trace, -1 where it is not shown. */
  withId(id) { return this.slice.indexOf(id); }

  /** The slice before or after a slice in its row; from -1 the first slice that ends at or after a time. */
  beside(slice, later, time) {
    if (slice < 0) {
      for (let row = 0; row + 1 < this.rows.length; row += 1) if (this.firstAt(row, time) < this.rows[row + 1]) return this.firstAt(row, time);
      return -1;
    }
    const row = this.rowOf(slice), next = slice + (later ? 1 : -1);
    return next < this.rows[row] || next >= this.rows[row + 1] ? slice : next;
  }

  /** The slices round a slice on its track, the innermost first. */
  around(slice) {
    const row = this.rowOf(slice), found = [];
    for (let above = row - 1; above >= 0 && this.trackOfRow[above] === this.trackOfRow[row]; above -= 1) {
      const next = firstFrom(this.start, this.start[slice] + 1, this.rows[above], this.rows[above + 1]) - 1;
      if (next >= this.rows[above] && this.end[next] >= this.end[slice]) found.push(next);
    }
    return found;
  }

  /** The GPU slices that a host slice launched, itself or by a call inside of it, by start. */
  launchedBy(slice) {
    const track = this.trackOf(slice), start = this.start[slice], end = this.end[slice], found = [];
    const { first, rows } = this.tracks[track];
    const low = this.rows[first], high = this.rows[first + rows], row = this.rowOf(slice);
    for (let at = 0; at < this.count; at += 1) {
      const call = this.launch[at];
      if (call < low || call >= high) continue;
      if (call === slice || (this.start[call] >= start && this.end[call] <= end && call >= this.rows[row + 1])) found.push(at);
    }
    return found.sort((a, b) => this.start[a] - this.start[b]);
  }

  /** Which slices have a name that contains a text: for each slice how many before it, and how many there are. */
  search(text) {
    const wanted = text.toLowerCase(), hit = new Uint8Array(this.names.length);
    this.names.forEach((name, number) => { hit[number] = name.toLowerCase().includes(wanted) ? 1 : 0; });
    const before = new Int32Array(this.count + 1);
    for (let at = 0; at < this.count; at += 1) before[at + 1] = before[at] + hit[this.name[at]];
    return { text, hit, before, count: before[this.count] };
  }

  /** The next hit of a search in time, or the one before; and its number from 1. At the end it starts again. */
  nextHit(search, from, back) {
    const after = (a, b) => this.start[a] - this.start[b] || a - b; // one order of all slices
    let best = -1, edge = -1;
    for (let at = 0; at < this.count; at += 1) {
      if (!search.hit[this.name[at]]) continue;
      if (edge < 0 || (back ? after(at, edge) > 0 : after(at, edge) < 0)) edge = at;
      const side = from < 0 ? (back ? -1 : 1) : after(at, from) * (back ? -1 : 1);
      if (side > 0 && (best < 0 || (back ? after(at, best) > 0 : after(at, best) < 0))) best = at;
    }
    const found = best < 0 ? edge : best;
    let number = 0;
    for (let at = 0; at < this.count; at += 1) if (search.hit[this.name[at]] && after(at, found) <= 0) number += 1;
    return { found, number };
  }

  /**
   * Time per name in [from, to): of every slice the part that lies inside; slices of no length count where they lie.
   * Returns rows { name, category, count, total } of the tracks, the largest total first.
   */
  sums(from, to, tracks) {
    const sums = new Map();
    for (const track of tracks) {
      const { first, rows } = this.tracks[track];
      for (let row = first; row < first + rows; row += 1) {
        for (let at = this.firstAt(row, from); at < this.rows[row + 1] && this.start[at] < to; at += 1) {
          const inside = Math.min(this.end[at], to) - Math.max(this.start[at], from);
          if (inside < 0 || (inside === 0 && this.end[at] > this.start[at]) || (inside === 0 && this.start[at] < from)) continue;
          const key = this.name[at] * 32 + this.category[at];
          let sum = sums.get(key);
          if (!sum) sums.set(key, sum = { name: this.name[at], category: this.category[at], count: 0, total: 0 });
          sum.count += 1;
          sum.total += inside;
        }
      }
    }
    return [...sums.values()].sort((a, b) => b.total - a.total || b.count - a.count);
  }
}
