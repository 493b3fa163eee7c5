"use strict";
// Tabs, and tables that can be sorted, filtered and copied. Without it the page shows everything, unsorted.
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
    if (target) return target.closest("[role=tabpanel]");
    const slice = /^(.+)-slice-\d+$/.exec(id); // the timeline shows the slice; here its tab comes to the front
    return slice && document.getElementById(slice[1]);
  };
  let aim = null; // what the address names stays in view while other scripts draw, until somebody does something
  for (const kind of ["wheel", "keydown", "pointerdown", "touchstart"]) addEventListener(kind, () => { aim = null; }, { capture: true, passive: true });
  new ResizeObserver(() => { if (aim) aim.scrollIntoView({ behavior: "instant" }); }).observe(document.body);
  const follow = behavior => {
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch { /* a text of its own: no id of this page */ }
    const panel = shown(id) || (links.length ? panelOf(links[0]) : null);
    if (panel && links.length) show(panel);
    const target = document.getElementById(id);
    for (let box = target; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
    const whole = target && target.parentElement.tagName === "MAIN";
    aim = whole ? null : target;
    if (whole) scrollTo({ top: 0, behavior });
    else if (target) target.scrollIntoView({ behavior });
  };
  links.forEach((link, place) => link.addEventListener("keydown", event => {
    const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = links[(to + links.length) % links.length];
    location.hash = next.hash;
    next.focus();
  }));
  addEventListener("hashchange", () => follow("auto"));
  follow("instant");
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
    if (!name || event.target.closest("a")) return; // a link leads to the source of a line
    if (name.dataset.short === undefined) name.dataset.short = name.textContent;
    const whole = name.classList.toggle("whole");
    name.textContent = whole ? name.title : name.dataset.short;
  });
  // Exact values behind rounded ones.
  document.addEventListener("mouseover", event => {
    const cell = event.target.closest && event.target.closest("td[data-v]");
    if (cell && cell.dataset.v !== "" && !cell.title) cell.title = cell.dataset.v + (cell.closest("table").dataset.exact || "");
  });
})();
