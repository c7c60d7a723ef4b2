// Draws the charts of a report, and makes its choices and the headers of its tables work.
(() => {
  "use strict";
  const NARROW = 460;
  const PANEL = 360;
  const find = (selector) => [...document.querySelectorAll(selector)];
  const told = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "{}");
  const tables = told("tables");
  const config = told("config");
  const charts = [];

  // A column is a list of values, or names and their positions.
  function rows(columns) {
    const names = Object.keys(columns);
    const lists = names.map((name) => {
      const column = columns[name];
      return Array.isArray(column) ? column : column.at.map((place) => column.of[place]);
    });
    return (lists[0] ?? []).map((_, number) =>
      Object.fromEntries(names.map((name, which) => [name, lists[which][number]])));
  }
  const known = {};
  const rowsOf = (name) => (known[name] ??= rows(tables[name]));

  const chosen = () =>
    Object.fromEntries(find("select[data-signal]").map((one) => [one.dataset.signal, one.value]));

  // Panels stand beside each other as far as there is room, all of them as wide as each other.
  function fitPanels(spec, width) {
    if (!spec.facet || !spec.spec) return;
    const room = width - 70 - (spec.usermeta?.names ?? 0);
    const least = spec.usermeta?.panel ?? PANEL;
    const most = Math.max(1, Math.min(spec.columns ?? 1, Math.floor(room / least)));
    // All rows as full as can be: of eight panels, four beside each other and not five.
    const count = spec.facet.sort?.length || most;
    spec.columns = Math.ceil(count / Math.ceil(count / most));
    spec.spec.width = Math.max(100, Math.floor(room / spec.columns) - (spec.spacing ?? 20));
    spec.facet.header = { ...spec.facet.header, labelLimit: spec.spec.width };
  }

  // Names lie below columns that have room for them; else they stand upright, and those of narrow
  // columns are small.
  function layNames(spec, width) {
    const least = spec.usermeta?.column;
    if (!least) return;
    const { x, y } = spec.encoding;
    const column = (width - spec.usermeta.names) / x.scale.domain.length;
    x.axis.labelAngle = column > least ? 0 : -90;
    const size = Math.min(12, Math.max(8, Math.floor(column * 0.85)));
    for (const { axis } of [x, y]) {
      axis.labelLimit *= size / 12;
      axis.labelFontSize = size;
    }
  }

  // How long names are shows only when they are drawn: they stand out, or were shortened.
  function isLegendCut(holder) {
    const { right } = holder.getBoundingClientRect();
    return [...holder.querySelectorAll(".role-legend-label text")].some(
      (text) => text.getBoundingClientRect().right > right || text.textContent.endsWith("\u2026"));
  }

  async function draw(figure) {
    const holder = figure.querySelector(".chart");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const width = holder.clientWidth;
    const names = JSON.stringify(spec).matchAll(/"data": ?\{"name": ?"([^"]+)"\}/g);
    spec.datasets = Object.fromEntries([...names].map(([, name]) => [name, rowsOf(name)]));
    const values = chosen();
    for (const one of spec.params ?? []) if (one.name in values) one.value = values[one.name];
    let columns = width < NARROW ? 2 : Math.max(2, Math.floor(width / 170));
    const labelLimit = Math.max(140, Math.floor(width / columns) - 45);
    spec.config = { ...config, font: "system-ui, sans-serif",
      legend: { ...config.legend, columns, labelLimit } };
    fitPanels(spec, width);
    layNames(spec, width);
    if (spec.width === "container") {
      spec.width = Math.max(width, spec.usermeta?.leastWidth ?? 0);
      spec.autosize = { type: "fit-x", contains: "padding", resize: true };
    }
    const options = { actions: false, renderer: "svg", logLevel: 1, tooltip: { theme: "custom" } };
    let made = await vegaEmbed(holder, spec, options);
    while (columns > 1 && isLegendCut(holder)) {
      made.finalize();
      columns = Math.ceil(columns / 2);
      const labelLimit = columns === 1 ? width - 90 : Math.floor(width / columns) - 45;
      spec.config = { ...spec.config, legend: { ...spec.config.legend, columns, labelLimit } };
      made = await vegaEmbed(holder, spec, options);
    }
    charts.push({ figure, width, view: made.view, signals: (spec.params ?? []).map((p) => p.name) });
  }

  async function drawAll() {
    for (const figure of find("figure[data-chart]")) {
      await draw(figure);
      await new Promise((resume) => setTimeout(resume, 0));
    }
    document.body.dataset.drawn = charts.length;
  }

  // The chart as it is seen, in the colours of paper: those of the first rule of the style sheet.
  async function save(figure) {
    const drawn = charts.find((one) => one.figure === figure);
    if (!drawn) return;
    const { style } = document.getElementById("style").sheet.cssRules[0];
    const svg = (await drawn.view.toSVG())
      .replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name).trim())
      .replace("<svg ", '<svg style="background: #fff" ');
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    link.download = `${figure.dataset.chart}.svg`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  let waiting = 0;
  function fitAgain() {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      for (const one of [...charts]) {
        const width = one.figure.querySelector(".chart").clientWidth;
        if (!width || width === one.width) continue;
        charts.splice(charts.indexOf(one), 1);
        one.view.finalize();
        await draw(one.figure);
      }
    }, 200);
  }

  // What stands for other choices is hidden.
  function showChosen() {
    const values = chosen();
    for (const part of find("[data-when]")) {
      const wanted = JSON.parse(part.dataset.when);
      part.hidden = Object.entries(wanted).some(([name, value]) => values[name] !== value);
    }
    for (const select of find("select[data-signal]"))
      select.parentElement.dataset.chosen = select.selectedOptions[0]?.textContent ?? "";
  }

  function choose(event) {
    const { signal } = event.target.dataset;
    const { value } = event.target;
    for (const same of find(`select[data-signal="${signal}"]`)) same.value = value;
    showChosen();
    for (const { view, signals } of charts)
      if (signals.includes(signal)) view.signal(signal, value).runAsync();
  }

  function sortBy(header) {
    const table = header.closest("table");
    const place = [...header.parentElement.children].indexOf(header);
    const down = header.getAttribute("aria-sort") !== "descending";
    for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const text = (row) => row.children[place].textContent;
    const figure = (row) => parseFloat(text(row).replaceAll(",", "").replace("−", "-"));
    const compare = (a, b) => {
      const [x, y] = [figure(a), figure(b)];
      if (isNaN(x) || isNaN(y))
        return isNaN(x) && isNaN(y) ? text(a).localeCompare(text(b)) * (down ? 1 : -1)
          : isNaN(x) - isNaN(y);
      return down ? y - x : x - y;
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  }

  // Paper does not scroll: a table of many columns is printed as several, each with what its rows are of.
  const PRINTED = 8;
  function splitTables() {
    for (const holder of find(".scroll:has(table.sorts)")) {
      const keys = Number(holder.querySelector("table").dataset.keys);
      const count = holder.querySelector("thead tr").children.length;
      // Of a table with many keys, a part has few other columns, but some.
      const most = Math.max(2, PRINTED + 1 - keys);
      if (count - keys <= most) continue;
      const each = Math.ceil((count - keys) / Math.ceil((count - keys) / most));
      holder.classList.add("split");
      for (let first = keys; first < count; first += each) {
        const part = holder.cloneNode(true);
        part.className = "scroll printed";
        for (const row of part.querySelectorAll("tr"))
          [...row.children].forEach((cell, place) => {
            if (place >= keys && (place < first || place >= first + each)) cell.remove();
          });
        holder.before(part);
      }
    }
  }
  function joinTables() {
    for (const part of find(".printed")) part.remove();
    for (const holder of find(".split")) holder.classList.remove("split");
  }

  // Nor can it be unfolded.
  function unfold() {
    for (const part of find("details:not([open])")) {
      part.open = true;
      part.classList.add("unfolded");
    }
  }
  function foldAgain() {
    for (const part of find("details.unfolded")) {
      part.open = false;
      part.classList.remove("unfolded");
    }
  }

  addEventListener("beforeprint", unfold);
  addEventListener("afterprint", foldAgain);
  addEventListener("beforeprint", splitTables);
  addEventListener("afterprint", joinTables);
  for (const select of find("select[data-signal]")) select.addEventListener("change", choose);
  for (const button of find("button.save"))
    button.addEventListener("click", () => save(button.closest("figure")));
  for (const header of find("table.sorts thead th")) {
    header.tabIndex = 0;
    header.addEventListener("click", () => sortBy(header));
    header.addEventListener("keydown", (event) => event.key === "Enter" && sortBy(header));
  }
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      target.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1);
      target.classList.toggle("tall", target.scrollHeight > target.clientHeight + 1);
    }
  });
  for (const holder of find(".scroll")) watch.observe(holder);
  const watchCharts = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const isMore =
        target.scrollWidth > target.clientWidth + 1 || target.scrollHeight > target.clientHeight + 1;
      target.closest("figure").classList.toggle("scrolls", isMore);
    }
  });
  for (const holder of find("figure .chart")) watchCharts.observe(holder);
  showChosen();
  if (find("figure[data-chart]").length) {
    drawAll();
    addEventListener("resize", fitAgain);
  }
})();
