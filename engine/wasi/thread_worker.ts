/**
 * Runs one thread of a multithreaded guest in a Worker (threads.ts). In: {@linkcode ThreadStart} as worker data. Out:
 * messages. The starting realm makes the WASI calls that touch descriptors, while this one sleeps; other calls run
 * here.
 *
 * Invariant: no guest runs while this module is evaluated. The engine's modules use top-level await, and Node 26 ends
 * the whole process when a Worker is terminated in a module that had to wait (V8: "Check failed: !is_null()").
 */
import { now, setTimer } from "../host/clocks.ts";
import { parentPort, workerData } from "node:worker_threads";
import { Memory, Module } from "../api/engine.ts";
import { TrapError } from "../base/errors.ts";
import { callDeadline, interruptedCall } from "../runtime/host_limits.ts";
import { ERRNO, type FunctionName, WASI_FUNCTIONS } from "./abi.ts";
import { asFunction } from "./functions.ts";
import { Wasi, WasiExit } from "./mod.ts";
import { REPLY, SHARED, SPAWN, type ThreadMessage, type ThreadStart } from "./threads.ts";

/** The size of a subscription of poll_oneoff, and the offset of its type; type 0 is a clock. */
const SUBSCRIPTION_BYTES = 48, SUBSCRIPTION_TYPE = 8;

/** The largest number of a thread (wasi-threads: 29 bits). */
const MAX_ID = 0x1fffffff;

function runThread(start: ThreadStart, tell: (message: ThreadMessage) => void): void {
  const { memoryImport, thread, maxThreads, until } = start;
  const memory = Memory.fromShared(start.memory);
  const shared = new Int32Array(start.shared);
  const reply = new Int32Array(start.reply);
  const wasi = new Wasi({ ...start.wasi, stdio: [0, 1, 2] });
  wasi.attachMemory(memory);

  function remote(name: string): (...args: (number | bigint)[]) => number {
    return (...args) => {
      tell({ kind: "call", name, args });
      const left = callDeadline() - now();
      if (Atomics.wait(reply, REPLY.READY, 0, Math.max(left, 0)) === "timed-out") throw interruptedCall();
      Atomics.store(reply, REPLY.READY, 0);
      return reply[REPLY.RESULT];
    };
  }

  const calls: Record<string, (...args: never[]) => unknown> = {};
  for (const [name, own] of Object.entries(wasi.imports)) {
    calls[name] = WASI_FUNCTIONS[name as FunctionName].isOwn ? own : asFunction(name, remote(name));
  }
  const pollThere = remote("poll_oneoff");
  calls["poll_oneoff"] = asFunction("poll_oneoff", (at: number, out: number, count: number, used: number) => {
    const types = new Uint8Array(memory.buffer);
    let clocksOnly = true;
    for (let n = 0; n < count >>> 0 && clocksOnly; n++) {
      clocksOnly = (types[(at >>> 0) + n * SUBSCRIPTION_BYTES + SUBSCRIPTION_TYPE] ?? 0) === 0;
    }
    const poll = clocksOnly ? wasi.imports["poll_oneoff"] as typeof pollThere : pollThere;
    return poll(at, out, count, used);
  });

  function spawn(argument: number): number {
    if (Atomics.add(shared, SHARED.ALIVE, 1) + 1 >= maxThreads) {
      Atomics.sub(shared, SHARED.ALIVE, 1);
      return -ERRNO.again;
    }
    const id = Atomics.add(shared, SHARED.LAST_ID, 1) % MAX_ID + 1;
    tell({ kind: "spawn", id, argument });
    return id;
  }

  const context = () => until === undefined ? {} : { deadline: new Date(until) };
  // The memory may have any name, those of properties of all objects included.
  const given: readonly (readonly [module: string, name: string, value: unknown])[] = [
    [SPAWN.module, SPAWN.name, spawn],
    ...Object.entries(calls).map(([name, call]) => ["wasi_snapshot_preview1", name, call] as const),
    [memoryImport.module, memoryImport.name, memory],
  ];
  const imports: Record<string, Record<string, unknown>> = Object.create(null);
  for (const [module, name, value] of given) (imports[module] ??= Object.create(null))[name] = value;
  const instance = Module.fromShared(start.module).instantiate(context(), imports);
  if (thread === undefined) instance.call(context(), "_start");
  else {
    instance.call(context(), "wasi_thread_start", thread.id, thread.argument);
    Atomics.sub(shared, SHARED.ALIVE, 1);
  }
  tell({ kind: "end" });
}

if (parentPort !== null) {
  const port = parentPort;
  const tell = (message: ThreadMessage) => port.postMessage(message);
  setTimer(() => {
    const start = workerData as ThreadStart;
    tell({ kind: "ready" });
    if (Atomics.load(new Int32Array(start.shared), SHARED.ENDED) !== 0) return;
    try {
      runThread(start, tell);
    } catch (error) {
      if (error instanceof WasiExit) tell({ kind: "exit", status: error.status });
      else if (error instanceof TrapError) tell({ kind: "trap", message: error.message, frames: error.frames });
      else tell({ kind: "error", message: error instanceof Error ? error.message : String(error) });
    }
  });
}
