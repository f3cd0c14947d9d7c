// Draws each chart from the rows of its table, sorts and filters tables. Needs window.vegaEmbed.
"use strict";
(() => {
  const views = new Map(); // the drawn charts: element -> Vega's view
  const text = "var(--text)", soft = "var(--soft)", grid = "var(--grid)";
  const coarse = matchMedia("(pointer: coarse)").matches;
  const narrow = innerWidth < 700;
  const config = {
    background: "transparent",
    font: "system-ui, sans-serif",
    view: { stroke: grid },
    axis: { labelFontSize: 12, titleFontSize: 12, labelColor: soft, titleColor: soft, gridColor: grid, domainColor: grid, tickColor: grid, titleFontWeight: 400 },
    legend: { labelFontSize: 12, labelColor: text, titleColor: soft, orient: "bottom", labelLimit: 240, columns: narrow ? 2 : 4 },
    axisY: { labelLimit: narrow ? 140 : 260 },
    axisX: { labelOverlap: true },
    range: { category: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `var(--g${number})`) },
  };

  const bodyRows = (table) => [...table.tBodies[0].rows];
  const isNumber = (table, column) => table.dataset.numbers[column] === "1";

  const parsed = new Map(); // the rows of a table that has several charts
  function values(table) {
    if (!parsed.has(table)) parsed.set(table, parse(table));
    return parsed.get(table);
  }

  function parse(table) {
    const rows = bodyRows(table).filter((row) => !row.hidden);
    return rows.map((row) => {
      const value = {};
      [...row.cells].forEach((cell, column) => {
        const content = cell.textContent.trim();
        value[`c${column}`] = content === "" ? null : isNumber(table, column) ? Number(content) : content;
        if (column === 0 && /^\d{4}-\d\d-\d\dT/.test(content)) value.t0 = Date.parse(content);
      });
      return value;
    });
  }

  async function draw(element) {
    const table = document.getElementById(element.dataset.table);
    const spec = JSON.parse(element.dataset.spec);
    // where a finger scrolls the page, it cannot move the axes, too
    if (coarse && spec.params) spec.params = spec.params.filter((param) => param.bind !== "scales");
    const data = { name: "rows", values: values(table) };
    const options = { ast: true, actions: false, defaultStyle: false, renderer: "svg", config };
    const result = await vegaEmbed(element, { width: "container", ...spec, data }, options);
    views.set(element, result.view);
    element.dataset.drawn = data.values.length;
  }

  function redraw(table) {
    for (const [element, view] of views) {
      if (element.dataset.table === table.id) {
        const rows = values(table);
        view.data("rows", rows).runAsync();
        element.dataset.drawn = rows.length;
      }
    }
  }

  function sort(header) {
    const table = header.closest("table"), column = header.cellIndex, numeric = isNumber(table, column);
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = bodyRows(table).map((row) => {
      const content = row.cells[column].textContent.trim();
      return [numeric ? (content === "" ? Infinity : Number(content)) : content, row];
    });
    keyed.sort(([a], [b]) => (numeric ? a - b : a.localeCompare(b)) * (down ? -1 : 1));
    table.tBodies[0].append(...keyed.map(([, row]) => row));
  }

  function filter(wanted) {
    const needle = wanted.trim().toLowerCase();
    let shown = 0, all = 0;
    for (const table of document.querySelectorAll("main table")) {
      const whole = table.caption.textContent.toLowerCase().includes(needle);
      let inTable = 0;
      for (const row of bodyRows(table)) {
        row.hidden = !whole && !row.textContent.toLowerCase().includes(needle);
        inTable += row.hidden ? 0 : 1;
        all += 1;
      }
      shown += inTable;
      table.closest(".figure").classList.toggle("filtered", needle !== "" && inTable === 0);
      parsed.delete(table);
      redraw(table);
    }
    document.getElementById("count").textContent = needle ? `${shown} of ${all} rows` : "";
  }

  // one chart at a time, those near the window first, so that the page stays responsive; printing needs all of them
  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 20));
  const waiting = [...document.querySelectorAll(".chart")], near = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) near[entry.isIntersecting ? "add" : "delete"](entry.target);
  });
  waiting.forEach((element) => observer.observe(element));
  async function drawNext() {
    if (waiting.length === 0) {
      document.documentElement.dataset.complete = "yes";
      return;
    }
    const place = Math.max(waiting.findIndex((element) => near.has(element)), 0);
    await draw(waiting.splice(place, 1)[0]);
    idle(drawNext);
  }
  requestAnimationFrame(() => setTimeout(drawNext));

  document.addEventListener("click", (event) => {
    const header = event.target.closest("th");
    if (header && header.closest("main")) sort(header);
  });
  let pending;
  const box = document.getElementById("filter");
  box.addEventListener("input", () => {
    clearTimeout(pending);
    pending = setTimeout(() => filter(box.value), 150);
  });
  box.form.addEventListener("submit", (event) => event.preventDefault());
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")].filter((one) => one.querySelectorAll("tr").length < 200);
    opened.forEach((one) => { one.open = true; });
  });
  window.addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
  document.getElementById("scripts").remove();
  document.documentElement.dataset.ready = "yes";
})();
