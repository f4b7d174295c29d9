/**
 * The playground's page: gives the text of the module to the compiler, a worker, and shows its answers. A worker that
 * does not answer in time is ended, and a new one takes its place.
 */
const MOST_MS = { text: 10_000, call: 3000 };
const PAUSE_MS = 250;
const FIRST_STAGE = "x64 optimizing";
const GROUPS = { text: "Text", ir: "Intermediate representation", code: "Machine code" };

const $ = (id) => document.getElementById(id);
const address = document.querySelector(".playground").dataset.compiler;
let worker;
let isLoaded = false;
let request = 0;
/** The request without an answer: its number, the function for the answer, and its timer. */
let pending;
/** The last answer about a module. */
let compiled = { functions: [], exports: [] };

function start() {
  worker = new Worker(address, { type: "module" });
  worker.addEventListener("message", ({ data }) => {
    isLoaded = true;
    if (pending?.id !== data.id) return;
    clearTimeout(pending.timer);
    const { answer } = pending;
    pending = undefined;
    answer(data);
  });
  worker.addEventListener("error", () => show("state", "The compiler cannot be loaded."));
}

/** Asks the worker; the answer to an earlier question is dropped. */
function ask(kind, question, answer) {
  if (pending !== undefined) {
    clearTimeout(pending.timer);
    if (pending.kind === "call") restart();
  }
  const id = ++request;
  const timer = setTimeout(() => {
    if (!isLoaded) return;
    pending = undefined;
    restart();
    answer({ error: `Ended after ${MOST_MS[kind] / 1000} seconds` });
  }, MOST_MS[kind]);
  pending = { id, kind, answer, timer };
  worker.postMessage({ id, ...question });
}

function restart() {
  worker.terminate();
  start();
}

function show(id, text) {
  $(id).textContent = text;
}

/** Replaces the options of a list, and keeps the chosen one if it is still there. */
function fill(list, rows, fallback) {
  const before = list.value;
  list.replaceChildren();
  const groups = new Map();
  for (const { value, label, group } of rows) {
    let parent = list;
    if (group !== undefined) {
      parent = groups.get(group);
      if (parent === undefined) {
        parent = document.createElement("optgroup");
        parent.label = group;
        groups.set(group, parent);
        list.append(parent);
      }
    }
    parent.append(new Option(label ?? value, value));
  }
  const values = rows.map(({ value }) => value);
  list.value = [before, fallback, values[0]].find((value) => values.includes(value)) ?? "";
}

function compile() {
  ask("text", { text: $("module-text").value }, (answer) => {
    $("module-text").setAttribute("aria-invalid", String(answer.error !== undefined));
    if (answer.error !== undefined) return show("state", answer.error);
    compiled = answer;
    const { functions, exports, bytes } = answer;
    show("state", `Valid: ${bytes} bytes, ${functions.length} ${functions.length === 1 ? "function" : "functions"}.`);
    fill($("function"), functions.map(({ name }, k) => ({ value: String(k), label: name })));
    fill($("export"), exports.map(({ name, type }) => ({ value: name, label: `${name} ${type}` })));
    showStages();
  });
}

function showStages() {
  const stages = compiled.functions[Number($("function").value)]?.stages ?? [];
  fill($("stage"), stages.map(({ name, group }) => ({ value: name, group: GROUPS[group] })), FIRST_STAGE);
  show("code", stages.find(({ name }) => name === $("stage").value)?.text ?? "");
}

function run(event) {
  event.preventDefault();
  const values = $("values").value.split(/[\s,]+/).filter((value) => value !== "");
  show("result", "…");
  ask("call", { call: $("export").value, values }, ({ calls = [], result, error }) => {
    const end = error ?? (result === undefined ? "no result" : result);
    show("result", [...calls, end].join("\n"));
    // A new worker has no module yet.
    if (error?.startsWith("Ended")) compile();
  });
}

let pause;
$("module-text").addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(compile, PAUSE_MS);
});
$("example").addEventListener("change", () => {
  const { text, values } = $("example").selectedOptions[0].dataset;
  $("module-text").value = text;
  $("values").value = values;
  show("result", "");
  compile();
});
$("function").addEventListener("change", showStages);
$("stage").addEventListener("change", showStages);
$("call").addEventListener("submit", run);
start();
compile();
