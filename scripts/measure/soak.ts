/**
 * Soak test of instances: `deno task soak [CYCLES] [--json FILE]` (10⁶ by default, some minutes). Each cycle creates an
 * instance, calls it, lets it trap, resets it, calls it again and closes it; every 16th cycle also suspends and aborts
 * a call, uses a pool, restores a snapshot and views a memory; every 1024th compiles another module, which tiers up
 * during its second call. Fails if memory, descriptors, mappings or the runtime's own counts
 * are higher at the end than after the first tenth. The task keeps V8's own heap small: otherwise closed
 * instances accumulate until V8 collects them, and the pages of its heap hide any other growth.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type Engine, type Instance, type Module, NewEngine, TrapError } from "@waft/engine";
import { settle } from "../../tests/support/collect_garbage.ts";
import { readTaskLine, wholeNumber } from "../task_options.ts";

/** Resource usage that must not grow. */
export interface Usage {
  residentMiB: number;
  descriptors: number;
  mappings: number;
  /** Suspended calls whose frames are held. */
  suspended: number;
  handles: number;
}

const TEXT = `(module
  (import "h" "wait" (func $wait (result i32)))
  (import "h" "seen" (func $seen (param externref)))
  (memory (export "memory") 1 8) (table 4 8 funcref) (global $g (mut i32) (i32.const 7))
  (elem (i32.const 0) $f $f) (data (i32.const 8) "some bytes of data") (data $late "more")
  (func $f (export "f") (param i32) (result i32)
    (global.set $g (i32.add (global.get $g) (i32.const 1)))
    (i32.store (i32.const 4096) (i32.add (i32.load (i32.const 4096)) (local.get 0)))
    (i32.load (i32.const 4096)))
  (func (export "grow") (result i32)
    (memory.init $late (i32.const 0) (i32.const 0) (i32.const 4)) (data.drop $late)
    (table.set (i32.const 1) (ref.null func)) (drop (table.grow (ref.null func) (i32.const 2)))
    (memory.grow (i32.const 1)))
  (func (export "trap") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "wait") (param externref) (result i32) (call $seen (local.get 0)) (call $wait)))`;

function check(actual: unknown, expected: unknown, label: string): void {
  if (actual !== expected) throw new Error(`${label}: ${actual}, not ${expected}`);
}

function mustTrap(instance: Instance): void {
  try {
    instance.call({}, "trap", -4);
  } catch (error) {
    if (error instanceof TrapError) return;
    throw error;
  }
  throw new Error("The call did not trap");
}

const IMPORTS = { h: { wait: () => new Promise(() => {}), seen: () => {} } };

/** Runs one cycle; every 16th calls `special`. */
export async function cycle(module: Module, number: number, special: () => Promise<void>): Promise<void> {
  const instance = module.instantiate({}, IMPORTS);
  check(instance.call({}, "f", number), number, "the first call");
  mustTrap(instance);
  if (number % 4 === 0) check(instance.call({}, "grow"), 1, "growing");
  instance.reset();
  check(instance.call({}, "f", 5), 5, "a call after reset");
  instance.close();
  if (number % 16 === 0) await special();
}

/** Compiles another module, which tiers up while its frames run baseline code. */
function tierUp(engine: Engine, number: number): void {
  const module = engine.compile(`(module
    (func $add (param i32) (result i32) (i32.add (local.get 0) (i32.const ${number})))
    (func (export "sum") (param $n i32) (result i32) (local $sum i32)
      (loop $again
        (local.set $sum (call $add (local.get $sum)))
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $sum)))`);
  const baseline = module.codeSize;
  const instance = module.instantiate();
  for (let call = 0; call < 3; call++) {
    check(instance.call({}, "sum", 100), Math.imul(100, number), "a call of a module that tiers up");
  }
  if (module.codeSize === baseline) throw new Error("The module did not tier up");
  instance.close();
}

/** Runs `cycles` cycles; `report` receives the usage after each tenth. */
export async function soak(cycles: number, report: (done: number, usage: Usage) => void): Promise<void> {
  const module = NewEngine({ interruptible: true }).compile(TEXT);
  const pool = module.pool({ size: 4, imports: IMPORTS });
  const waiting = module.instantiate({}, IMPORTS);
  const snapshot = waiting.snapshot();
  const { thread } = waiting.internal.store;
  const tiered = NewEngine({ tier: "auto", tierUpCalls: 1 });
  const special = async () => {
    const controller = new AbortController();
    const call = waiting.callAsync({ signal: controller.signal }, "wait", {});
    controller.abort();
    await call.catch(() => {});
    const [a, b] = [pool.take(), pool.take()];
    check(a.call({}, "f", 1) as number + (b.call({}, "f", 2) as number), 3, "instances of a pool");
    pool.put(a);
    pool.put(b);
    const restored = module.restore(snapshot, {}, IMPORTS);
    check(restored.call({}, "f", 9), 9, "a restored instance");
    const { buffer } = restored.exports["memory"] as { buffer: ArrayBuffer };
    check(new DataView(buffer).getInt32(4096, true), 9, "a view");
    restored.close();
  };
  const every = Math.max(1, Math.floor(cycles / 10));
  for (let done = 1; done <= cycles; done++) {
    await cycle(module, done, special);
    if (done % 1024 === 0) tierUp(tiered, done);
    // Finalizers run in macrotasks of the event loop.
    if (done % 256 === 0) await new Promise((resolve) => setTimeout(resolve));
    if (done % every !== 0) continue;
    // Between two of the host's collections, thousands of closed instances may await their finalizers.
    await settle();
    report(done, usage(thread));
  }
}

function usage(thread: Instance["internal"]["store"]["thread"]): Usage {
  return {
    residentMiB: Math.round(process.memoryUsage().rss / 2 ** 20),
    descriptors: readdirSync("/proc/self/fd").length,
    mappings: readFileSync("/proc/self/maps", "utf8").split("\n").length,
    suspended: thread.stack.suspended.size,
    handles: thread.handles.size,
  };
}

/** Node provides `import.meta.main` from version 24 on. */
const isMain = (import.meta as { main?: boolean }).main ?? process.argv[1] === fileURLToPath(import.meta.url);

if (isMain) {
  const task = {
    name: "task soak",
    about: "Creates, uses and closes instances, 1,000,000 by default; fails if memory or another resource grows.",
    operands: "[CYCLES]",
    options: { json: { value: "FILE", help: "write the measurements to FILE" } },
  } as const;
  const { values, operands } = readTaskLine(task);
  const reports: (Usage & { done: number })[] = [];
  const cycles = wholeNumber(task, "CYCLES", operands[0] ?? "1000000", 1);
  const start = performance.now();
  await soak(cycles, (done, now) => {
    reports.push({ done, ...now });
    console.log(Object.entries({ done, ...now }).map(([name, value]) => `${name} ${value}`).join(", "));
  });
  const [early, last] = [reports[0], reports[reports.length - 1]];
  const allowance = { residentMiB: 32, descriptors: 2, mappings: 64, suspended: 0, handles: 1024 };
  const grown = (Object.keys(allowance) as (keyof Usage)[]).filter((name) =>
    last[name] > early[name] + allowance[name]
  );
  const seconds = Math.round((performance.now() - start) / 1000);
  console.log(
    `${last.done} cycles in ${seconds} s: ${grown.length === 0 ? "nothing grows" : `${grown.join(", ")} grow`}`,
  );
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify({ seconds, reports }, null, 2) + "\n");
  process.exit(grown.length === 0 ? 0 : 1);
}
