/**
 * Programs that change the globals of JavaScript: enumerable properties of Object.prototype, fake clocks and timers,
 * another Promise, frozen errors. In: a program for each, run as a process. Out: the same results as without.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { CHILD_TIMEOUT, hostArguments, runtimeCommand } from "../support/host_arguments.ts";

const ENGINE = new URL("../../engine/mod.ts", import.meta.url).href;
const NAMESPACE = new URL("../../engine/webassembly/mod.ts", import.meta.url).href;

/** Uses each part of the boundary, and prints the results. */
const USES = `
  const engine = NewEngine({ interruptible: true, fuel: true, tier: "baseline" });
  const bytes = new Uint8Array(engine.parse(\`(module
    (import "m" "wait" (func $wait (result i32)))
    (tag $t (export "t") (param i32))
    (func (export "wait") (result i32) (call $wait))
    (func (export "throw") (throw $t (i32.const 4)))
    (func (export "trap") unreachable)
    (func (export "endless") (loop (br 0))))\`).bytes);
  const results = [];
  const note = (error) => void results.push(error.code ?? error.name);
  const instance = engine.compile(bytes).instantiate({ limits: { maxMemoryPages: 5 } }, { m: { wait: () => 5 } });
  results.push(instance.call({ fuel: 1000 }, "wait"));
  try { instance.call({ deadline: 20 }, "endless"); } catch (error) { note(error); }
  try { instance.call({ fuel: 10n }, "endless"); } catch (error) { note(error); }
  try { instance.call({}, "trap"); } catch (error) { note(error); }
  try { NewEngine({ teir: "baseline" }); } catch (error) { results.push(error.message); }
  const later = engine.compile(bytes).instantiate({}, { m: { wait: async () => 6 } });
  results.push(await later.callAsync({ deadline: 60000 }, "wait"));
  const never = engine.compile(bytes).instantiate({}, { m: { wait: () => new RealPromise(() => {}) } });
  await never.callAsync({ deadline: 20 }, "wait").catch(note);
  await later.callAsync({ deadline: 20 }, "endless").catch(note);
  const module = await W.compile(bytes, {});
  const { exports } = await W.instantiate(module, { m: { wait: new W.Suspending(async () => 7) } });
  results.push(await W.promising(exports.wait)());
  try { exports.throw(); } catch (error) { results.push(error.is(exports.t), error.getArg(exports.t, 0)); }
  try { exports.trap(); } catch (error) { results.push(error.name, error instanceof W.RuntimeError); }
  console.log(JSON.stringify(results));`;

const RESULTS = [
  ...[5, "interrupted", "out-of-fuel", "unreachable", 'Unknown option "teir"; did you mean "tier"?', 6],
  ...["interrupted", "interrupted", 7, true, 4, "RuntimeError", true],
];

const LOADS = `const RealPromise = Promise;
  const { NewEngine } = await import(${JSON.stringify(ENGINE)});
  const { WebAssembly: W } = await import(${JSON.stringify(NAMESPACE)});`;

const PROPERTIES = `Object.prototype.extra = function () {};
  Object.prototype.another = () => 7;
  Array.prototype.extra = 1;`;

/** By name: a program without {@linkcode USES}. */
const PROGRAMS: Readonly<Record<string, string>> = {
  "no change": LOADS,
  "enumerable properties, added before the engine is loaded": `${PROPERTIES} ${LOADS}`,
  "enumerable properties, added afterwards": `${LOADS} ${PROPERTIES}`,
  "clocks and timers that stand still": `${LOADS}
    performance.now = () => 1000;
    Date.now = () => 1000;
    globalThis.setTimeout = globalThis.setImmediate = globalThis.clearTimeout = () => 0;
    globalThis.queueMicrotask = () => {};`,
  "another Promise": `${LOADS}
    globalThis.Promise = class { then() { throw new Error("another Promise"); } };
    RealPromise.prototype.catch = function (action) { return this.then(undefined, action); };`,
  "frozen errors": `Object.freeze(Error.prototype); Object.freeze(Error); ${LOADS}`,
  "a stack that is no string": `${LOADS} Error.prepareStackTrace = () => 5;`,
};

function outputOf(program: string, options: readonly string[] = []): unknown {
  const folder = mkdtempSync(join(tmpdir(), "waft-globals-"));
  try {
    const file = join(folder, "program.mjs");
    writeFileSync(file, `${program}\n${USES}`);
    const [command, args] = runtimeCommand([...options, ...hostArguments(file)]);
    const { stdout, stderr, status } = spawnSync(command, args, {
      encoding: "utf8",
      timeout: CHILD_TIMEOUT,
    });
    assert.equal(status, 0, `${stdout}${stderr}`);
    return JSON.parse(stdout);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const [name, program] of Object.entries(PROGRAMS)) {
  Deno.test(`the engine works with changed globals: ${name}`, () => {
    assert.deepEqual(outputOf(program), RESULTS);
  });
}

const isNode = process.versions["bun"] === undefined && process.versions["deno"] === undefined;
Deno.test({
  name: "the engine works with node --frozen-intrinsics",
  ignore: !isNode,
  fn: () => assert.deepEqual(outputOf(LOADS, ["--frozen-intrinsics"]), RESULTS),
});
