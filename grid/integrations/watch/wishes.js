// What can be done to a live run: each wish is asked once more, and sent to the server.
import { make } from "./words.js";

const find = (id) => document.getElementById(id);
let isPaused = false;
let asked = 0;

// Whether somebody who is asked once more says yes; to the last question, and to no earlier one,
// for a browser tells of a closed dialog some time after it.
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

async function send(wish) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("wish", { method: "POST", headers, body: JSON.stringify(wish) });
  if (!answer.ok) throw new Error(await answer.text());
}

function wishOn(id, told, trouble) {
  find(id).addEventListener("click", async () => {
    const [words, wish] = told();
    if (!(await isSure(`${words}?`))) return;
    trouble("");
    find("wished").textContent = "";
    try {
      await send(wish);
      find("wished").textContent = `Wished: ${words}.`;
    } catch (error) {
      trouble(error instanceof TypeError ? "The server of this page cannot be reached." : error.message);
    }
  });
}

export function setUpWishes(about, trouble) {
  find("wishes").hidden = false;
  for (const id of ["wish-down", "wish-one", "wish-other"])
    find(id).append(...about.vos.map((name) => make("option", { value: name }, name)));
  find("wish-other").selectedIndex = Math.min(1, about.vos.length - 1);
  find("wish-entity").append(...about.live.entities.map((name) => make("option", { value: name }, name)));
  const able = about.live.clusters.filter(([, , machines]) => machines > 0);
  find("wish-cluster").append(...able.map(([vo, cluster, machines], place) =>
    make("option", { value: place }, `${vo}/${cluster} (0 to ${machines - 1})`)));
  const value = (id) => find(id).value;
  const mayTake = () => { find("wish-machine").disabled = !able.length || !/^\d+$/.test(value("wish-number")); };
  find("wish-number").addEventListener("input", mayTake);
  mayTake();
  const mayCut = () => { find("wish-cut").disabled = value("wish-one") === value("wish-other"); };
  for (const id of ["wish-one", "wish-other"]) find(id).addEventListener("change", mayCut);
  mayCut();
  const wishes = {
    "wish-pause": () => isPaused
      ? ["Let the clock go on", { what: "go_on" }]
      : ["Stop the clock", { what: "pause" }],
    "wish-heal": () => ["Heal all that was taken down or cut off here", { what: "heal" }],
    "wish-kill": () => [`Kill the actor of ${value("wish-entity")}`, { what: "kill", entity: value("wish-entity") }],
    "wish-vo": () => [`Take ${value("wish-down")} down`, { what: "take_vo_down", vo: value("wish-down") }],
    "wish-machine": () => {
      const [vo, cluster] = able[Number(value("wish-cluster"))];
      const machine = Number(value("wish-number"));
      return [`Take machine ${machine} of ${vo}/${cluster} down`,
        { what: "take_machine_down", vo, cluster, machine }];
    },
    "wish-cut": () => [`Cut ${value("wish-one")} off from ${value("wish-other")}`,
      { what: "cut_off", vo: value("wish-one"), other: value("wish-other") }],
  };
  for (const [id, told] of Object.entries(wishes)) wishOn(id, told, trouble);
}

// What was taken down or cut off and is so still.
export function showLasting(lasting) {
  const words = lasting.map(([, what]) => what).join("; ");
  find("lasting").hidden = !words;
  find("lasting").textContent =
    `Not healed: ${words}. Jobs may wait for that, and the run for them, until its --time-limit.`;
}

// What was done so far, the newest first.
export function showDone(done, timed, isOver) {
  find("done").hidden = !done.length;
  if (isOver) find("wishes").hidden = true;
  const clockWords = done.map(([, words]) => words).filter((words) => words.startsWith("the clock"));
  isPaused = clockWords.at(-1) === "the clock was stopped";
  find("wish-pause").textContent = isPaused ? "Let the clock go on" : "Stop the clock";
  const lines = find("done-lines");
  if (lines.children.length === done.length) return;
  lines.replaceChildren(...[...done].reverse().map(([time, words]) =>
    make("li", {}, make("time", {}, timed(time)), make("span", {}, words))));
}
