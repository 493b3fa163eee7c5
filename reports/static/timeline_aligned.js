"use strict";
// Two timelines above each other: a typical step of each, on one scale that begins at 0.

class AlignedTimelines {
  /** host: the element with the choice. dataOf: gives the promise of the data of a timeline by its key. */
  constructor(host, dataOf) {
    this.host = host;
    this.dataOf = dataOf;
    this.names = JSON.parse(host.dataset.aligned);
    this.choices = ["above", "below"].map(place => {
      const select = make("select", { "data-place": place }, ...this.names.map(([key, name]) => make("option", { value: key, textContent: name })));
      select.value = host.dataset[place];
      select.addEventListener("change", () => this.fill());
      return select;
    });
    this.said = make("output", { className: "range", "aria-live": "polite" });
    this.places = this.choices.map(() => make("div", { className: "timeline" }));
    host.append(make("p", { className: "tools" }, make("label", {}, "above ", this.choices[0]), make("label", {}, "below ", this.choices[1]), this.said), ...this.places);
    this.fill();
  }

  /** [number, start, end] of the step that a timeline opens on; the whole recording where there are no steps. */
  static step(data) {
    const found = data.steps.find(step => step[2] === data.window[0]);
    return found ? [found[0], found[2], found[3]] : [null, ...data.window];
  }

  async fill() {
    const keys = this.choices.map(select => select.value);
    const both = await Promise.all(keys.map(key => this.dataOf(key))), steps = both.map(AlignedTimelines.step);
    if (keys.some((key, at) => key !== this.choices[at].value)) return; // chosen anew meanwhile
    const most = Math.max(...steps.map(([, start, end]) => end - start));
    this.views = both.map((data, at) => {
      const start = steps[at][1];
      this.places[at].replaceChildren();
      return new TimelineView(this.places[at], data, {
        label: `${data.run ?? "a typical step"} of ${this.names.find(([key]) => key === keys[at])[1]}`, aligned: true, helps: at === 1,
        address: keys[at], zero: start, low: start, high: start + most, from: start, to: start + most,
      });
    });
    this.views.forEach((view, at) => {
      const other = this.views[1 - at];
      view.moved = (from, to) => other.show(other.zero + from, other.zero + to, true);
      view.searched = text => { other.find.value = text; other.searchFor(text, true); };
    });
    this.said.textContent = steps.map(([number, start, end], at) =>
      `${["above", "below"][at]}: ${number === null ? "the whole recording" : both[at].nameOfStep(number)}, ${timeText(end - start)}`).join("; ");
    this.host.dataset.ready = keys.join(" ");
  }
}
