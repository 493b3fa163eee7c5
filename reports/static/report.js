"use strict";
// Tabs, sortable and filterable tables that can be copied, and the timeline. Without it the page shows everything, unsorted.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Tabs: links to panels. The address of the page names what is shown, so going back and links work. ----------
  const links = all(".tabs [role=tab]");
  const panelOf = link => document.getElementById(link.getAttribute("aria-controls"));
  const show = panel => {
    for (const link of links) {
      const on = panelOf(link) === panel;
      link.setAttribute("aria-selected", String(on));
      link.tabIndex = on ? 0 : -1;
      panelOf(link).hidden = !on;
    }
    document.dispatchEvent(new Event("shown"));
  };
  const shown = id => {
    const target = document.getElementById(id);
    if (target) return target.closest("[role=tabpanel]") || (links.length ? null : target);
    const slice = /^(.+)-slice-\d+$/.exec(id); // the timeline shows the slice; here its tab comes to the front
    return slice && document.getElementById(slice[1]);
  };
  const follow = () => {
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch { /* a text of its own: no id of this page */ }
    const panel = shown(id) || (links.length ? panelOf(links[0]) : null);
    if (panel && links.length) show(panel);
    const target = document.getElementById(id);
    for (let box = target; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
    if (target && target === panel) scrollTo(0, 0);
    else if (target) target.scrollIntoView();
  };
  links.forEach((link, place) => link.addEventListener("keydown", event => {
    const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = links[(to + links.length) % links.length];
    location.hash = next.hash;
    next.focus();
  }));
  addEventListener("hashchange", follow);
  follow();
  // The section in view is marked among the links to sections.
  const seen = new IntersectionObserver(entries => {
    for (const entry of entries) {
      const link = document.querySelector(`.sections a[href="#${CSS.escape(entry.target.id)}"]`);
      if (link) link.classList.toggle("here", entry.isIntersecting);
    }
  }, { rootMargin: "-90px 0px -60% 0px" });
  for (const section of all("section[id]")) seen.observe(section);

  // Tables ---------------------------------------------------------------------------------------
  const keyOf = cell => {
    if (!cell) return "";
    const value = cell.dataset.v;
    if (value === undefined) return cell.textContent;
    return value === "" ? null : Number(value);
  };
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  for (const head of all(".tablebox thead")) {
    const heads = all("th", head);
    heads.forEach((th, column) => {
      const button = th.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const numeric = th.classList.contains("n");
        const now = th.getAttribute("aria-sort");
        const down = now === "none" ? numeric : now === "ascending";
        for (const other of heads) other.setAttribute("aria-sort", "none");
        th.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = head.parentElement.tBodies[0];
        const rows = [...body.rows].map((row, place) => ({ row, place, key: keyOf(row.cells[column]) }));
        rows.sort((a, b) => {
          if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.place - b.place;
          return (down ? -1 : 1) * order(a.key, b.key) || a.place - b.place;
        });
        body.append(...rows.map(one => one.row));
      });
    });
  }
  for (const input of all("input.filter")) {
    const box = input.closest(".tablebox");
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      const rows = all("tbody tr", box);
      let left = 0;
      for (const row of rows) {
        const text = row.textContent + all("[title]", row).map(one => one.title).join(" ");
        row.hidden = !text.toLowerCase().includes(wanted);
        if (!row.hidden) left += 1;
      }
      box.querySelector(".matches").textContent = wanted ? `${left} of ${rows.length} rows` : "";
    });
  }
  // A table as Markdown, as it is sorted and filtered.
  const markdown = table => {
    const text = cell => (cell.querySelector(".name") ? cell.querySelector(".name").title || cell.textContent : cell.textContent).replace(/\s+/g, " ").trim().replaceAll("|", "\\|");
    const rows = all("tr", table).filter(row => !row.hidden && row.closest("table") === table).map(row => `| ${[...row.cells].map(text).join(" | ")} |`);
    const heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
    rows.splice(1, 0, `|${heads.map(head => (head.classList.contains("n") ? " ---: |" : " --- |")).join("")}`);
    return rows.join("\n") + "\n";
  };
  for (const box of all(".tablebox")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy as Markdown";
    button.addEventListener("click", () => {
      const area = document.createElement("textarea"); // the clipboard's own API needs https
      area.value = markdown(box.querySelector("table"));
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      button.textContent = done ? "copied" : "not allowed by the browser";
      setTimeout(() => { button.textContent = "copy as Markdown"; }, 1500);
    });
    box.prepend(button);
  }
  // A cut name shows whole on a click.
  document.addEventListener("click", event => {
    const name = event.target.closest && event.target.closest(".name");
    if (!name) return;
    if (name.dataset.short === undefined) name.dataset.short = name.textContent;
    const whole = name.classList.toggle("whole");
    name.textContent = whole ? name.title : name.dataset.short;
  });
  // Exact values behind rounded ones.
  document.addEventListener("mouseover", event => {
    const cell = event.target.closest && event.target.closest("td[data-v]");
    if (cell && cell.dataset.v !== "" && !cell.title) cell.title = cell.dataset.v + (cell.closest("table").dataset.exact || "");
  });

  // Timeline -------------------------------------------------------------------------------------
  const ROW = 15, GAP = 8, AXIS = 22;
  // The twin of `time_text` in contract/units.py; tests/contract/test_units.py holds them equal.
  const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, roundingMode: "halfEven", useGrouping: false });
  const time = ns => {
    if (Math.abs(ns) < 0.05) return "0 ns";
    const units = ["ns", "us", "ms", "s"];
    let size = 1, place = 0;
    while (place < 3 && Math.abs(Number(digits.format(ns / size))) >= 1e3) { size *= 1e3; place += 1; }
    const shown = ns / size;
    return `${Math.abs(shown) < 9999.5 ? digits.format(shown) : shown.toFixed(0)} ${units[place]}`;
  };

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
        if (x(at) < width - 50) context.fillText(time(at), x(at) + 3, AXIS - 8);
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
      range.textContent = `${time(from)} to ${time(to)}, ${time(to - from)} wide, ${drawn} slices in view`;
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
        const by = slice[6] >= 0 ? `, launched by ${data.names[data.slices[slice[6]][4]]} at ${time(data.slices[slice[6]][2])}` : "";
        picked.textContent = `${data.kinds[slice[5]]} ${data.names[slice[4]]}: ${time(slice[3])} (${slice[3]} ns) from ${time(slice[2])} on ${data.tracks[slice[0]][0]}${by}`;
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
