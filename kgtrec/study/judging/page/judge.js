"use strict";

// The server holds the state; this page shows one item of it and sends what changes. An answer
// counts once the server has said so, which it does when it is on the disk.

const WORDS = { Y: "Yes", N: "No", "?": "Can’t tell" };
const PAUSE = 700; // ms without a key until a half-typed link is kept
const AGAIN = 1500; // ms until something unsaved is sent again

const at = (id) => document.getElementById(id);
const answers = [...document.querySelectorAll(".answers button")];

let state = null; // what the server said last
let token = decodeURIComponent(location.hash.slice(1)); // of the address that was printed
let revising = false; // the annotator chose to go on after the last triple
let running = null; // one task at a time: its promise, and whether it leaves the item as it is
let typing = 0; // timer of the text fields

// --- Talking to the server -------------------------------------------------------------------

async function ask(path, body, key = token) {
  const headers = { "X-Judge-Token": key };
  const reply = await fetch(path, body ? {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  } : { headers });
  const said = await reply.json();
  if (reply.ok) return said;
  const error = new Error(said.error);
  error.status = reply.status;
  throw error;
}

// Until the server has it: a server may be started again, a full disk may be emptied, the right
// address may be opened (403). What is refused for good (any other 4xx) is shown and given up.
async function send(path, body) {
  for (;;) {
    try {
      const said = await ask(path, body);
      alarm("");
      return said;
    } catch (error) {
      if (error.status === 403) {
        error.message = state
          ? "another sheet is open at this address now; serve this one again, and open what is printed"
          : "this is not the whole address; open the one that kgtrec judge serve prints";
      } else if (error.status >= 400 && error.status < 500) {
        alarm(`Refused: ${error.message}.`);
        return null;
      }
      const why = error.status ? error.message : "the server does not answer";
      alarm(body
        ? `Not saved yet: ${why}. The page sends it again until it is saved; keep the page open.`
        : `Cannot go on: ${why}. The page tries again; your answers so far are saved.`);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
  }
}

// The address of a server that was started again, in this tab: what is unsent goes there, unless it
// is about another sheet.
window.addEventListener("hashchange", async () => {
  const key = decodeURIComponent(location.hash.slice(1));
  try {
    const fresh = await ask("/api/state", undefined, key);
    if (!state || (fresh.sheet === state.sheet && fresh.total === state.total)) token = key;
    else location.reload();
  } catch {
    // The address of another server: the one of before may come back.
  }
});

// Runs one task at a time. A key that comes while the item is about to change is dropped: it would
// be about an item not seen yet. While only text is being kept, it waits.
async function alone(task, keepsItem = false) {
  while (running) {
    if (!running.keepsItem) return;
    await running.promise;
  }
  let end;
  running = { keepsItem, promise: new Promise((resolve) => { end = resolve; }) };
  document.body.setAttribute("aria-busy", "true");
  try {
    await task();
  } finally {
    running = null;
    document.body.removeAttribute("aria-busy");
    end();
  }
}

// --- Showing ---------------------------------------------------------------------------------

function alarm(text) {
  at("alarm").hidden = !text;
  if (at("alarm").textContent !== text) at("alarm").textContent = text;
}

function show(said, focus) {
  state = said;
  const { item, counts } = said;
  const done = said.total - said.open;
  const number = (value) => value.toLocaleString("en");
  at("sheet").textContent = said.sheet.split("/").pop();
  document.title = `${number(done)}/${number(said.total)} · kgtrec judge`;
  at("bar").max = said.total;
  at("bar").value = done;
  at("done").textContent = `${number(done)} of ${number(said.total)} judged`;
  at("tally").textContent =
    `Yes ${number(counts.Y)} · No ${number(counts.N)} · Can’t tell ${number(counts["?"])}`;
  at("place").textContent = `Triple ${number(said.row + 1)} of ${number(said.total)}`;
  at("given").textContent = item.label ? `Answered: ${WORDS[item.label]}` : "";
  at("question").textContent = item.question || `Is it true: ${item.head} ${item.relation} ${item.tail}?`;
  for (const name of ["head", "relation", "tail"]) at(name).replaceChildren(...breakable(item[name]));
  about(said.about, item);
  for (const button of answers) {
    button.setAttribute("aria-pressed", String(button.dataset.label === item.label));
  }
  for (const name of ["evidence", "note"]) at(name).value = item[name];
  hint();
  at("back").disabled = said.row === 0;
  at("forth").disabled = said.row === said.total - 1;
  at("jump").disabled = said.open === 0;
  at("undo").disabled = !said.can_undo;
  if (said.open) revising = false;
  at("finished").hidden = said.open !== 0;
  at("revise").hidden = revising;
  if (said.unwritten) alarm(`All answers are kept, but the sheet is not written: ${said.unwritten}.`);
  else if (said.written) at("written").textContent = `The sheet with its labels is ${said.written}.`;
  at("card").hidden = isFinished();
  if (focus) at("question").focus({ preventScroll: true });
}

// After the last triple, a key that was meant for one more must not change an answer.
const isFinished = () => state.open === 0 && !revising;

function revise() {
  revising = true;
  show(state, true);
}

// A link beside each entity, and facts below the answers: what the server was started with.
function about(details, item) {
  const lists = [];
  for (const name of ["head", "tail"]) {
    const { link, facts } = details[name] || {};
    if (link) {
      const anchor = document.createElement("a");
      Object.assign(anchor, { href: link, target: "_blank", rel: "noopener noreferrer", textContent: "look up" });
      anchor.setAttribute("aria-label", `Look up ${item[name]} in a new tab`);
      at(name).append(" ", anchor);
    }
    if (!facts) continue;
    const heading = document.createElement("h2"), list = document.createElement("ul");
    heading.textContent = name === "head" ? "Known about the head" : "Known about the tail";
    for (const fact of facts) {
      const line = document.createElement("li");
      fact.forEach((part, number) => {
        const text = document.createElement(number === 1 ? "span" : "bdi");
        if (number === 1) text.className = "quiet";
        text.append(...breakable(part));
        line.append(text, " ");
      });
      list.append(line);
    }
    const box = document.createElement("div");
    box.append(heading, facts.length ? list : "No triples in train.");
    lists.push(box);
  }
  at("about").replaceChildren(...lists);
  at("about").hidden = !lists.length;
}

// Long paths break after a slash; a <wbr> is not copied, as a zero-width space would be.
function breakable(text) {
  return text.split(/(?<=\/)/).flatMap((part) => [part, document.createElement("wbr")]);
}

function hint() {
  const text = at("evidence").value.trim();
  const odd = text && !/^https?:\/\/\S+$/.test(text);
  at("hint").textContent = odd
    ? "This does not look like a link, but it is saved."
    : "Enter returns to the question.";
}

function tell(text) {
  at("saved").textContent = text;
}

// --- Doing -----------------------------------------------------------------------------------

// One line without what a cell of a sheet cannot hold.
const typed = (name) => at(name).value.replace(/[\u0000-\u001f\u007f]+/g, " ").trim();

const entry = (label) => ({
  row: state.row, label, evidence: typed("evidence"), note: typed("note"),
});

const unsent = () =>
  state && (typed("evidence") !== state.item.evidence || typed("note") !== state.item.note);

function answer(label) {
  return alone(async () => {
    clearTimeout(typing);
    const where = state.row + 1;
    const said = await send("/api/answer", entry(label));
    if (!said) return;
    show(said, true);
    tell(`Saved: ${WORDS[label]} for triple ${where.toLocaleString("en")}.`);
    if (isFinished()) at("finished").focus({ preventScroll: true });
  });
}

// Keeps link and note without an answer; does not touch the fields, in which somebody may type.
async function keepText() {
  clearTimeout(typing);
  if (!unsent()) return true;
  const now = entry(state.item.label);
  const said = await send("/api/answer", { ...now, stay: true });
  if (!said) return false;
  Object.assign(state.item, { evidence: now.evidence, note: now.note });
  tell("Saved: evidence and note.");
  return true;
}

function go(query) {
  return alone(async () => {
    if (!(await keepText())) return;
    const said = await send(`/api/state?${query}`);
    if (!said) return;
    show(said, true);
    tell("");
  });
}

function undo() {
  return alone(async () => {
    if (!(await keepText())) return;
    const said = await send("/api/undo", {});
    if (!said) return;
    show(said, true);
    tell(`Undone: the answer for triple ${(said.row + 1).toLocaleString("en")}.`);
  });
}

const moves = {
  back: () => state.row > 0 && go(`row=${state.row - 1}`),
  forth: () => state.row < state.total - 1 && go(`row=${state.row + 1}`),
  jump: () => state.open > 0 && go(`after=${state.row}`),
  undo: () => state.can_undo && undo(),
};

const KEYS = {
  y: () => answer("Y"),
  n: () => answer("N"),
  "?": () => answer("?"),
  "/": () => answer("?"), // the same key, on many keyboards, without Shift
  arrowleft: moves.back,
  arrowright: moves.forth,
  j: moves.jump,
  u: moves.undo,
  e: () => at("evidence").focus(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || !state) return;
  if (event.target.matches("input[type=text]")) {
    if (event.key === "Enter" || event.key === "Escape") {
      event.preventDefault();
      at("question").focus({ preventScroll: true });
    }
    return;
  }
  const act = KEYS[event.key.toLowerCase()];
  if (isFinished()) return;
  if (!act || !at("keys").checked) return;
  event.preventDefault();
  if (!event.repeat) act();
});

for (const button of answers) button.addEventListener("click", () => answer(button.dataset.label));
for (const id of Object.keys(moves)) at(id).addEventListener("click", () => moves[id]());
at("revise").addEventListener("click", revise);
for (const name of ["evidence", "note"]) {
  at(name).addEventListener("input", () => {
    hint();
    clearTimeout(typing);
    typing = setTimeout(() => alone(keepText, true), PAUSE);
  });
  at(name).addEventListener("change", () => alone(keepText, true));
}
at("keys").addEventListener("change", () => {
  document.body.classList.toggle("keyless", !at("keys").checked);
});

// Another tab may have gone on.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && state && !running && !unsent()) go(`row=${state.row}`);
});
window.addEventListener("beforeunload", (event) => {
  if (running || unsent()) event.preventDefault();
});

alone(async () => {
  const said = await send("/api/state");
  if (said) show(said, true);
});
