// The grid as a picture: a box for each VO, lines for forwarded jobs; and the same as a matrix.
import { counted, ends, make, shown } from "./words.js";

const FEW = 12;
const MOST_LINES = 60;
const SVG = "http://www.w3.org/2000/svg";

// Where the boxes are: few on an ellipse, so that lines between them can be seen; many in rows.
function places(count, width) {
  if (count <= FEW && width >= 560) {
    const wide = Math.min(190, width / 4), high = 96;
    const height = count < 3 ? 150 : Math.min(560, 170 + 44 * count);
    const boxes = Array.from({ length: count }, (_, which) => {
      const angle = (2 * Math.PI * which) / count - Math.PI / (count === 2 ? 1 : 2);
      return [width / 2 + Math.cos(angle) * (Math.min(width, 1200) / 2 - wide / 2 - 4) - wide / 2,
        height / 2 + Math.sin(angle) * (height / 2 - high / 2 - 4) - high / 2];
    });
    return { boxes, wide, high, height, small: false };
  }
  const small = count > FEW;
  // Between few boxes there is room for their lines.
  const least = !small ? 150 : count > 60 ? 66 : 84, gap = small ? 6 : 34;
  const columns = Math.max(1, Math.min(count, Math.floor((width + gap) / (least + gap - 6))));
  const wide = (width + gap) / columns - gap - 1, high = small ? 44 : 92;
  const boxes = Array.from({ length: count }, (_, which) =>
    [(which % columns) * (wide + gap), Math.floor(which / columns) * (high + gap) + 3]);
  const height = Math.ceil(count / columns) * (high + gap) - gap + 6;
  return { boxes, wide, high, height, columns, small };
}

export class Picture {
  constructor(holder, about, choose) {
    this.holder = holder;
    this.about = about;
    this.chosen = null;
    this.frame = null;
    this.flows = [];
    this.clustersOf = about.vos.map((_, vo) =>
      about.clusters.flatMap((cluster, number) => (cluster.vo === vo ? [number] : [])));
    this.cpusOf = this.clustersOf.map((mine) =>
      mine.reduce((sum, number) => sum + (about.clusters[number].cpus ?? 0), 0));
    this.lines = document.createElementNS(SVG, "svg");
    this.lines.setAttribute("aria-hidden", "true");
    // What the box of each VO shows.
    this.shown = about.vos.map(() => "");
    this.nodes = about.vos.map((name, vo) => {
      const node = make("button", { type: "button", class: "node", "aria-pressed": "false" });
      node.addEventListener("click", () => choose(vo));
      node.addEventListener("keydown", (event) => this.step(event, vo));
      return node;
    });
    holder.append(...this.nodes, this.lines);
    this.layOut();
  }

  // Arrow keys go from box to box.
  step(event, vo) {
    const columns = this.laid.columns ?? 1;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    this.nodes[Math.max(0, Math.min(this.nodes.length - 1, vo + by))].focus();
  }

  layOut() {
    this.laid = places(this.nodes.length, this.holder.clientWidth);
    const { boxes, wide, high, height, small } = this.laid;
    this.holder.style.height = `${height}px`;
    this.nodes.forEach((node, vo) => {
      node.classList.toggle("small", small);
      Object.assign(node.style,
        { left: `${boxes[vo][0]}px`, top: `${boxes[vo][1]}px`, width: `${wide}px`, height: `${high}px` });
      node.replaceChildren(...this.inside(vo, small));
      this.shown[vo] = "";
    });
    this.show(this.frame);
    this.drawLines();
  }

  inside(vo, small) {
    const name = this.about.vos[vo];
    const title = make("span", { class: "title", title: name }, small ? ends(name) : name);
    if (small) return [title, make("span", { class: "said" }), make("i", { class: "fill" })];
    const bars = this.clustersOf[vo].slice(0, 3).map((number) =>
      make("span", { class: "bar", title: this.about.clusters[number].name }, make("i")));
    return [title, ...bars, make("span", { class: "said" }), make("span", { class: "users" })];
  }

  show(frame) {
    this.frame = frame;
    if (!frame) return;
    const { clusters, vos } = this.about;
    this.nodes.forEach((node, vo) => {
      const mine = this.clustersOf[vo];
      const sum = (of) => mine.reduce((all, number) => all + (of[number] ?? 0), 0);
      const busy = sum(frame.busy), queued = Math.round(sum(frame.queued)), cpus = this.cpusOf[vo];
      const share = cpus ? Math.min(1, busy / cpus) : 0;
      const percent = `${Math.round(100 * share)} %`;
      const users = this.laid.small ? "" : this.inTheGrid(frame, vo);
      const down = mine.filter((number) => frame.down?.includes(number)).length;
      const content = [busy, queued, users, down, ...mine.map((number) => frame.busy[number])].join();
      if (content === this.shown[vo]) return;
      this.shown[vo] = content;
      const said = node.querySelector(".said");
      if (this.laid.small) {
        node.querySelector(".fill").style.height = `${100 * share}%`;
        said.textContent = down ? "down" : queued ? `${percent} +${shown(queued)}` : percent;
      } else {
        node.querySelectorAll(".bar > i").forEach((bar, place) => {
          const { cpus: own } = clusters[mine[place]];
          bar.style.width = `${own ? Math.min(100, (100 * frame.busy[mine[place]]) / own) : 0}%`;
        });
        said.textContent = `${down ? "down; last " : ""}${percent} busy, ${shown(queued)} queued`;
        node.querySelector(".users").textContent =
          `its jobs: ${users}`;
      }
      node.setAttribute("aria-label",
        `${vos[vo]}: ${down ? `${counted(down, "cluster")} down; as last known, ` : ""}` +
        `${shown(Math.round(busy))} of ${counted(cpus, "CPU")} busy, ${counted(queued, "job")} queued`);
      node.classList.toggle("down", down > 0);
      node.title = node.getAttribute("aria-label");
    });
  }

  // The states in which a job has not ended.
  inTheGrid(frame, vo) {
    const words = { waiting: "waiting", running: "running", "in the grid": "in the grid" };
    return this.about.states.flatMap((state, place) =>
      words[state] ? [`${shown(frame.states[place][vo])} ${words[state]}`] : []).join(", ");
  }

  choose(vo) {
    this.chosen = vo;
    this.nodes.forEach((node, one) => node.setAttribute("aria-pressed", String(one === vo)));
    this.drawLines();
  }

  showFlows(flows) {
    this.flows = flows;
    this.drawLines();
  }

  // Between few VOs all flows; between many only those of the chosen one, the largest ones.
  drawLines() {
    const { boxes, wide, high, small } = this.laid;
    const middle = (vo) => [boxes[vo][0] + wide / 2, boxes[vo][1] + high / 2];
    let shownFlows = this.flows;
    if (this.chosen !== null)
      shownFlows = shownFlows.filter(([from, to]) => from === this.chosen || to === this.chosen);
    else if (small) shownFlows = [];
    shownFlows = [...shownFlows].sort((one, other) => other[2] - one[2]).slice(0, MOST_LINES);
    const most = Math.max(1, ...shownFlows.map(([, , jobs]) => jobs));
    this.lines.replaceChildren(...shownFlows.map(([from, to, jobs, recent]) => {
      const [[x1, y1], [x2, y2]] = [middle(from), middle(to)];
      const long = Math.hypot(x2 - x1, y2 - y1) || 1;
      // Each direction bends to its own side.
      const bend = Math.min(60, long / 5);
      const cx = (x1 + x2) / 2 - ((y2 - y1) / long) * bend;
      const cy = (y1 + y2) / 2 + ((x2 - x1) / long) * bend;
      const line = document.createElementNS(SVG, "path");
      line.setAttribute("d", `M${x1},${y1} Q${cx},${cy} ${x2},${y2}`);
      const kind = this.chosen === null ? (recent ? "recent" : "")
        : from === this.chosen ? "out" : "in";
      line.setAttribute("class", `flow ${kind}`);
      line.setAttribute("stroke-width", (0.8 + (small ? 3 : 7) * Math.sqrt(jobs / most)).toFixed(1));
      line.setAttribute("opacity", recent || this.chosen !== null ? "0.75" : "0.3");
      return line;
    }));
    // Many boxes fill the picture: they let lines behind them show through, and none hides a word.
    this.nodes.forEach((node) => node.classList.toggle("clear", small && this.chosen !== null));
  }
}

// Pixels that a letter of a name takes, more or less.
const LETTER = 6;
// Of a place that has its figure in it.
const ROOM = 28;

// Rows are VOs whose jobs went, columns VOs that ran them; darker is more.
export class Matrix {
  constructor(holder, about, say) {
    this.holder = holder;
    this.canvas = holder.querySelector("canvas");
    this.legend = holder.querySelector("p");
    this.vos = about.vos;
    this.flows = [];
    this.at = null;
    this.say = say;
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect();
      const place = (length, all) => Math.floor((length - this.margin) / this.cell);
      this.point(place(event.clientY - box.top), place(event.clientX - box.left));
    });
    this.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      const [row, column] = this.at ?? [0, 0];
      this.point(row + by[0], column + by[1]);
    });
  }

  point(row, column) {
    const last = this.vos.length - 1;
    if (row < 0 || column < 0 || row > last || column > last) return;
    this.at = [row, column];
    const found = this.flows.find(([from, to]) => from === row && to === column);
    this.say(row === column ? `${this.vos[row]}: jobs that stayed in their VO are not shown`
      : `${counted(found ? found[2] : 0, "job")} of ${this.vos[row]} ran in ${this.vos[column]}`);
    this.draw();
  }

  show(flows) {
    this.flows = flows;
    this.draw();
  }

  begin() {
    this.say("Point at a cell, or use the arrow keys.");
    this.draw();
  }

  draw() {
    if (this.holder.hidden) return;
    const count = this.vos.length, room = Math.min(this.holder.clientWidth, 900);
    const longest = Math.max(...this.vos.map((name) => name.length));
    // Names are cut if there is no room.
    this.margin = count <= 60 ? Math.min(LETTER * (longest + 2), Math.max(90, room / 3)) : 12;
    this.cell = Math.max(3, Math.floor((room - this.margin) / count));
    this.cell = Math.min(this.cell, 60);
    const side = this.margin + count * this.cell, scale = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: side * scale, height: side * scale });
    Object.assign(this.canvas.style, { width: `${side}px`, height: `${side}px` });
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.fillStyle = colour("faint");
    pen.fillRect(this.margin, this.margin, count * this.cell, count * this.cell);
    const most = this.flows.reduce((so, [, , jobs]) => Math.max(so, jobs), 1);
    pen.fillStyle = colour("c0");
    for (const [from, to, jobs] of this.flows) {
      // A number in the cell must be legible.
      pen.globalAlpha = 0.15 + (this.cell >= ROOM ? 0.45 : 0.85) * Math.sqrt(jobs / most);
      pen.fillRect(this.margin + to * this.cell, this.margin + from * this.cell,
        Math.max(1, this.cell - (this.cell > 5)), Math.max(1, this.cell - (this.cell > 5)));
    }
    pen.globalAlpha = 1;
    this.legend.textContent =
      "Rows: VO of the user. Columns: VO where jobs ran. Jobs that stayed in their VO are not shown. "
      + `Darkest cell: ${counted(most, "job")}.`;
    this.write(pen, colour);
    if (!this.at) return;
    pen.strokeStyle = colour("c1");
    pen.lineWidth = 2;
    pen.strokeRect(this.margin + this.at[1] * this.cell - 1, this.margin + this.at[0] * this.cell - 1,
      this.cell + 1, this.cell + 1);
  }

  // Names, where there is room for them.
  write(pen, colour) {
    if (this.margin < 20 || this.cell < 11) return;
    pen.fillStyle = colour("ink");
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    if (this.cell >= ROOM) {
      pen.textAlign = "center";
      for (const [from, to, jobs] of this.flows)
        pen.fillText(shown(jobs), this.margin + (to + 0.5) * this.cell, this.margin + (from + 0.5) * this.cell);
      pen.textAlign = "start";
    }
    this.vos.forEach((name, vo) => {
      const most = Math.floor(this.margin / LETTER) - 1;
      const short = name.length > most ? `${name.slice(0, most - 1)}…` : name;
      pen.fillText(short, 2, this.margin + (vo + 0.5) * this.cell);
      pen.save();
      pen.translate(this.margin + (vo + 0.5) * this.cell, this.margin - 4);
      pen.rotate(-Math.PI / 2);
      pen.fillText(short, 0, 0);
      pen.restore();
    });
  }
}
