"use strict";
// Unpacks the timelines of the page when they can be seen, and follows links to their slices (#t0-slice-123).
(() => {
  const unpacked = new Map(), views = new Map();
  const root = key => document.querySelector(`[data-timeline="${CSS.escape(key)}"]`);

  /** The data of a timeline; unpacked once. */
  const dataOf = key => {
    if (!unpacked.has(key)) {
      const holder = document.getElementById(`${key}-timeline-data`);
      unpacked.set(key, typeof DecompressionStream === "undefined"
        ? Promise.reject(new Error("this browser has no DecompressionStream; browsers from 2023 on have it"))
        : TimelineData.unpack(holder.textContent));
    }
    return unpacked.get(key);
  };

  /** The view of a timeline; made once. */
  const viewOf = key => {
    if (!views.has(key)) {
      const host = root(key);
      views.set(key, dataOf(key).then(data => {
        const view = new TimelineView(host, data, { label: host.dataset.label, from: data.window[0], to: data.window[1], address: key });
        host.view = view; // for tests and for the console of the browser
        host.dataset.ready = "true";
        return view;
      }).catch(error => {
        host.append(make("p", { className: "note", textContent: `The timeline cannot be shown: ${error.message}. The tables hold the same numbers.` }));
        throw error;
      }));
    }
    return views.get(key);
  };

  /** Make the views of timelines that are on the tab that is shown, after the page itself is painted. */
  const wake = () => {
    for (const host of document.querySelectorAll("[data-aligned]")) {
      if (host.offsetParent) host.aligned ||= new AlignedTimelines(host, dataOf);
    }
    for (const host of document.querySelectorAll("[data-timeline]")) {
      if (host.offsetParent) viewOf(host.dataset.timeline).then(view => view.dirty(), () => {});
    }
  };

  /** Show the slice that the address of the page names; its tab is shown by then (report.js, whose listener comes first). */
  const follow = async () => {
    const found = /^#(.+)-slice-(\d+)$/.exec(decodeURIComponent(location.hash));
    const host = found && root(found[1]);
    if (!host) return;
    (host.closest("section") || host).scrollIntoView();
    const view = await viewOf(found[1]), slice = view.data.withId(Number(found[2]));
    view.draw();
    if (slice < 0) view.panel.box.replaceChildren(make("p", { textContent: `Slice ${found[2]} is not on the timeline.` }));
    else view.choose(slice, true);
    host.dataset.followed = found[2];
  };

  document.addEventListener("shown", () => setTimeout(wake));
  addEventListener("hashchange", () => { follow().catch(() => {}); });
  requestAnimationFrame(() => setTimeout(() => { wake(); follow().catch(() => {}); }));
})();
