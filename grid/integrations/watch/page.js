// The page: its clock, what it asks the server, and what it does with the answers.
import { Courses, Gantt } from "./charts.js";
import { Matrix, Picture } from "./picture.js";
import { setUpInterventions, showDone, showLasting } from "./interventions.js";
import { clock, counted, level, make, shown } from "./words.js";

const find = (id) => document.getElementById(id);
const STEPS = 10000;
const about = await ask("about");
const goesOn = about.kind === "run";
let span = about.to - about.from || 1;
// `following`: the page shows the current state of a run in progress; `betweenLooks`: seconds.
const state = { time: about.from, playing: false, following: goesOn, over: false, vo: null,
  cluster: 0, flows: [], betweenLooks: 0 };

async function ask(question) {
  const answer = await fetch(question);
  if (!answer.ok) throw new Error(`${question}: ${await answer.text()}`);
  return answer.json();
}

const troubles = { page: "", intervention: "" };
function trouble(words, of = "page") {
  troubles[of] = words;
  const said = Object.values(troubles).filter(Boolean).join(" ");
  find("trouble").hidden = !said;
  find("trouble").textContent = said;
}

// A panel: its section (null: several), its query, and the least time between two queries.
// An unchanged query is not repeated, and a panel has one query at a time: a slow page only misses
// frames. The run uses the same machine: panels of its present are not redrawn while they are out of
// view, and those that draw slowly are redrawn seldom. A `costly` panel waits until it is near the
// viewport.
const panels = [];
const SHARE = 0.1, LONGEST_REST = 10000;
function panel(every, id, question, show, { needed = () => true, costly = false } = {}) {
  const one = { every, question, show, needed, costly, asked: null, at: 0, rest: 0, busy: false,
    drawn: false, seen: !costly };
  panels.push(one);
  if (id === null) return;
  new IntersectionObserver((entries) => { one.seen = entries.at(-1).isIntersecting; },
    { rootMargin: costly ? "25%" : "0%" }).observe(find(id).closest("section"));
}
const isPresent = () => state.following && !state.over;
async function refresh(one, moment) {
  const wait = isPresent() ? Math.max(one.every, one.rest) : one.every;
  if (one.busy || moment - one.at < wait || !one.needed()) return;
  if (!one.seen && ((isPresent() && one.asked !== null) || (goesOn && one.costly))) return;
  // While other panels are empty, the page is short, and this one seems near.
  if (goesOn && one.costly && !panels.every((other) => other === one || other.drawn || !other.needed())) {
    one.at = moment;
    return;
  }
  const question = one.question();
  if (question === one.asked) return;
  Object.assign(one, { busy: true, at: moment, asked: question });
  try {
    const answer = await ask(question), begun = performance.now();
    await one.show(answer);
    one.drawn = true;
    one.rest = Math.min(LONGEST_REST, (performance.now() - begun) / SHARE);
    trouble("");
  } catch (error) {
    one.asked = null;
    one.at = performance.now() + 2000;
    trouble(error instanceof TypeError
      ? "The server of this page has ended or is not reachable." : error.message);
  } finally {
    one.busy = false;
    document.body.dataset.answers = 1 + Number(document.body.dataset.answers ?? 0);
  }
}

// The clock.

const speeds = [0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800];
const durations = [[300, "5 minutes"], [60, "1 minute"], [20, "20 seconds"], [5, "5 seconds"]];
for (const [seconds, words] of durations)
  find("speed").append(make("option", { value: span / seconds }, `whole run in ${words}`));
for (const speed of speeds)
  find("speed").append(make("option", { value: speed }, `${shown(speed)} s per second`));
find("speed").selectedIndex = 1;

function go(time) {
  state.time = Math.min(about.to, Math.max(about.from, time));
  if (state.time === about.to && state.playing) {
    play(false);
    state.following = goesOn;
  }
  find("time").textContent = clock(state.time - about.from, span);
  find("line").value = Math.round((STEPS * (state.time - about.from)) / span);
  find("line").setAttribute("aria-valuetext", clock(state.time - about.from, span));
}

// The run has progressed.
function extend(to, over) {
  const words = over ? "This run has ended. To see it again: grid watch FOLDER"
    : to <= about.from ? "This run is being set up; the first run takes longer."
    : state.following ? "This run is in progress; the page follows it." : "This run is in progress; press End to follow it.";
  find("what").textContent = words;
  Object.assign(state, { over });
  if (over) trouble("", "intervention");
  if (to === about.to) return;
  about.to = to;
  span = about.to - about.from || 1;
  find("span").textContent = `of ${clock(span, span)} so far`;
  go(state.following ? about.to : state.time);
}

function play(wanted) {
  if (wanted && state.time >= about.to) go(about.from);
  state.following = false;
  state.playing = wanted;
  find("play").textContent = wanted ? "Pause" : "Play";
  find("play").setAttribute("aria-pressed", String(wanted));
}

// Milliseconds between two checks of the panels while the clock stands still.
const RESTING = 50;
let last = performance.now();
function tick(moment) {
  const passed = Math.min(1, (moment - last) / 1000);
  last = moment;
  if (state.playing) go(state.time + passed * Number(find("speed").value));
  for (const one of panels) refresh(one, moment);
  if (state.playing) requestAnimationFrame(tick);
  else setTimeout(requestAnimationFrame, RESTING, tick);
}

find("play").addEventListener("click", () => play(!state.playing));
find("line").addEventListener("input", (event) =>
  seek(about.from + (span * Number(event.target.value)) / STEPS));

// A moment chosen by the user.
function seek(time) {
  go(time);
  state.following = goesOn && state.time === about.to;
}
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("select, canvas, input[type=number], button:not(#play), [contenteditable]")) return;
  const { selectedIndex, length } = find("speed");
  const keys = {
    " ": () => play(!state.playing),
    ArrowLeft: () => seek(state.time - span / 100),
    ArrowRight: () => seek(state.time + span / 100),
    Home: () => seek(about.from),
    End: () => seek(about.to),
    "+": () => { find("speed").selectedIndex = Math.min(length - 1, selectedIndex + 1); },
    "-": () => { find("speed").selectedIndex = Math.max(0, selectedIndex - 1); },
  };
  if (!(event.key in keys)) return;
  event.preventDefault();
  keys[event.key]();
});

// The choices.

function chooseVo(vo) {
  state.vo = vo === state.vo ? null : vo;
  find("vo").value = state.vo ?? "";
  picture.choose(state.vo);
  const own = about.clusters.findIndex((cluster) => cluster.vo === state.vo);
  if (own >= 0) chooseCluster(own);
  describeFlows();
}
function chooseCluster(cluster) {
  state.cluster = cluster;
  find("cluster").value = cluster;
}
find("vo").append(make("option", { value: "" }, "all"),
  ...about.vos.map((name, vo) => make("option", { value: vo }, name)));
find("vo").addEventListener("change", (event) => {
  state.vo = null;
  chooseVo(event.target.value === "" ? null : Number(event.target.value));
});
find("job-vo").append(...about.vos.map((name, vo) => make("option", { value: vo }, name)));
find("cluster").append(...about.clusters.map(({ name }, number) => make("option", { value: number }, name)));
find("cluster").addEventListener("change", (event) => chooseCluster(Number(event.target.value)));
const showsMatrix = () => find("view").value === "matrix";
find("view").addEventListener("change", () => {
  find("picture").hidden = showsMatrix();
  find("matrix").hidden = !showsMatrix();
  if (showsMatrix()) matrix.begin();
  describeFlows();
});

// The content of the page.

const picture = new Picture(find("picture"), about, chooseVo);
const matrix = new Matrix(find("matrix"), about, (words) => { find("pointed").textContent = words; });
for (const id of ["map-choices", "pointed"]) find(id).hidden = about.vos.length === 1;
const courses = new Courses(find("courses"), about);
const gantt = new Gantt(find("gantt"), about);
find("name").textContent = about.name;
find("what").textContent = `${goesOn ? "A run in progress" : "A finished run"}: ` +
  `${counted(about.vos.length, "VO")}, ${counted(about.clusters.length, "cluster")}.`;
find("span").textContent = `of ${clock(span, span)}`;
document.title = `${about.name} – watch`;

const listDone = (done) =>
  showDone(done, (time) => clock(time - about.from, span), state.over || !goesOn);
// An accepted intervention had no effect. Those from before this page was opened are not shown.
let undone = null;
function listUndone(reasons) {
  if (undone !== null && reasons.length > undone) {
    trouble(reasons.at(-1), "intervention");
    find("requested").textContent = "";
  }
  undone = reasons.length;
}
// The next answer clears the page's own error; a refusal stays until the next intervention.
if (about.live) setUpInterventions(about, (words) => trouble(words, "intervention"));
if (about.done) listDone(about.done);

function describeFlows() {
  if (showsMatrix()) return;
  const flows = state.flows, words = find("pointed");
  if (state.vo === null) {
    const jobs = flows.reduce((sum, flow) => sum + flow[2], 0);
    const hint = about.vos.length > 12
      ? " A box shows the share of busy CPUs, and + queued jobs. Select a VO to see its flows."
      : " Orange lines: recently forwarded jobs.";
    words.textContent = `${counted(jobs, "job")} forwarded to another VO so far.${hint}`;
    return;
  }
  const sum = (place) => flows.reduce((all, flow) => all + (flow[place] === state.vo ? flow[2] : 0), 0);
  const line = (colour, style) => make("span", { class: "legend", style: `border-top-color: var(--${colour}); border-top-style: ${style}` });
  words.replaceChildren(`${about.vos[state.vo]}:`, line("c1", "solid"), `${shown(sum(0))} of its jobs ran in other VOs`,
    line("c2", "dashed"), `${shown(sum(1))} jobs of other VOs ran there`);
}

const SIGNS = { "in the grid": 0, waiting: 0, running: 1, completed: 2, failed: 3, rejected: 4, cancelled: 4 };
const signOf = (place) => `s${SIGNS[about.states[place]]}`;

function showStates(frame) {
  const totals = frame.states.map((of) => of.reduce((sum, jobs) => sum + jobs, 0));
  const all = totals.reduce((sum, jobs) => sum + jobs, 0) || 1;
  const stack = make("div", { class: "stack", "aria-hidden": "true" });
  totals.forEach((jobs, place) =>
    stack.append(make("i", { class: signOf(place), style: `width: ${(100 * jobs) / all}%` })));
  const named = state.vo === null ? [] : [make("th", { scope: "col" }, about.vos[state.vo])];
  const head = make("tr", {}, make("th", { scope: "col" }, "jobs"), make("th", { scope: "col" }, "grid"), ...named);
  const isShown = (place) => totals[place] > 0 || !["failed", "rejected"].includes(about.states[place]);
  const rows = about.states.map((name, place) => {
    const own = state.vo === null ? [] : [make("td", {}, shown(frame.states[place][state.vo]))];
    return make("tr", {}, make("th", { scope: "row" }, make("span", { class: `sign ${signOf(place)}` }), name),
      make("td", {}, shown(totals[place])), ...own);
  }).filter((_, place) => isShown(place));
  find("states").replaceChildren(stack,
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

const sumOf = (values) => values.reduce((sum, one) => sum + (one ?? 0), 0);

const beginningOf = (text) => (text.length > 24 ? `${text.slice(0, 24)}…` : text);

function showFigures(frame) {
  const busy = frame.busy.reduce((sum, cpus) => sum + cpus, 0);
  const cpus = about.clusters.reduce((sum, cluster) => sum + (cluster.cpus ?? 0), 0);
  // A finished run has means over intervals.
  const over = about.mean_over ? ` (mean over ${shown(about.mean_over)} s)` : "";
  const given = Object.entries({ ...about.figures, ...frame.figures })
    .filter(([, value]) => value !== null && value !== undefined);
  const rows = [
    ["busy CPUs", `${level(busy)} of ${shown(cpus)}${over}`],
    ...(frame.running ? [["running jobs", level(sumOf(frame.running))]] : []),
    ["queued jobs", `${level(sumOf(frame.queued))}${over}`],
    ...given.map(([key, value]) =>
      [key, typeof value === "number" ? shown(value) : beginningOf(String(value))]),
    ...(frame.actors ?? []).map((share, place) =>
      [`CPU of process ${place + 1}`, `${Math.round(100 * share)} %`]),
  ];
  const kinds = Object.entries(frame.messages ?? {});
  find("of-kinds").hidden = !kinds.length;
  find("messages").replaceChildren(...kinds.flatMap(([kind, count]) =>
    [make("dt", {}, kind), make("dd", {}, shown(count))]));
  find("figures").replaceChildren(...rows.flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]));
}

// While the run is in progress, a query is repeated after each look at it, and often enough to show
// how the run ended before its server ends.
const LONGEST_PAUSE = 500;
function fresh(every) {
  if (!goesOn || state.over) return "";
  const pause = Math.max(every, Math.min(LONGEST_PAUSE, 500 * state.betweenLooks));
  return `&look=${Math.floor(performance.now() / pause)}`;
}
panel(80, null, () => `frame?time=${state.time}&vo=${state.vo ?? ""}${fresh(250)}`, (frame) => {
  if (goesOn) extend(frame.to, frame.over);
  state.betweenLooks = frame.between_looks ?? 0;
  if (frame.done) listDone(frame.done);
  if (frame.lasting) showLasting(frame.lasting);
  if (frame.undone) listUndone(frame.undone);
  picture.show(frame);
  showStates(frame);
  showFigures(frame);
  // The charts end at the present.
  if (!isPresent()) courses.now(frame.time);
});
panel(500, "picture", () => `flows?time=${state.time}${fresh(1000)}`, ({ flows }) => {
  state.flows = [];
  for (let place = 0; place < flows.length; place += 4)
    state.flows.push(flows.slice(place, place + 4));
  picture.showFlows(state.flows);
  matrix.show(state.flows);
  describeFlows();
});
let gridCourse = null;
panel(200, "courses", () => `course?vo=${state.vo ?? ""}${fresh(2000)}`, async (course) => {
  const vo = state.vo;
  if (goesOn || !gridCourse) gridCourse = vo === null ? course : await ask("course");
  await courses.show(gridCourse, vo === null ? null : course, about.vos[vo], state.time);
});
function whose() {
  const of = find("whose").value;
  return of === "cluster" ? `cluster=${state.cluster}` : of === "vo" ? `vo=${state.vo ?? ""}` : "";
}
panel(1000, "events", () => `events?time=${state.time}&${whose()}`, ({ events }) => {
  const before = eventLines(), place = before.indexOf(document.activeElement);
  const key = before[place]?.dataset.key;
  find("events").replaceChildren(...events.map(([time, words, vo, number]) => {
    const one = make("button", { type: "button", title: "Show the history of this job" }, words);
    one.dataset.key = `${time} ${words}`;
    one.addEventListener("click", () => {
      find("job-vo").value = vo;
      find("job-number").value = number;
    });
    return make("li", {}, make("time", {}, clock(time - about.from, span)), one);
  }));
  // The focus stays on the event, or on its successor at that place.
  const lines = eventLines(), same = lines.findIndex((one) => one.dataset.key === key);
  const chosen = chooseEvent(lines, place < 0 ? 0 : same >= 0 ? same : place);
  // The scroll position is kept.
  if (place >= 0) chosen?.focus({ preventScroll: true });
});
// The tab key reaches one of the lines, the arrow keys the others.
const eventLines = () => [...find("events").querySelectorAll("button")];
function chooseEvent(lines, place) {
  const chosen = lines[Math.max(0, Math.min(lines.length - 1, place))];
  for (const one of lines) one.tabIndex = one === chosen ? 0 : -1;
  return chosen;
}
find("events").addEventListener("keydown", (event) => {
  const lines = eventLines(), place = lines.indexOf(document.activeElement);
  const places = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: lines.length };
  if (place < 0 || !(event.key in places)) return;
  event.preventDefault();
  chooseEvent(lines, places[event.key]).focus();
});
const jobNumber = () => find("job-number").value;
panel(500, "job-lines", () => `job?vo=${find("job-vo").value}&number=${jobNumber()}&time=${state.time}`, (history) => {
  find("job-now").replaceChildren(...history.now.map((words) => make("li", {}, words)));
  find("job-lines").replaceChildren(...history.lines.map(([time, words]) =>
    make("li", {}, make("time", {}, clock(time - about.from, span)), make("span", {}, words))));
  find("job-note").textContent = history.has_events !== false ? ""
    : goesOn ? "The history of a job is available once it has ended."
      : "Use --events to see known states, refusals and reasons for waits.";
}, { needed: () => /^\d{1,9}$/.test(jobNumber()) });
panel(1000, "gantt", () => {
  const since = Math.max(about.from, state.time - span * Number(find("window").value));
  return `gantt?cluster=${state.cluster}&since=${since}&until=${state.time}`;
}, async (answer) => {
  await gantt.show(answer);
  const cut = answer.drawn < answer.jobs ? ` The last ${shown(answer.drawn)} of ${shown(answer.jobs)} jobs are drawn.` : "";
  find("bars").textContent = answer.chart ? `${counted(answer.jobs, "job")} in this time.${cut}` : "";
}, { costly: true });

// The width changes with the window, and when a scroll bar comes or goes.
let waiting = 0, widthBefore = null;
new ResizeObserver(([{ contentRect }]) => {
  if (contentRect.width === widthBefore) return;
  widthBefore = contentRect.width;
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    picture.layOut();
    matrix.draw();
    if (courses.lines) courses.draw(state.time);
    panels.at(-1).asked = null;
  }, 200);
}).observe(document.querySelector("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => matrix.draw());

go(goesOn ? about.to : about.from);
if (!goesOn) play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
requestAnimationFrame(tick);
