// Interventions in a live run: each is confirmed in a dialog, and sent to the server.
import { make } from "./words.js";

const find = (id) => document.getElementById(id);
let isPaused = false;
let asked = 0;

// Whether the user confirms. Only the last dialog counts: browsers report a closed one late.
function isSure(words) {
  const dialog = find("sure"), mine = ++asked;
  find("sure-words").textContent = words;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((answer) =>
    dialog.addEventListener("close", () => {
      dialog.dataset.answered = mine;
      answer(mine === asked && dialog.returnValue === "yes");
    }, { once: true }));
}

async function send(row) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("intervene", { method: "POST", headers, body: JSON.stringify(row) });
  if (!answer.ok) throw new Error(await answer.text());
}

function onPress(id, described, trouble) {
  find(id).addEventListener("click", async () => {
    const [words, row] = described();
    if (!(await isSure(`${words}?`))) return;
    trouble("");
    find("requested").textContent = "";
    try {
      await send(row);
      find("requested").textContent = `Requested: ${words}.`;
    } catch (error) {
      trouble(error instanceof TypeError ? "The server of this page cannot be reached." : error.message);
    }
  });
}

export function setUpInterventions(about, trouble) {
  find("interventions").hidden = false;
  for (const id of ["inject-down", "inject-one", "inject-other"])
    find(id).append(...about.vos.map((name) => make("option", { value: name }, name)));
  find("inject-other").selectedIndex = Math.min(1, about.vos.length - 1);
  find("inject-entity").append(...about.live.entities.map((name) => make("option", { value: name }, name)));
  const able = about.live.clusters.filter(([, , machines]) => machines > 0);
  find("inject-cluster").append(...able.map(([vo, cluster, machines], place) =>
    make("option", { value: place }, `${vo}/${cluster} (0 to ${machines - 1})`)));
  const value = (id) => find(id).value;
  const mayTake = () => { find("inject-machine").disabled = !able.length || !/^\d+$/.test(value("inject-number")); };
  find("inject-number").addEventListener("input", mayTake);
  mayTake();
  const mayCut = () => { find("inject-cut").disabled = value("inject-one") === value("inject-other"); };
  for (const id of ["inject-one", "inject-other"]) find(id).addEventListener("change", mayCut);
  mayCut();
  const buttons = {
    "inject-pause": () => isPaused
      ? ["Resume the clock", { what: "go_on" }]
      : ["Stop the clock", { what: "pause" }],
    "inject-heal": () => ["Heal all faults that were injected here", { what: "heal" }],
    "inject-kill": () => [`Kill the actor of ${value("inject-entity")}`, { what: "kill", entity: value("inject-entity") }],
    "inject-vo": () => [`Take ${value("inject-down")} down`, { what: "take_vo_down", vo: value("inject-down") }],
    "inject-machine": () => {
      const [vo, cluster] = able[Number(value("inject-cluster"))];
      const machine = Number(value("inject-number"));
      return [`Take machine ${machine} of ${vo}/${cluster} down`,
        { what: "take_machine_down", vo, cluster, machine }];
    },
    "inject-cut": () => [`Cut ${value("inject-one")} off from ${value("inject-other")}`,
      { what: "cut_off", vo: value("inject-one"), other: value("inject-other") }],
  };
  for (const [id, described] of Object.entries(buttons)) onPress(id, described, trouble);
}

// Faults that have not been healed.
export function showLasting(lasting) {
  const words = lasting.map(([, what]) => what).join("; ");
  find("lasting").hidden = !words;
  find("lasting").textContent =
    `Active faults: ${words}. Unless they are healed, jobs may wait until the --time-limit of the run.`;
}

// The interventions so far, newest first.
export function showDone(done, timed, isOver) {
  find("done").hidden = !done.length;
  if (isOver) find("interventions").hidden = true;
  const clockWords = done.map(([, words]) => words).filter((words) => words.startsWith("the clock"));
  isPaused = clockWords.at(-1) === "the clock was stopped";
  find("inject-pause").textContent = isPaused ? "Resume the clock" : "Stop the clock";
  const lines = find("done-lines");
  if (lines.children.length === done.length) return;
  lines.replaceChildren(...[...done].reverse().map(([time, words]) =>
    make("li", {}, make("time", {}, timed(time)), make("span", {}, words))));
}
