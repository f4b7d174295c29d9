/**
 * Programs written without knowledge of waft, run after its install module: node:wasi runs a guest on waft's WASI, and
 * `.wasm` files are imported as modules, with imports from JavaScript and from each other. Each program runs in a
 * separate process.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { CHILD_TIMEOUT, hostArguments, preloadArguments } from "../support/host_arguments.ts";
import { wasm } from "./subject.ts";

/** Files of a program by name; its output. */
function outputOf(files: Readonly<Record<string, string | Uint8Array>>, main: string, status = 0): string {
  const folder = mkdtempSync(join(tmpdir(), "waft-drop-in-"));
  try {
    mkdirSync(join(folder, "data"));
    writeFileSync(join(folder, "data", "text"), "from a file");
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    const child = spawnSync(process.execPath, preloadArguments("@waft/engine/install", join(folder, main)), {
      encoding: "utf8",
      timeout: CHILD_TIMEOUT,
    });
    assert.equal(child.status, status, `${child.stdout}${child.stderr}`);
    // Deno prints a warning when its own node:wasi is loaded.
    assert.equal(child.stderr.replace(/^.*WASI is an experimental feature.*\n/, ""), "", "nothing else is said");
    return child.stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * A guest that writes the first 11 bytes of the file `text` in its directory to standard output, and exits with status
 * 7.
 */
const GUEST = wasm(`(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "text")
  (func (export "_start")
    (call $exit (call $open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 4) (i32.const 0)
      (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 0)))
    unreachable)
  (func (export "show")
    (drop (call $open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 4) (i32.const 0)
      (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 0)))
    (i32.store (i32.const 8) (i32.const 256)) (i32.store (i32.const 12) (i32.const 11))
    (drop (call $read (i32.load (i32.const 0)) (i32.const 8) (i32.const 1) (i32.const 16)))
    (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 16)))
    (call $exit (i32.const 7))))`);

const WASI_PROGRAM = `
import { WASI } from "node:wasi";
import { readFileSync } from "node:fs";
const folder = new URL(".", import.meta.url);
const make = () => new WASI({ version: "preview1", args: ["guest"], env: { A: "b" }, preopens: { "/data": new URL("data", folder).pathname } });
const module = new WebAssembly.Module(readFileSync(new URL("guest.wasm", folder)));
const run = (wasi, start) => {
  const { exports } = new WebAssembly.Instance(module, wasi.getImportObject());
  return wasi.start({ exports: { memory: exports.memory, _start: exports[start] } });
};
const lines = [run(make(), "show"), run(make(), "_start")];
const failure = (action) => { try { return "none " + action(); } catch (error) { return error.name + " " + error.code; } };
const used = make();
run(used, "_start");
const memory = new WebAssembly.Memory({ initial: 1 });
const library = { exports: { memory, _initialize: () => lines.push("initialized") } };
make().initialize(library);
lines.push(
  failure(() => new WASI()),
  failure(() => new WASI({})),
  failure(() => new WASI({ version: "preview9" })),
  failure(() => new WASI({ version: "preview1", args: 5 })),
  failure(() => new WASI({ version: "preview1", env: 5 })),
  failure(() => new WASI({ version: "preview1", preopens: 5 })),
  failure(() => new WASI({ version: "preview1", returnOnExit: 5 })),
  failure(() => new WASI({ version: "preview1", stdin: -1 })),
  failure(() => make().start(5)),
  failure(() => make().start({ exports: {} })),
  failure(() => make().start({ exports: { _start() {} } })),
  failure(() => make().start({ exports: { _start() {}, memory: {} } })),
  failure(() => make().start(library)),
  failure(() => make().initialize({ exports: { _start() {}, memory } })),
  failure(() => run(used, "_start")),
);
console.log("\\n" + lines.join("\\n"));
`;

const ANSWERS = `from a file
7
0
initialized
TypeError ERR_INVALID_ARG_TYPE
TypeError ERR_INVALID_ARG_TYPE
TypeError ERR_INVALID_ARG_VALUE
TypeError ERR_INVALID_ARG_TYPE
TypeError ERR_INVALID_ARG_TYPE
TypeError ERR_INVALID_ARG_TYPE
TypeError ERR_INVALID_ARG_TYPE
RangeError ERR_OUT_OF_RANGE
TypeError ERR_INVALID_ARG_TYPE
TypeError ERR_INVALID_ARG_TYPE
TypeError ERR_INVALID_ARG_TYPE
TypeError ERR_INVALID_ARG_TYPE
TypeError ERR_INVALID_ARG_TYPE
TypeError ERR_INVALID_ARG_TYPE
Error ERR_WASI_ALREADY_STARTED
`;

Deno.test("node:wasi is waft's: a guest with a directory, exit statuses, and the errors of Node", () => {
  assert.equal(outputOf({ "guest.wasm": GUEST, "main.mjs": WASI_PROGRAM }, "main.mjs"), ANSWERS);
});

Deno.test("node:wasi: without returnOnExit the guest's exit ends the process", () => {
  const main = `
import { WASI } from "node:wasi";
import { readFileSync } from "node:fs";
const folder = new URL(".", import.meta.url);
const wasi = new WASI({ version: "preview1", returnOnExit: false, preopens: { "/": new URL("data", folder).pathname } });
const module = new WebAssembly.Module(readFileSync(new URL("guest.wasm", folder)));
const { memory, show } = new WebAssembly.Instance(module, { wasi_snapshot_preview1: wasi.wasiImport }).exports;
wasi.start({ exports: { memory, _start: show } });
console.log("not reached");
`;
  assert.equal(outputOf({ "guest.wasm": GUEST, "main.mjs": main }, "main.mjs", 7), "from a file");
});

Deno.test("modules of .wasm files import JavaScript and each other", () => {
  const files = {
    "inner.wasm": wasm(`(module (func (export "twice") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
      (global (export "base") i32 (i32.const 20)) (memory (export "memory") 1))`),
    "outer.wasm": wasm(`(module
      (import "./inner.wasm" "twice" (func $twice (param i32) (result i32)))
      (import "./inner.wasm" "base" (global $base i32))
      (import "./host.mjs" "log" (func $log (param i32)))
      (import "wasm:js-string" "length" (func $length (param externref) (result i32)))
      (import "wasm:js/string-constants" "four" (global $four externref))
      (func (export "answer") (result i32)
        (call $log (call $length (global.get $four)))
        (i32.add (call $twice (global.get $base)) (i32.const 2)))
      (func (export "a name, with spaces"))
      (func (export "default") (result i32) (i32.const 9)))`),
    "host.mjs": "export const log = (n) => console.log('logged', n);\n",
    "main.mjs": `import * as outer from "./outer.wasm";
import nine, { answer } from "./outer.wasm";
import { base, memory } from "./inner.wasm";
console.log(answer(), nine(), base, Object.keys(outer).join());
console.log(memory instanceof WebAssembly.Memory, (await import("./outer.wasm")).answer === answer);
try {
  await import("./broken.wasm");
} catch (error) {
  console.log(error.message.includes("magic") || error.message.includes("wasm") || error.message);
}
`,
    "broken.wasm": "this is not a module",
  };
  const expected = "logged 4\n42 9 20 a name, with spaces,answer,default\ntrue true\ntrue\n";
  assert.equal(outputOf(files, "main.mjs"), expected);
});

// Bun's parser refuses the phase before its plugins see the file.
const LACKS_PHASES = process.versions.bun !== undefined;

Deno.test({
  name: "source phase imports, static and dynamic, give waft's modules, one for each file",
  ignore: LACKS_PHASES,
  fn() {
    const answer = wasm(`(module (import "wasm:js-string" "length" (func $length (param externref) (result i32)))
      (import "wasm:js/string-constants" "four" (global $four externref))
      (func (export "f") (result i32) (call $length (global.get $four))))`);
    const main = `import source first from "./answer.wasm"; import source again from './answer.wasm';
import { f as instance } from "./answer.wasm";
  import source other from "./other.wasm"
const text = "import source none from './none.wasm'";
// import source commented from "./none.wasm"
const dynamic = await import.source("./answer.wasm");
console.log(first instanceof WebAssembly.Module, again === first, dynamic === first, other === first);
console.log(new WebAssembly.Instance(first).exports.f(), instance(), WebAssembly.Module.exports(other).length, text);
for (const name of ["./missing.wasm", "./main.mjs", "./broken.wasm"]) {
  await import.source(name).catch((error) => console.log(name, error.name));
}
console.log(new Error().stack.match(/main\\.mjs:(\\d+)/)[1]);
`;
    const files = {
      "answer.wasm": answer,
      "other.wasm": wasm(`(module)`),
      "broken.wasm": "this is not a module",
      "main.mjs": main,
    };
    assert.equal(
      outputOf(files, "main.mjs"),
      "true true true false\n4 4 0 import source none from './none.wasm'\n./missing.wasm Error\n./main.mjs SyntaxError\n" +
        "./broken.wasm CompileError\n12\n",
    );
  },
});

/** Posts a module to itself through a channel, for a handler, a listener, and a listener of node:worker_threads. */
const MESSAGES = `
import { readFileSync } from "node:fs";
import { MessageChannel } from "node:worker_threads";
import process from "node:process";
const isLoaded = () => process.moduleLoadList?.some((name) => name.endsWith("undici/undici")) ?? false;
const before = isLoaded();
const module = new WebAssembly.Module(readFileSync(new URL("guest.wasm", import.meta.url)));
console.log(before);
const RECEIVERS = {
  handler: (port, take) => port.onmessage = ({ data }) => take(data),
  listener: (port, take) => port.addEventListener("message", ({ data }) => take(data)),
  node: (port, take) => port.on("message", take),
};
for (const [name, receive] of Object.entries(RECEIVERS)) {
  const { port1, port2 } = new MessageChannel();
  const received = await new Promise((resolve) => {
    receive(port2, resolve);
    port2.start?.();
    port1.postMessage({ module });
  });
  console.log(name, received.module instanceof WebAssembly.Module);
  port1.close();
  port2.close();
}
`;

Deno.test("modules in messages arrive as modules; Node's HTTP client is not loaded without a listener", () => {
  const output = outputOf({ "main.mjs": MESSAGES, "guest.wasm": wasm("(module)") }, "main.mjs");
  assert.equal(output, "false\nhandler true\nlistener true\nnode true\n");
});

/** Posts 1 and 2 at once, and 3 when the Worker asks for it. */
const WORKERS = `
import { Worker } from "node:worker_threads";
const answerOf = (program, options) => new Promise((resolve, reject) => {
  const worker = new Worker(program, options);
  worker.on("error", reject);
  worker.on("message", (answer) => {
    if (answer === "more") return worker.postMessage(3);
    resolve(answer);
    worker.terminate();
  });
  worker.postMessage(1);
  worker.postMessage(2);
});
const script = \`
const { parentPort } = require("node:worker_threads");
parentPort.postMessage(
  [module.exports === exports, typeof __filename, WebAssembly.Module.name, typeof import("node:fs").then],
);
\`;
console.log((await answerOf(script, { eval: true })).join());
const asks = \`
const { parentPort, workerData } = require("node:worker_threads");
const isModule = ({ m }) => m instanceof WebAssembly.Module;
parentPort.once("message", (message) => parentPort.postMessage([isModule(workerData), isModule(message)]));
\`;
const m = new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
for (const execArgv of [undefined, []]) {
  const worker = new Worker(asks, { eval: true, workerData: { m }, ...(execArgv && { execArgv }) });
  worker.postMessage({ m });
  console.log((await new Promise((resolve, reject) => worker.on("message", resolve).on("error", reject))).join());
  await worker.terminate();
}
console.log(await answerOf(new URL("worker.mjs", import.meta.url)));
`;

/** A module whose top level waits for messages: for the first two, and again for the third. */
const WAITING_WORKER = `
import { parentPort } from "node:worker_threads";
const received = [];
let heard;
const hear = (count) => new Promise((resolve) => heard = () => received.length >= count && resolve());
const two = hear(2);
parentPort.on("message", (message) => {
  received.push(message);
  heard();
});
await two;
const three = hear(3);
parentPort.postMessage("more");
await three;
setTimeout(() => parentPort.postMessage(received.join()), 0);
`;

Deno.test("Workers: a script of the option eval is CommonJS, and a module that awaits gets each message once", () => {
  const output = outputOf({ "main.mjs": WORKERS, "worker.mjs": WAITING_WORKER }, "main.mjs");
  assert.equal(output, "true,string,Module,function\ntrue,true\ntrue,true\n1,2,3\n");
});

/** Starts a Worker, installs waft, starts another, and posts text and a module to both. */
const EARLY_WORKER = `
import { Worker } from "node:worker_threads";
const answerOf = (worker) => new Promise((resolve) => worker.once("message", resolve));
const start = async (WorkerClass) => {
  const worker = new WorkerClass(new URL("worker.mjs", import.meta.url));
  await answerOf(worker);
  return worker;
};
const early = await start(Worker);
await import(process.argv[2]);
const late = await start(process.getBuiltinModule("node:worker_threads").Worker);
const module = new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
for (const worker of [early, late]) {
  try {
    for (const message of ["text", { module }]) {
      const answer = answerOf(worker);
      worker.postMessage(message);
      console.log(await answer);
    }
  } catch (error) {
    console.log(error.name, /started before @waft\\/engine\\/install/.test(error.message));
  }
  await worker.terminate();
}
process.exit(0);
`;

const ECHO_WORKER = `
import { parentPort } from "node:worker_threads";
parentPort.on("message", (message) =>
  parentPort.postMessage(String(message === "text" || message.module instanceof WebAssembly.Module)));
parentPort.postMessage("ready");
`;

Deno.test("Workers: one that was started before waft was installed gets no modules, and its program an error", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-drop-in-"));
  try {
    writeFileSync(join(folder, "main.mjs"), EARLY_WORKER);
    writeFileSync(join(folder, "worker.mjs"), ECHO_WORKER);
    const args = [...hostArguments(join(folder, "main.mjs")), import.meta.resolve("@waft/engine/install")];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: CHILD_TIMEOUT });
    assert.equal(stdout, "true\nDataCloneError true\ntrue\ntrue\n", stderr);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
