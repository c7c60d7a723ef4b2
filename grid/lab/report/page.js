// Draws the charts of a report, and makes its choices and the headers of its tables work.
(() => {
  "use strict";
  const WIDTH = 520;
  const LEAST = 260;
  const find = (selector) => [...document.querySelectorAll(selector)];
  const embedded = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "{}");
  const tables = embedded("tables");
  const config = embedded("config");
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

  // A facet grid takes the width of the page; wrapped panels have fewer columns if it is narrow.
  function fitPanels(spec, width) {
    if (!spec.facet || !spec.spec) return;
    const { panels, names } = spec.usermeta;
    const room = width - 115 - (names > 10 ? names + 20 : 0);
    const most = Math.max(1, Math.floor(room / LEAST));
    const count = spec.columns ? Math.min(panels, most) : panels;
    if (spec.columns) spec.columns = count;
    spec.spec.width = Math.max(90, Math.floor(room / count) - 22);
  }

  // Legends have been laid out for a chart of WIDTH pixels.
  function fitLegends(node, share) {
    if (!node || typeof node !== "object") return;
    if (node.legend?.columns) {
      node.legend.columns = Math.max(1, Math.floor(node.legend.columns * share));
      node.legend.labelLimit = Math.max(120, WIDTH * share - 60);
    }
    for (const inner of Object.values(node)) fitLegends(inner, share);
  }

  async function draw(figure) {
    const holder = figure.querySelector(".chart");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const width = holder.clientWidth;
    const names = JSON.stringify(spec).matchAll(/"data": ?\{"name": ?"([^"]+)"\}/g);
    spec.datasets = Object.fromEntries([...names].map(([, name]) => [name, rowsOf(name)]));
    const values = chosen();
    for (const one of spec.params ?? []) if (one.name in values) one.value = values[one.name];
    spec.config = { ...config, font: "system-ui, sans-serif" };
    fitPanels(spec, width);
    fitLegends(spec, Math.min(2, width / WIDTH));
    if (spec.width === "container") {
      spec.width = width;
      spec.autosize = { type: "fit-x", contains: "padding", resize: true };
    }
    const options = { actions: false, renderer: "svg", logLevel: 1, tooltip: { theme: "custom" } };
    const made = await vegaEmbed(holder, spec, options);
    charts.push({ figure, width, view: made.view, signals: (spec.params ?? []).map((p) => p.name) });
  }

  async function drawAll() {
    for (const figure of find("figure[data-chart]")) {
      await draw(figure);
      await new Promise((resume) => setTimeout(resume, 0));
    }
    document.body.dataset.drawn = charts.length;
  }

  function download(name, text, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  // The chart as it is shown, in the colours of print: those of the first rule of the style sheet.
  async function saveSvg(figure) {
    const drawn = charts.find((one) => one.figure === figure);
    if (!drawn) return;
    const { style } = document.getElementById("style").sheet.cssRules[0];
    const svg = (await drawn.view.toSVG())
      .replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name).trim())
      .replace("<svg ", '<svg style="background: #fff" ');
    download(`${figure.dataset.chart}.svg`, svg, "image/svg+xml");
  }

  // The browser's print dialog with this chart alone, which saves it as PDF.
  function savePdf(figure) {
    document.body.classList.add("alone");
    figure.classList.add("chosen");
    print();
    document.body.classList.remove("alone");
    figure.classList.remove("chosen");
  }

  function saveTex(table) {
    const tex = (text) => text.replace(/[\\{}$&#_%^~]/g, (sign) =>
      ({ "\\": "\\textbackslash{}", "^": "\\^{}", "~": "\\~{}" })[sign] ?? `\\${sign}`)
      .replaceAll("±", "$\\pm$").replaceAll("–", "--").replaceAll("…", "\\dots{}");
    const lines = [...table.rows].map((row) =>
      [...row.cells].map((cell) => tex(cell.textContent)).join(" & ") + " \\\\");
    const keys = Number(table.dataset.keys);
    const columns = [...table.rows[0].cells].map((_, n) => (n < keys ? "l" : "r")).join("");
    const text = [`\\begin{tabular}{${columns}}`, "\\toprule", lines[0], "\\midrule",
      ...lines.slice(1), "\\bottomrule", "\\end{tabular}", ""].join("\n");
    download("table.tex", text, "application/x-tex");
  }

  function save(button) {
    const figure = button.closest("figure");
    const kinds = { svg: () => saveSvg(figure), pdf: () => savePdf(figure),
      tex: () => saveTex(button.parentElement.querySelector("table")) };
    kinds[button.dataset.save]();
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

  // Blocks of other choices are hidden.
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

  // Print cannot unfold.
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
  for (const select of find("select[data-signal]")) select.addEventListener("change", choose);
  for (const button of find("button.save")) button.addEventListener("click", () => save(button));
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
