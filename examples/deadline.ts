/**
 * Deadlines: a runaway guest is stopped soon after its deadline, on this thread, and the same instance answers the next
 * call. The guests are an infinite loop, an exponential call tree and a start function. Run:
 * deno run -A examples/deadline.ts [--beside]. It prints how late each guest was stopped: one to five milliseconds on
 * an idle machine; on a busy one, the threads of the guest and of the watchdog wait for a processor.
 *
 * With `--beside` the same loop runs on the host's WebAssembly in a worker, which is terminated after the same time;
 * the process's CPU time then shows whether the loop really ended.
 */
import { NewEngine, TrapError } from "@waft/engine";
import process from "node:process";
import { Worker } from "node:worker_threads";

const GUEST = `(module
  (func (export "loop") (loop (br 0)))
  (func $tree (param i32)
    (if (local.get 0) (then
      (call $tree (i32.sub (local.get 0) (i32.const 1)))
      (call $tree (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "tree") (call $tree (i32.const 1000)))
  (func (export "answer") (result i32) (i32.const 42)))`;
const DEADLINE_MS = 50;

const engine = NewEngine({ interruptible: true });
const instance = engine.compile(GUEST).instantiate();

/** Runs a guest that does not terminate by itself, and prints when it was stopped. */
function stop(name: string, run: () => unknown): void {
  const start = performance.now();
  try {
    run();
  } catch (error) {
    if (!(error instanceof TrapError && error.message === "interrupted")) throw error;
  }
  const late = performance.now() - start - DEADLINE_MS;
  const answer = instance.call({ deadline: DEADLINE_MS }, "answer");
  console.log(`${name}: stopped ${late.toFixed(1)} ms after its deadline; the same instance then returns ${answer}`);
}

const runaway = engine.compile("(module (func $f (loop (br 0))) (start $f))");
instance.call({ deadline: DEADLINE_MS }, "answer"); // the first deadline starts the watchdog's thread
stop("endless loop ", () => instance.call({ deadline: DEADLINE_MS }, "loop"));
stop("call tree    ", () => instance.call({ deadline: DEADLINE_MS }, "tree"));
stop("start        ", () => runaway.instantiate({ deadline: DEADLINE_MS }));

if (process.argv.includes("--beside")) await beside();
process.exit();

/** Runs the loop on the host's WebAssembly, in a worker that is then terminated. */
async function beside(): Promise<void> {
  // (module (func (export "f") (loop (br 0))))
  const module = "AGFzbQEAAAABBAFgAAADAgEABwUBAWYAAAoJAQcAA0AMAAsL";
  const code = `const { parentPort } = require("node:worker_threads");
    parentPort.postMessage("started");
    new WebAssembly.Instance(new WebAssembly.Module(Buffer.from("${module}", "base64"))).exports.f()`;
  const worker = new Worker(code, { eval: true });
  await new Promise((resolve) => worker.once("message", resolve));
  await new Promise((resolve) => setTimeout(resolve, DEADLINE_MS));
  const ended = worker.terminate();
  const before = process.cpuUsage();
  const late = await Promise.race([ended.then(() => false), new Promise((resolve) => setTimeout(resolve, 1000, true))]);
  const { user } = process.cpuUsage(before);
  const state = late ? "is still running a second later" : "has ended, and its instance with it";
  console.log(`host's own   : the worker ${state}; CPU time since then: ${(user / 1000).toFixed(0)} ms`);
}
