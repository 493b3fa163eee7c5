"use strict";
// The timeline.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Timeline -------------------------------------------------------------------------------------
  const ROW = 15, GAP = 8, AXIS = 22;

  function timeline(root) {
    const data = JSON.parse(document.getElementById(root.dataset.timeline).textContent);
    const canvas = root.querySelector("canvas"), picked = root.querySelector(".picked"), range = root.querySelector(".range");
    const context = canvas.getContext("2d");
    let from = 0, to = data.span, chosen = -1, colours = {}, width = 0, left = 150;
    const tops = [];
    let height = AXIS;
    for (const [, rows] of data.tracks) { tops.push(height); height += rows * ROW + GAP; }

    const palette = () => {
      const style = getComputedStyle(document.documentElement);
      const get = name => style.getPropertyValue(`--${name}`).trim();
      colours = { text: get("text"), soft: get("soft"), rule: get("rule"), bg: get("bg"), panel: get("panel") };
      colours.kinds = data.kinds.map(kind => get({ op: "cpu_op", api: "runtime" }[kind] || kind));
    };
    const x = at => left + (at - from) / (to - from) * (width - left);
    const box = slice => {
      const a = x(slice[2]), b = x(slice[2] + slice[3]);
      return [Math.max(a, left), tops[slice[0]] + slice[1] * ROW, Math.max(Math.min(b, width) - Math.max(a, left), 1), ROW - 2];
    };
    const visible = slice => slice[2] + slice[3] >= from && slice[2] <= to;

    function axis() {
      const rough = (to - from) / Math.max((width - left) / 110, 1);
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map(one => one * power).find(one => one >= rough) || 10 * power;
      context.fillStyle = colours.soft;
      for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
        context.fillRect(x(at), AXIS - 5, 1, 5);
        if (x(at) < width - 50) context.fillText(timeText(at), x(at) + 3, AXIS - 8);
      }
    }
    function tracks() {
      data.tracks.forEach(([name], track) => {
        context.fillStyle = colours.rule;
        context.fillRect(0, tops[track] - GAP / 2, width, 1);
        context.fillStyle = colours.soft;
        let text = name;
        while (text.length > 3 && context.measureText(text).width > left - 14) text = text.slice(0, -4) + "...";
        context.fillText(text, 6, tops[track] + 10);
      });
    }
    function draw() {
      const ratio = window.devicePixelRatio || 1;
      width = canvas.clientWidth;
      if (!width) return;
      left = width < 700 ? 96 : 150;
      canvas.style.height = `${height}px`;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.font = "11px system-ui, sans-serif";
      context.fillStyle = colours.bg;
      context.fillRect(0, 0, width, height);
      axis();
      tracks();
      let drawn = 0;
      data.slices.forEach((slice, place) => {
        if (!visible(slice)) return;
        drawn += 1;
        const [bx, by, bw, bh] = box(slice);
        context.globalAlpha = chosen < 0 || chosen === place || chosen === partner() ? 1 : 0.55;
        context.fillStyle = colours.kinds[slice[5]];
        context.fillRect(bx, by, bw, bh);
        if (bw > 34) {
          context.save();
          context.beginPath();
          context.rect(bx, by, bw - 2, bh);
          context.clip();
          context.fillStyle = colours.bg;
          context.fillText(data.names[slice[4]], bx + 3, by + 10);
          context.restore();
        }
      });
      context.globalAlpha = 1;
      arrow();
      range.textContent = `${timeText(from)} to ${timeText(to)}, ${timeText(to - from)} wide, ${drawn} slices in view`;
      canvas.dataset.from = from;
      canvas.dataset.to = to;
      canvas.dataset.drawn = drawn;
    }
    const partner = () => (chosen < 0 ? -1 : data.slices[chosen][6]);
    function arrow() {
      if (chosen < 0) return;
      const [bx, by, bw, bh] = box(data.slices[chosen]);
      context.strokeStyle = colours.text;
      context.strokeRect(bx - 0.5, by - 0.5, bw + 1, bh + 1);
      if (partner() < 0) return;
      const [ax, ay, aw, ah] = box(data.slices[partner()]);
      context.beginPath();
      context.moveTo(ax + Math.min(aw, 4), ay + ah / 2);
      context.lineTo(bx, by + bh / 2);
      context.stroke();
    }
    const view = (a, b) => {
      const size = Math.min(Math.max(b - a, Math.min(50, data.span)), data.span);
      from = Math.min(Math.max(a, 0), data.span - size);
      to = from + size;
      draw();
    };
    const zoom = (factor, middle = (from + to) / 2) => view(middle - (middle - from) * factor, middle + (to - middle) * factor);
    const move = part => view(from + part * (to - from), to + part * (to - from));
    const actions = { in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25), right: () => move(0.25), reset: () => view(0, data.span) };
    for (const button of all("[data-do]", root)) button.addEventListener("click", () => actions[button.dataset.do]());
    canvas.addEventListener("keydown", event => {
      const name = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "reset" }[event.key];
      if (name) { event.preventDefault(); actions[name](); }
    });
    const place = event => event.clientX - canvas.getBoundingClientRect().left;
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls until the view was clicked
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, from + Math.max(place(event) - left, 0) / (width - left) * (to - from));
    }, { passive: false });
    let grip = null;
    canvas.addEventListener("pointerdown", event => {
      grip = { at: place(event), from, to, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      if (!grip) return;
      const shift = (grip.at - place(event)) / (width - left) * (grip.to - grip.from);
      if (Math.abs(grip.at - place(event)) > 3) grip.moved = true;
      if (grip.moved) view(grip.from + shift, grip.to + shift);
    });
    canvas.addEventListener("pointerup", event => {
      if (grip && !grip.moved) pick(place(event), event.clientY - canvas.getBoundingClientRect().top);
      grip = null;
    });
    canvas.addEventListener("pointercancel", () => { grip = null; });
    function pick(px, py) {
      chosen = -1;
      data.slices.forEach((slice, number) => {
        if (!visible(slice)) return;
        const [bx, by, bw, bh] = box(slice);
        if (px >= bx - 1 && px <= bx + bw + 1 && py >= by && py <= by + bh) chosen = number;
      });
      if (chosen < 0) picked.textContent = "no slice there";
      else {
        const slice = data.slices[chosen];
        const by = slice[6] >= 0 ? `, launched by ${data.names[data.slices[slice[6]][4]]} at ${timeText(data.slices[slice[6]][2])}` : "";
        picked.textContent = `${data.kinds[slice[5]]} ${data.names[slice[4]]}: ${timeText(slice[3])} (${slice[3]} ns) from ${timeText(slice[2])} on ${data.tracks[slice[0]][0]}${by}`;
      }
      draw();
    }
    const fresh = () => { palette(); draw(); };
    addEventListener("resize", draw);
    document.addEventListener("shown", draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", fresh);
    fresh();
  }
  for (const root of all("[data-timeline]")) timeline(root);
})();
