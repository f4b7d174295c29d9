/**
 * Loads all code that a runner may need later. In: the options of its engine. Out: nothing. Invariant: afterwards
 * the engine opens no module, library or file any more, so the process can be confined.
 */
import { type Engine, type EngineOptions, Memory, NewEngine } from "../api/engine.ts";
import { inNextTurn } from "../host/clocks.ts";
import { currentHost } from "../host/current.ts";
import { LateModule } from "../host/late_module.ts";
import { keepNativeImage } from "../portable/late_native.ts";
import { runProgram } from "./run_program.ts";

/** A function with a call, a loop, a memory and an import. */
const MODULE = `(module
  (import "env" "host" (func $host (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "run") (param i32) (result i32)
    (loop $next (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (i32.store (i32.const 8) (call $host (i32.const 1)))
    (i32.load (i32.const 8))))`;

const PROGRAM = `(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (call $exit (i32.const 0))))`;

/** Late modules of other processors and systems, images that are files, too, and the verifier unless it is used. */
function isNeeded(file: string, arch: string, verifies: boolean): boolean {
  if (/darwin|windows|packed/.test(file)) return false;
  if (/verif/.test(file)) return verifies;
  return !(arch === "x64" ? /arm64/ : /x64/).test(file);
}

function run(engine: Engine): void {
  const instance = engine.compile(MODULE).instantiate({}, { env: { host: (n: number) => n } });
  const { interruptible, fuel } = engine;
  const limits = { ...(interruptible ? { deadline: 1e6, processorTime: 1e6 } : {}), ...(fuel ? { fuel: 1e6 } : {}) };
  instance.call(limits, "run", 3);
  if (instance.exports["memory"] instanceof Memory) void instance.exports["memory"].buffer; // lent by a library of its own
  instance.close();
}

/** Loads all code for an engine with `options`, and for programs of WASI. */
export async function warmUp(options: EngineOptions): Promise<void> {
  const { arch } = currentHost();
  await LateModule.loadAll((file) => isNeeded(file, arch, options.verify !== undefined && options.verify !== false));
  keepNativeImage();
  run(NewEngine(options));
  await new Promise<void>((resolve) => inNextTurn(resolve)); // Deno's Node layer reads the path of its executable
  await runProgram(PROGRAM, { files: { a: "" } });
}
