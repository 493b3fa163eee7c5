"use strict";
// Flame graphs: a call path is as wide as its part of the time, and lies below the path that called it.
// Below the graph stand the kernels of the path that was chosen (flame_panel.js).
(() => {
  const ROW = 19, LEAST = 2; // px: height of a row, and the narrowest frame that is drawn
  const METRICS = { gpu: ["GPU time", 4], host: ["CPU time", 6] };
  const LEAVES = new Set(["kernel", "memcpy", "memset"]);
  const COLOURS = {
    module: "module", range: "range", step: "step", op: "op", python: "Python call", line: "line of the program",
    generated: "generated kernel", kernel: "kernel", backward: "GPU work of the backward", memcpy: "copy", memset: "fill",
  };
  const make = (tag, class_, text) => Object.assign(document.createElement(tag), { className: class_ || "", textContent: text || "" });

  function flame(root) {
    const data = JSON.parse(document.getElementById(root.dataset.flame).textContent);
    const { names, kinds, trees, per, whole } = data;
    const tools = make("div", "tools"), told = make("output", "told"), frames = make("div", "frames");
    const legend = make("ul", "legend"), under = make("div", "panel"), panel = flamePanel(under, data);
    frames.setAttribute("role", "group");
    told.setAttribute("aria-live", "polite");
    root.append(tools, frames, told, legend, under); // a longer text must not move the frames away from the pointer
    let tree = trees[0], metric = tree.gpu ? "gpu" : "host", zoomed = -1, wanted = "";

    const nodeOf = at => (at < 0 ? [-1, -1, -1, 0, tree.gpu, 0, tree.host, 0] : tree.nodes[at]);
    const value = at => nodeOf(at)[METRICS[metric][1]];
    const nameOf = at => (at < 0 ? `all of ${whole}` : names[nodeOf(at)[1]]);
    const shown = ns => `${timeText(ns / Math.max(tree.steps, 1))}${per}`;
    const lineOf = at => (nodeOf(at)[9] >= 0 ? tree.lines[nodeOf(at)[9]][0] : ""); // with the whole path of its file
    const hit = at => at >= 0 && (nameOf(at).toLowerCase().includes(wanted) || lineOf(at).toLowerCase().includes(wanted));
    // Work of the backward alone; what has both is told in words.
    const isBackward = at => LEAVES.has(kinds[nodeOf(at)[2]]) && nodeOf(at)[8] > 0;
    const classOf = at => (at < 0 ? "" : isBackward(at) ? "backward" : kinds[nodeOf(at)[2]]);
    const below = at => {
      if (!tree.below) {
        tree.below = new Map();
        tree.nodes.forEach(([parent], child) => tree.below.set(parent, [...(tree.below.get(parent) || []), child]));
      }
      return (tree.below.get(at) || []).filter(one => value(one) > 0).sort((a, b) => value(b) - value(a) || a - b);
    };
    const text = at => {
      const node = nodeOf(at), column = METRICS[metric][1], parent = node[0];
      let found = `${lineOf(at) || nameOf(at)}: ${shown(value(at))} of ${METRICS[metric][0]}`;
      if (at < 0) return found;
      found += ` = ${percentText(value(at) / value(-1))} of all`;
      if (parent >= 0) found += `, ${percentText(value(at) / value(parent))} of what called it`;
      if (node[column + 1] && node[column + 1] < value(at)) found += `; own ${shown(node[column + 1])}`;
      if (node[8]) found += `; backward ${percentText(node[8] / node[4])} of it`;
      if (tree.work) return `${found}; ${significantDigits.format(node[3] / Math.max(tree.steps, 1))} launches${per}`;
      return found + (node[3] ? `; ${node[3]} calls` : "");
    };

    // A frame for each path that is wide enough; shares of the width in whole numbers would not add up, so in fractions.
    function draw(focus) {
      const width = frames.clientWidth;
      if (!width) return;
      frames.replaceChildren();
      frames.setAttribute("aria-label", `flame graph of ${METRICS[metric][0]} by ${tree.label}; arrow keys move, Enter zooms and lists kernels, Escape goes back`);
      let rows = 0;
      const put = (at, left, share, row, above) => {
        if (share * width < LEAST) return;
        rows = Math.max(rows, row + 1);
        const mark = !wanted ? "" : hit(at) ? " hit" : " miss";
        const frame = make("button", `frame ${classOf(at)}${above ? " above" : ""}${mark}`, nameOf(at));
        frame.type = "button";
        frame.title = text(at);
        frame.setAttribute("aria-label", frame.title);
        frame.tabIndex = at === zoomed ? 0 : -1;
        frame.dataset.at = at;
        frame.style.cssText = `left:${100 * left}%;width:${100 * share}%;top:${row * ROW}px`;
        frames.append(frame);
        if (above) return;
        const children = below(at);
        const whole = Math.max(value(at), children.reduce((sum, one) => sum + value(one), 0));
        for (const child of children) {
          const part = share * value(child) / whole;
          put(child, left, part, row + 1, false);
          left += part;
        }
      };
      const path = [];
      for (let at = zoomed; at >= 0; at = nodeOf(at)[0]) path.unshift(nodeOf(at)[0]);
      path.forEach((at, row) => put(at, 0, 1, row, true));
      put(zoomed, 0, 1, path.length, false);
      frames.style.height = `${rows * ROW + 4}px`;
      frames.dataset.drawn = frames.childElementCount;
      const first = frames.querySelector(`[data-at="${zoomed}"]`);
      if (focus) first.focus();
      say(zoomed);
      explain();
    }
    // What the colours say, of the frames that are drawn.
    function explain() {
      const drawn = new Set([...frames.children].map(one => classOf(Number(one.dataset.at))));
      legend.replaceChildren(...Object.entries(COLOURS).filter(([key]) => drawn.has(key)).map(([key, text]) => {
        const item = make("li", "", text);
        item.prepend(make("span", `swatch frame-colour ${key}`));
        return item;
      }));
    }
    function zoom(at, focus) {
      zoomed = at;
      draw(focus);
      panel.show(tree, at, nameOf(at));
    }
    function say(at) {
      if (!wanted) { told.textContent = text(at); return; }
      const inside = new Map();
      const under = one => one >= 0 && (inside.has(one) ? inside.get(one) : (inside.set(one, hit(one) || under(nodeOf(one)[0])), inside.get(one)));
      let count = 0, sum = 0;
      tree.nodes.forEach(([parent], one) => {
        if (!hit(one)) return;
        count += 1;
        if (!under(parent)) sum += value(one); // a path inside of one that was found counts once
      });
      told.textContent = `${count} paths found: ${shown(sum)} = ${percentText(sum / (value(-1) || 1))} of all ${METRICS[metric][0]}. ${text(at)}`;
    }

    const press = (buttons, chosen) => buttons.forEach(([button, key]) => button.setAttribute("aria-pressed", String(key === chosen)));
    const choices = (items, choose, start) => {
      const buttons = items.map(([label, key]) => {
        const button = make("button", "", label);
        button.type = "button";
        button.addEventListener("click", () => { press(buttons, key); choose(key); });
        return [button, key];
      });
      press(buttons, start);
      if (buttons.length > 1) tools.append(...buttons.map(one => one[0]));
      return buttons;
    };
    // A tree that has no times of the CPU is drawn by those of the GPU.
    const fit = () => {
      if (!tree[metric]) metric = tree.gpu ? "gpu" : "host";
      metrics.forEach(([button, key]) => { button.disabled = !tree[key]; });
      press(metrics, metric);
    };
    choices(trees.map(one => [`by ${one.label}`, one]), one => { tree = one; fit(); zoom(-1); }, tree);
    const both = Object.entries(METRICS).filter(([key]) => trees.some(one => one[key]));
    const metrics = choices(both.map(([key, [label]]) => [label, key]), key => { metric = key; draw(); }, metric);
    metrics[0][0].classList.add("gap");
    fit();
    const input = Object.assign(make("input", "gap"), { type: "search", placeholder: "search names" });
    input.setAttribute("aria-label", "search names in the flame graph");
    input.addEventListener("input", () => { wanted = input.value.toLowerCase(); draw(); });
    const all = make("button", "", "whole");
    all.type = "button";
    all.addEventListener("click", () => zoom(-1));
    tools.append(input, all);

    const at = event => { const frame = event.target.closest(".frame"); return frame ? Number(frame.dataset.at) : null; };
    frames.addEventListener("click", event => { if (at(event) !== null) zoom(at(event), true); });
    for (const kind of ["mouseover", "focusin"]) frames.addEventListener(kind, event => { if (at(event) !== null) say(at(event)); });
    frames.addEventListener("keydown", event => {
      const here = at(event);
      if (here === null) return;
      const to = one => frames.querySelector(`[data-at="${one}"]`);
      const row = [...frames.children].filter(one => one.style.top === event.target.style.top);
      const move = {
        ArrowDown: () => below(here).map(to).find(Boolean) || (here !== zoomed && to(below(here)[0])),
        ArrowUp: () => here >= 0 && to(nodeOf(here)[0]),
        ArrowLeft: () => row[row.indexOf(event.target) - 1],
        ArrowRight: () => row[row.indexOf(event.target) + 1],
      }[event.key];
      if (event.key === "Escape") { event.preventDefault(); zoom(zoomed < 0 ? -1 : nodeOf(zoomed)[0], true); }
      if (!move) return;
      event.preventDefault();
      const next = move();
      if (next) { event.target.tabIndex = -1; next.tabIndex = 0; next.focus(); }
    });
    addEventListener("resize", () => draw());
    document.addEventListener("shown", () => draw());
    draw();
  }
  for (const root of document.querySelectorAll("[data-flame]")) flame(root);
})();
