"use strict";
// Tabs, sortable and filterable tables. Without it the page shows everything, unsorted.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Tabs -----------------------------------------------------------------------------------------
  const bar = document.querySelector(".tabs");
  if (bar) {
    const buttons = all("button", bar);
    const show = (button, focus) => {
      for (const one of buttons) {
        const on = one === button;
        one.setAttribute("aria-selected", String(on));
        one.tabIndex = on ? 0 : -1;
        document.getElementById(one.getAttribute("aria-controls")).hidden = !on;
      }
      if (focus) button.focus();
      document.dispatchEvent(new Event("shown"));
    };
    const of = id => buttons.find(one => one.getAttribute("aria-controls") === id);
    const follow = () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      const panel = target && target.closest("[role=tabpanel]");
      if (panel) { show(of(panel.id)); target.scrollIntoView(); }
      return Boolean(panel);
    };
    buttons.forEach((button, place) => {
      button.addEventListener("click", () => show(button));
      button.addEventListener("keydown", event => {
        const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (move) show(buttons[(place + move + buttons.length) % buttons.length], true);
      });
    });
    bar.hidden = false;
    if (!follow()) show(buttons[0]);
    addEventListener("hashchange", follow);
  }

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
})();
