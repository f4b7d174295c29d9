/** The rows of preview 1: their types are those of witx, and a module that imports another type is not linked. */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/api/engine.ts";
import { RIGHT, WASI_FUNCTIONS } from "../../engine/wasi/abi.ts";
import { runThreads } from "../../engine/wasi/threads.ts";
import { Wasi } from "../../engine/wasi/mod.ts";
import { I32, I64 } from "../../engine/wasm/types.ts";
import { narrowedWasi } from "../../project/definitions/wasi_groups.ts";
import { PARAMS, RawGuest, WASI_NAMES } from "./raw_guest.ts";

Deno.test("every function has a row with the type of witx, and every row has a function", () => {
  assert.deepEqual(Object.keys(WASI_FUNCTIONS).sort(), [...WASI_NAMES].sort());
  assert.deepEqual(Object.keys(new Wasi().imports).sort(), [...WASI_NAMES].sort());
  for (const name of WASI_NAMES) {
    const { params, results } = WASI_FUNCTIONS[name].type;
    assert.deepEqual(params, [...PARAMS[name]].map((letter) => letter === "i" ? I32 : I64), name);
    assert.deepEqual(results, name === "proc_exit" ? [] : [I32], name);
  }
});

/** The message with which a module that imports `name` with `type` fails to link. */
function linkMessage(name: string, type: string, imports: object): string {
  const module = NewEngine().compile(`(module (import "wasi_snapshot_preview1" "${name}" (func ${type})))`);
  try {
    module.instantiate({}, { wasi_snapshot_preview1: imports as Record<string, unknown> });
  } catch (error) {
    assert.equal((error as Error).name, "LinkError");
    return (error as Error).message;
  }
  return "linked";
}

Deno.test("a module that imports a function with another type gets both types in the error", () => {
  const { imports } = new Wasi();
  const wrong = (name: string, wanted: string, got: string) =>
    `incompatible import type: "wasi_snapshot_preview1" "${name}" must be a function ${wanted}, got one of type ${got}`;
  assert.equal(
    linkMessage("clock_time_get", "(param i32 i32 i32) (result i32)", imports),
    wrong("clock_time_get", "[i32 i32 i32] -> [i32]", "[i32 i64 i32] -> [i32]"),
  );
  assert.equal(
    linkMessage("fd_write", "(param i64 i32 i32 i32) (result i32)", imports),
    wrong("fd_write", "[i64 i32 i32 i32] -> [i32]", "[i32 i32 i32 i32] -> [i32]"),
  );
  assert.equal(
    linkMessage("proc_exit", "(param i32) (result i32)", imports),
    wrong("proc_exit", "[i32] -> [i32]", "[i32] -> []"),
  );
  assert.equal(linkMessage("proc_exit", "(param i32)", imports), "linked");
  const narrowed = narrowedWasi(imports, []);
  assert.match(linkMessage("random_get", "(param i64 i32) (result i32)", narrowed), /\[i64 i32\] -> \[i32\], got/);
  assert.equal(linkMessage("random_get", "(param i32 i32) (result i32)", narrowed), "linked");
});

Deno.test("in threads, too, a function is linked with its type only", async () => {
  const program = NewEngine().compile(`(module
    (import "env" "memory" (memory 1 1 shared))
    (import "wasi" "thread-spawn" (func (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func (param i64) (result i32)))
    (func (export "wasi_thread_start") (param i32 i32))
    (func (export "_start")))`);
  await assert.rejects(runThreads(program), {
    message: /"fd_close" must be a function \[i64\] -> \[i32\], got one of/,
  });
});

Deno.test("the ranges that a row says a function writes hold all that it writes", () => {
  const guest = new RawGuest({ args: ["name", "argument"] });
  const at = 4096;
  const rows: readonly (readonly [name: keyof typeof PARAMS, ...args: (number | bigint)[]])[] = [
    ["args_sizes_get", at, at + 8],
    ["clock_res_get", 1, at],
    ["clock_time_get", 1, 0n, at],
    ["fd_fdstat_get", 1, at],
    ["fd_filestat_get", 1, at],
    ["random_get", at, 100],
    ["fd_prestat_get", 3, at],
    ["sched_yield"],
  ];
  for (const [name, ...args] of rows) {
    const { buffer } = guest.memory;
    new Uint8Array(buffer).fill(0xaa);
    guest.call(name, ...args);
    const rest = new Uint8Array(buffer).slice();
    for (const [from, length] of WASI_FUNCTIONS[name].writes!(args.map(Number))) rest.fill(0xaa, from, from + length);
    assert.ok(rest.every((byte) => byte === 0xaa), name);
  }
  assert.equal(WASI_FUNCTIONS.fd_read.writes, undefined);
  assert.deepEqual(WASI_FUNCTIONS.poll_oneoff.writes!([8, 64, 3, 16]), [[64, 96], [16, 4]]);
  assert.deepEqual(WASI_FUNCTIONS.path_rename.rights, [RIGHT.path_rename_source, RIGHT.path_rename_target]);
});
