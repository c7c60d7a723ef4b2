// The page of a sweep in progress: it polls the state of the sweep and shows it.
import { clock, make, shown } from "./words.js";

const EVERY = 500;
const find = (id) => document.getElementById(id);

function cell(spread) {
  if (!spread) return make("td", {}, "–");
  const [mean, lowest, highest] = spread;
  const range = lowest === highest ? [] : [make("small", {}, ` ${shown(lowest)} to ${shown(highest)}`)];
  return make("td", {}, shown(mean), ...range);
}

function showTable(sweep) {
  const names = [...sweep.axes, "runs", ...sweep.metrics];
  const head = make("tr", {}, ...names.map((name, place) =>
    make("th", { scope: "col", class: place < sweep.axes.length ? "axis" : "" }, name)));
  const rows = sweep.rows.map(([point, runs, spreads]) => make("tr", { class: runs ? "" : "waits" },
    ...point.map((value) => make("th", { scope: "row" }, String(value))),
    make("td", {}, `${runs} of ${sweep.seeds}`),
    ...sweep.metrics.map((_, place) => cell(spreads[place]))));
  find("table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  find("more").textContent = sweep.more ? `${shown(sweep.more)} more combinations are not shown.` : "";
}

function show(sweep) {
  document.title = `${sweep.name} – watch`;
  find("name").textContent = sweep.name;
  const ended = sweep.kept + sweep.done + sweep.failed;
  find("bar").max = Math.max(1, sweep.runs);
  find("bar").value = ended;
  const before = sweep.kept ? ` (${shown(sweep.kept)} reused)` : "";
  find("what").textContent = `${sweep.over ? "This sweep has ended: " : ""}` +
    `${shown(sweep.kept + sweep.done)} of ${shown(sweep.runs)} runs done${before}, ` +
    `${shown(sweep.running)} running, ${shown(sweep.failed)} failed.`;
  const left = sweep.left_s === null ? "" : `, ${clock(sweep.left_s, 1e5)} left`;
  find("times").textContent = `${clock(sweep.passed_s, 1e5)} passed${left}`;
  find("measured").textContent = sweep.measured;
  showTable(sweep);
  find("failed").hidden = !sweep.failures.length;
  find("failures").replaceChildren(...sweep.failures.map((words) => make("li", {}, words)));
  document.body.dataset.answers = 1 + Number(document.body.dataset.answers ?? 0);
}

async function look() {
  let isOver = false;
  try {
    const answer = await fetch("sweep");
    if (!answer.ok) throw new Error(await answer.text());
    const sweep = await answer.json();
    find("trouble").hidden = true;
    show(sweep);
    isOver = sweep.over;
  } catch (error) {
    find("trouble").hidden = false;
    find("trouble").textContent = error instanceof TypeError
      ? "The server of this page has ended or is not reachable." : error.message;
  }
  if (!isOver) setTimeout(look, EVERY);
}

look();
