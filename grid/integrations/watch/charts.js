// Charts over time, drawn by Vega-Lite, which vega.js brings along.
import { make, unitOf } from "./words.js";

const FIGURES = [
  { name: "utilization", title: "utilization", time: "level_time" },
  { name: "queued", title: "queued jobs", time: "level_time" },
  { name: "wait", title: "mean wait of starting jobs (s)", time: "time", sparse: true },
  { name: "utility", title: "mean utility of starting jobs", time: "time", sparse: true },
  { name: "age", title: "age of the known states of other VOs (s)", time: "time", sparse: true },
];
// Without an exponent, with as many digits as in reports.
const FIGURE = ",.6~r";
const OPTIONS = { actions: false, renderer: "svg", ast: true, logLevel: 1, tooltip: { theme: "custom" } };

const configOf = (about, width) => ({
  ...about.vega,
  font: "system-ui, sans-serif",
  legend: { ...about.vega.legend, columns: 2, labelLimit: Math.max(100, width / 2 - 50) },
});

// Up to FEW VOs have a colour each, the same in all charts.
const FEW = 6;
const colourOf = (vos, name) => `var(--c${vos.length > FEW ? 0 : vos.indexOf(name)})`;

// Whole pixels: half a pixel more would add a scroll bar.
const roomIn = (holder) => Math.floor(holder.getBoundingClientRect().width);

// Charts are drawn one by one, so that the page stays responsive.
export class Courses {
  constructor(holder, about) {
    this.about = about;
    this.series = {};
    this.unit = unitOf(about.to - about.from);
    // The age of information is known from the events of a run.
    const figures = FIGURES.filter(({ name }) => name !== "age" || about.has_ages);
    this.charts = figures.map((figure) => {
      const chart = make("div", { class: "chart", role: "img", "aria-label": figure.title });
      holder.append(chart);
      return { figure, holder: chart, view: null };
    });
  }

  // The grid's figures, and those of a VO or null.
  async show(grid, vo, name, now) {
    this.lines = [["grid", grid], ...(vo ? [[name, vo]] : [])];
    await this.draw(now);
  }

  async draw(now) {
    this.unit = unitOf(this.about.to - this.about.from);
    for (const chart of this.charts) {
      const wide = roomIn(chart.holder);
      if (!wide) continue;
      const fresh = make("div");
      const { view } = await vegaEmbed(fresh, this.spec(chart.figure, now, wide), OPTIONS);
      chart.view?.finalize();
      chart.view = view;
      chart.holder.replaceChildren(fresh);
    }
  }

  rows(figure) {
    return this.lines.flatMap(([of, course]) =>
      course[figure.time].flatMap((time, place) => {
        const value = course[figure.name][place];
        return figure.sparse && value === null ? [] : [{ of, time: time / this.unit[0], value }];
      }));
  }

  spec(figure, now, wide) {
    const [seconds, unit] = this.unit;
    const names = this.lines.map(([name]) => name);
    const x = {
      field: "time", type: "quantitative", title: `time (${unit})`,
      scale: { domain: [this.about.from / seconds, this.about.to / seconds], nice: false },
      axis: { format: FIGURE, tickCount: 5 },
    };
    const rows = this.rows(figure);
    // Zeros alone would be drawn at half height.
    const scale = rows.some(({ value }) => value) ? {} : { domain: [0, 1] };
    const axis = { format: FIGURE, tickCount: 4 };
    const y = { field: "value", type: "quantitative", title: null, axis, scale };
    const colour = {
      field: "of", type: "nominal", legend: names.length > 1 ? { title: null } : null,
      scale: { domain: names, range: ["var(--ink)", colourOf(this.about.vos, names[1])].slice(0, names.length) },
    };
    const dash = { ...colour, scale: { domain: names, range: [[1, 0], [6, 3]].slice(0, names.length) } };
    const tooltip = [{ field: "of", title: " " }, { field: "time", title: `time (${unit})`, format: FIGURE },
      { field: "value", title: figure.title, format: FIGURE }];
    const step = figure.sparse ? {} : { interpolate: "step-after" };
    // Points mark the ends of a line over a gap.
    const point = figure.sparse ? { size: 14, filled: true, opacity: 1 } : { size: 60, opacity: 0 };
    return {
      width: wide, height: 150, autosize: { type: "fit-x", contains: "padding" },
      title: figure.title, config: configOf(this.about, wide),
      params: [{ name: "now", value: now / seconds }],
      data: { values: rows },
      layer: [
        { mark: { type: "line", clip: true, ...step }, encoding: { x, y, color: colour, strokeDash: dash } },
        { mark: { type: "point", clip: true, ...point }, encoding: { x, y, color: colour, tooltip } },
        { data: { values: [{}] }, mark: { type: "rule", color: "var(--c1)", strokeWidth: 2, strokeDash: [4, 3], clip: true },
          encoding: { x: { ...x, field: undefined, datum: { expr: "now" } } } },
      ],
    };
  }

  now(time) {
    for (const { view } of this.charts) view?.signal("now", time / this.unit[0]).run();
  }
}

export class Gantt {
  constructor(holder, about) {
    this.holder = holder;
    this.about = about;
    this.view = null;
  }

  async show(answer) {
    if (!answer.chart) {
      this.view?.finalize();
      this.view = null;
      this.holder.replaceChildren(make("p", { class: "note" }, `${answer.cluster}: no job has ended in this time. Running jobs are drawn when they end.`));
      return;
    }
    const seconds = answer.unit_s;
    const names = Object.keys(answer.rows);
    const rows = answer.rows.job.map((_, place) =>
      Object.fromEntries(names.map((name) => [name, answer.rows[name][place]])));
    const wide = roomIn(this.holder);
    const spec = { ...answer.chart, width: wide, autosize: { type: "fit-x", contains: "padding" },
      config: configOf(this.about, wide), datasets: { gantt: rows } };
    const { x } = spec.layer[0].encoding;
    x.scale = { ...x.scale, domain: [answer.since / seconds, answer.until / seconds] };
    const fresh = make("div");
    const { view } = await vegaEmbed(fresh, spec, OPTIONS);
    this.view?.finalize();
    this.view = view;
    this.holder.replaceChildren(fresh);
  }
}
