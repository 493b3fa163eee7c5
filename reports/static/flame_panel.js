"use strict";
// Below a flame graph: the kernels of the path that was chosen, and its source where the page has it.
const flamePanel = (() => {
  const MOST = 100; // rows of the table
  const GPU = new Set(["kernel", "memcpy", "memset"]);
  const make = (tag, class_, ...inside) => {
    const made = Object.assign(document.createElement(tag), { className: class_ || "" });
    made.append(...inside);
    return made;
  };

  // The indices of a path and of everything below it; parents come before children. All paths for -1.
  const inside = (tree, at) => {
    const found = new Set(at < 0 ? tree.nodes.keys() : [at]);
    if (at >= 0) tree.nodes.forEach(([parent], one) => { if (found.has(parent)) found.add(one); });
    return found;
  };

  // What runs on the GPU inside of a path, by name and pass, most time first. A tree that tells its work apart
  // counts a launch once, however many lines share it; of other trees the leaves are the work.
  function workOf(data, tree, at) {
    const within = inside(tree, at), rows = new Map();
    const add = (name, pass, launches, ns) => {
      const key = `${pass} ${name}`;
      const row = rows.get(key) || { name: data.names[name], pass, launches: 0, ns: 0 };
      if (launches === null || row.launches === null) row.launches = null;
      else row.launches += launches;
      row.ns += ns;
      rows.set(key, row);
    };
    if (tree.work) {
      for (const [name, , pass, launches, ...parts] of tree.work) {
        const mine = parts.filter(([node]) => within.has(node));
        if (mine.length) add(name, pass, launches, mine.reduce((sum, part) => sum + part[1], 0));
      }
    } else {
      for (const one of within) {
        const [, name, kind, calls, , own] = tree.nodes[one];
        if (own && GPU.has(data.kinds[kind])) add(name, null, calls, own);
        else if (own && data.kinds[kind] === "rest") add(name, null, null, own);
      }
      if (![...within].some(one => GPU.has(data.kinds[tree.nodes[one][2]]))) return []; // a tree without kernels
    }
    return [...rows.values()].sort((a, b) => b.ns - a.ns || (a.name < b.name ? -1 : 1));
  }

  function tableOf(data, tree, at, name) {
    const rows = workOf(data, tree, at), steps = Math.max(tree.steps, 1);
    if (!rows.length) return null;
    const whole = rows.reduce((sum, row) => sum + row.ns, 0), passes = rows.some(row => row.pass !== null);
    const heads = ["GPU work", ...(passes ? ["pass"] : []), `launches${data.per}`, `GPU time${data.per}`, "share of the path", "share of all GPU time"];
    const cut = rows.length > MOST ? `, ${MOST} shown of ${rows.length}` : "";
    const caption = make("caption", "", `GPU work of ${name}${cut}`);
    const head = make("tr", "", ...heads.map((text, place) => {
      const th = make("th", place > (passes ? 1 : 0) ? "n" : "", text);
      th.scope = "col";
      return th;
    }));
    const cell = (text, value) => {
      const td = make("td", "n", text);
      if (value !== undefined) td.dataset.v = value;
      return td;
    };
    const share = part => {
      const td = cell(percentText(part), part);
      td.classList.add("share");
      td.style.setProperty("--w", `${Math.min(100 * part, 100).toFixed(1)}%`);
      return td;
    };
    const body = rows.slice(0, MOST).map(row => {
      const text = make("span", "name", row.name);
      text.title = row.name;
      const pass = make("td", "", row.pass === null ? "-" : row.pass ? "backward" : "forward");
      const launches = row.launches === null ? cell("-") : cell(significantDigits.format(row.launches / steps), row.launches / steps);
      return make("tr", "", make("td", "namecell", text), ...(passes ? [pass] : []), launches,
        cell(timeText(row.ns / steps), row.ns / steps), share(row.ns / whole), share(row.ns / (tree.gpu || 1)));
    });
    const table = make("table", "", caption, make("thead", "", head), make("tbody", "", ...body));
    table.dataset.table = "path-kernels";
    const scroll = make("div", "scroll", table);
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", `GPU work of ${name}`);
    return make("div", "tablebox", scroll);
  }

  // The source round the line of a path, or of the line that it lies in: a copy of what stands in the page.
  function sourceOf(tree, at) {
    let node = at;
    while (node >= 0 && !(tree.nodes[node][9] >= 0)) node = tree.nodes[node][0];
    const [, id] = node >= 0 ? tree.lines[tree.nodes[node][9]] : [];
    const line = id && document.getElementById(id);
    if (!line) return null;
    const copy = line.closest(".listing").cloneNode(true);
    const mine = copy.querySelector(`[id="${id}"]`);
    mine.classList.add("chosen");
    for (const one of copy.querySelectorAll("[id]")) one.removeAttribute("id");
    copy.setAttribute("aria-label", `source: ${copy.getAttribute("aria-label")}`);
    return [copy, mine];
  }

  return (panel, data) => ({
    show(tree, at, name) {
      panel.replaceChildren();
      if (at < 0) return;
      const table = tableOf(data, tree, at, name), source = tree.lines && sourceOf(tree, at);
      panel.append(table || make("p", "note", "This tree does not have the kernels of its paths."));
      if (!source) return;
      panel.append(source[0]);
      source[0].scrollTop = source[1].offsetTop - source[0].offsetTop - source[0].clientHeight / 3;
    },
  });
})();
