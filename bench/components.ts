/**
 * Components on waft beside jco: `deno task bench:components [--only calls,cold,serve] [--rounds N]`. jco comes from
 * npm, into .cache/jco; both run on V8: calls in this process, cold starts and servers in children, alternating. Out:
 * medians and the ratio of waft to jco by figure, for servers elapsed and processor time. Times never affect the exit
 * status.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../component/mod.ts";
import { componentToBinary } from "../component/text/parse_component.ts";
import { load } from "./http_load.ts";
import { fetchJco, JCO, JCO_CACHE as CACHE } from "./jco_package.ts";
import { oneOf, readTaskLine } from "../scripts/task_options.ts";
import { median, processorTimeBelow } from "./measure.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const JCO_COMMAND = join(JCO, "dist", "jco.js");
const PARTS = ["calls", "cold", "serve"] as const;

const task = {
  name: "task bench:components",
  about: "Compares components on waft with jco: calls, cold start, HTTP.",
  options: {
    only: { value: "PART,…", help: `only these parts: ${PARTS.join(", ")}`, default: PARTS.join(",") },
    rounds: { value: "N", least: 1, help: "alternating rounds of each figure", default: "15" },
    child: { value: "FILE", help: "one cold start of a component", hidden: true },
  },
} as const;
const { values: { only, rounds, child } } = readTaskLine(task);

/** Functions of numbers and strings. */
const CALLS = `(component
  (core module $m
    (memory (export "memory") 4)
    (global $next (mut i32) (i32.const 1024))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (if (i32.gt_u (global.get $next) (i32.const 200000)) (then (global.set $next (i32.const 1024))))
      (global.get $next)
      (global.set $next (i32.add (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)) (local.get 3))))
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    (func (export "echo") (param i32 i32) (result i32)
      (i32.store (i32.const 16) (local.get 0))
      (i32.store (i32.const 20) (local.get 1))
      (i32.const 16)))
  (core instance $i (instantiate $m))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add")))
  (func (export "echo") (param "s" string) (result string)
    (canon lift (core func $i "echo") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))`;

/** A component that calls another one n times. */
const PAIR = `(component
  (component $callee
    (core module $m (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
    (core instance $i (instantiate $m))
    (func (export "add") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add"))))
  (component $caller
    (import "add" (func $add (param "a" s32) (param "b" s32) (result s32)))
    (core func $lowered (canon lower (func $add)))
    (core module $m
      (import "" "add" (func $add (param i32 i32) (result i32)))
      (func (export "loop") (param $n i32) (result i32) (local $sum i32)
        (loop $next
          (local.set $sum (call $add (local.get $sum) (local.get $n)))
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (br_if $next (local.get $n)))
        (local.get $sum)))
    (core instance $i (instantiate $m (with "" (instance (export "add" (func $lowered))))))
    (func (export "loop") (param "n" s32) (result s32) (canon lift (core func $i "loop"))))
  (instance $callee (instantiate $callee))
  (instance $caller (instantiate $caller (with "add" (func $callee "add"))))
  (export "loop" (func $caller "loop")))`;

/** A component of about `bytes` bytes: functions that differ in their constants, of which one call runs a few. */
function bigComponent(bytes: number): Uint8Array {
  const body = (k: number) =>
    Array.from(
      { length: 24 },
      (_, j) =>
        `(local.set 1 (i32.xor (i32.mul (local.get 1) (i32.const ${1_000_003 + 7919 * k + j}))
        (i32.rotl (local.get 0) (i32.const ${(k + j) % 31}))))`,
    ).join("");
  const count = Math.ceil(bytes / 480);
  const functions = Array.from({ length: count }, (_, k) =>
    `(func $f${k} (param i32) (result i32) (local i32)
      ${body(k)}
      (if (i32.lt_u (local.get 0) (i32.const 3))
        (then (local.set 1 (i32.add (local.get 1) (call $f${
      (k * 17 + 1) % count
    } (i32.add (local.get 0) (i32.const 1)))))))
      (local.get 1))`);
  return componentToBinary(`(component
    (core module $m ${functions.join("\n")} (export "run" (func $f0)))
    (core instance $i (instantiate $m))
    (func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run"))))`);
}

type Exports = Record<string, (...args: unknown[]) => unknown>;

/** Transpiles with jco and imports the result. */
async function jcoExports(name: string, bytes: Uint8Array): Promise<Exports> {
  const [file, folder] = [join(CACHE, `${name}.wasm`), join(CACHE, name)];
  writeFileSync(file, bytes);
  const args = [JCO_COMMAND, "transpile", file, "-o", folder, "--name", "component"];
  const { status, stderr } = spawnSync("node", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  return await import(pathToFileURL(join(folder, "component.js")).href) as Exports;
}

function waftExports(text: string): Exports {
  return compileComponent(NewEngine(), text).instantiate<Exports>().exports;
}

/** Prints a figure: medians of both sides, and the median of the ratios of their pairs. */
function print(
  name: string,
  unit: string,
  waft: readonly number[],
  jco: readonly number[],
  divisor = 1,
  digits = 1,
): void {
  const ratio = median(waft.map((value, k) => value / jco[k]));
  const text = (of: readonly number[]) => (median(of) / divisor).toFixed(digits).padStart(10);
  console.log(`${name.padEnd(36)} waft ${text(waft)} ${unit}  jco ${text(jco)} ${unit}  ratio ${ratio.toFixed(2)}`);
}

/** Nanoseconds of one call. */
function nanoseconds(call: () => unknown, count: number): number {
  const begun = performance.now();
  for (let k = 0; k < count; k++) call();
  return (performance.now() - begun) / count * 1e6;
}

async function measureCalls(): Promise<void> {
  const waft = { ...waftExports(CALLS), ...waftExports(PAIR) };
  const jco = {
    ...await jcoExports("calls", componentToBinary(CALLS)),
    ...await jcoExports("pair", componentToBinary(PAIR)),
  };
  const ascii = "x".repeat(1024);
  const rows: readonly (readonly [string, (of: Exports) => unknown, number, number])[] = [
    ["add(s32, s32)", (of) => of["add"](1, 2), 100_000, 1],
    ["a string of 1 KB, each way", (of) => of["echo"](ascii), 20_000, 1],
    ["component to component, integers", (of) => of["loop"](1000), 200, 1000],
  ];
  for (const [name, call, count, divisor] of rows) {
    if (String(call(waft)) !== String(call(jco))) throw new Error(`${name}: the results differ`);
    for (const side of [waft, jco]) nanoseconds(() => call(side), 2 * count);
    const [a, b]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      a.push(nanoseconds(() => call(waft), count));
      b.push(nanoseconds(() => call(jco), count));
    }
    print(name, "ns", a, b, divisor);
  }
}

/** The program of a child of Node for a cold start with jco: from the bytes to the result of a call. */
const JCO_COLD_START = `
  import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
  import { dirname, join } from "node:path";
  const [api, file, folder] = process.argv.slice(1);
  const { transpile } = await import(api);
  const bytes = readFileSync(file);
  const begun = performance.now();
  const { files } = await transpile(bytes, { name: "component", tlaCompat: false });
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  const result = (await import(join(folder, "component.js"))).run(1);
  const milliseconds = performance.now() - begun;
  rmSync(folder, { recursive: true });
  console.log(JSON.stringify({ milliseconds, result }));
  process.exit(0);
`;

/** The same with waft, in a child of Deno. */
function coldStart(file: string): void {
  const bytes = new Uint8Array(readFileSync(file));
  const begun = performance.now();
  const result = compileComponent(NewEngine(), bytes).instantiate<Exports>().exports["run"](1);
  console.log(JSON.stringify({ milliseconds: performance.now() - begun, result }));
}

/** The time of one cold start in a new process, without the time for loading the code of waft or jco. */
function startCold(command: string, args: readonly string[]): { milliseconds: number; result: number } {
  const { stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: "utf8" });
  if (!stdout.startsWith("{")) throw new Error(stderr);
  return JSON.parse(stdout) as { milliseconds: number; result: number };
}

function measureCold(): void {
  const file = join(CACHE, "big.wasm");
  const bytes = bigComponent(2_000_000);
  writeFileSync(file, bytes);
  const own = fileURLToPath(import.meta.url);
  const waftArgs = ["run", "-A", "--no-check", own, "--child", file];
  const api = pathToFileURL(join(JCO, "dist", "api.js")).href;
  const jcoArgs = ["--input-type=module", "-e", JCO_COLD_START, api, file, join(CACHE, "cold")];
  const [a, b]: [number[], number[]] = [[], []];
  for (let round = 0; round < Math.ceil(rounds / 3); round++) {
    const [waft, jco] = [startCold(process.execPath, waftArgs), startCold("node", jcoArgs)];
    if (waft.result !== jco.result) throw new Error("cold start: the results differ");
    a.push(waft.milliseconds);
    b.push(jco.milliseconds);
  }
  print(`cold start of ${(bytes.length / 1e6).toFixed(1)} MB`, "ms", a, b);
}

async function whenListening(port: number): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    try {
      await load(port, 1, 1);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  throw new Error(`Nothing listens on port ${port}`);
}

/** Requests of one batch. */
const BATCH = 500;

/** Throws an Error if a server already listens on the port, which would answer in place of the measured one. */
async function requireFree(port: number): Promise<void> {
  if (await load(port, 1, 1).then(() => true, () => false)) throw new Error(`Port ${port} is in use`);
}

async function measureServe(): Promise<void> {
  const file = join(CACHE, "http.wasm");
  writeFileSync(file, componentToBinary(readFileSync(join(ROOT, "tests/component/fixtures/http.wat"), "utf8")));
  const ports = [18_431, 18_432];
  for (const port of ports) await requireFree(port);
  const children: ChildProcess[] = [
    spawn(process.execPath, ["run", "-A", "--no-check", "cli.ts", "serve", "--addr", `127.0.0.1:${ports[0]}`, file], {
      cwd: ROOT,
      stdio: "ignore",
      detached: true,
    }),
    spawn("node", [JCO_COMMAND, "serve", file, "--port", String(ports[1])], { stdio: "ignore", detached: true }),
  ];
  try {
    for (const port of ports) {
      await whenListening(port);
      await load(port, BATCH, 8);
    }
    const [elapsed, processor, latest] = Array.from({ length: 3 }, (): [number[], number[]] => [[], []]);
    for (let round = 0; round < 2 * rounds; round++) {
      // Batches alternate, and so does the side that begins, so that other load of the machine affects both sides.
      for (const side of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const before = processorTimeBelow(children[side].pid);
        const { each, p99 } = await load(ports[side], BATCH, 8);
        elapsed[side].push(1000 / each);
        processor[side].push((processorTimeBelow(children[side].pid) - before) / BATCH);
        latest[side].push(p99);
      }
    }
    print("HTTP, requests a second", "/s", ...elapsed);
    print("HTTP, processor time of the server", "ms", ...processor, 1, 3);
    print("HTTP, 99th percentile", "ms", ...latest);
  } finally {
    // Each is the leader of a group: jco's child would survive it and answer the requests of the next run.
    for (const { pid } of children) if (pid !== undefined) process.kill(-pid, "SIGKILL");
  }
}

if (child !== undefined) coldStart(child);
else {
  fetchJco();
  const parts = only.split(",").map((part) => oneOf(task, "--only", part, PARTS));
  if (parts.includes("calls")) await measureCalls();
  if (parts.includes("cold")) measureCold();
  if (parts.includes("serve")) await measureServe();
}
