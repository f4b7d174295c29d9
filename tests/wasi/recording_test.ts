/**
 * Recordings of WASI programs: the examples with files, streams, clocks, variables and exit statuses, replayed without
 * any of them, in both tiers, with the same output, state and fuel.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Context, NewEngine, TrapError } from "@waft/engine";
import { Recorder, replay } from "@waft/engine/recording";
import { Wasi, WasiExit } from "@waft/engine/wasi";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { closeDescriptor, openFile } from "./system_call.ts";

const EXAMPLES = new URL("../../examples/wasi/", import.meta.url);

interface Program {
  readonly args: readonly string[];
  readonly input?: string | Uint8Array;
  readonly context?: Context;
  /** The end that is expected: an exit status, or the code of a trap. */
  readonly end?: number | string;
}

/** The end of a run: an exit status, or the code of a trap. */
function endOf(error: unknown): number | string {
  if (error === undefined) return 0;
  if (error instanceof WasiExit) return error.status;
  if (error instanceof TrapError) return error.code;
  throw error;
}

function outcomeOf(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}

/** Runs an example in `folder` with a recorder, whose box it sees, and replays it. */
function recordAndReplay(folder: string, name: string, { args, input = "", context = {}, end = 0 }: Program): void {
  const bytes = readFileSync(new URL(`${name}.wasm`, EXAMPLES));
  const paths = ["in", "out", "err"].map((stream) => join(folder, stream));
  writeFileSync(paths[0], input);
  for (const path of paths.slice(1)) writeFileSync(path, "");
  const stdio: [number, number, number] = [
    openFile(paths[0], false),
    openFile(paths[1], true),
    openFile(paths[2], true),
  ];
  const preopens = [{ host: join(folder, "box"), guest: "/box" }];
  const wasi = new Wasi({ args: [name, ...args], env: [["GREETING", "hello"]], preopens, stdio });
  const recorder = new Recorder(bytes);
  try {
    const instance = NewEngine({ deterministic: true, fuel: true, interruptible: true }).compile(bytes)
      .instantiate({ record: recorder }, { wasi_snapshot_preview1: wasi.imports });
    wasi.attach(instance);
    assert.equal(endOf(outcomeOf(() => instance.call({ ...context }, "_start"))), end, `${name} ${args.join(" ")}`);
  } finally {
    wasi.close();
    for (const fd of stdio) closeDescriptor(fd);
  }
  const { log, hash, fuel } = recorder.finish();
  const [out, err] = paths.slice(1).map((path) => readFileSync(path, "latin1"));
  for (const tier of ["optimizing", "baseline"] as const) {
    const written = ["", ""];
    const again = replay(log, {
      tier,
      observe: ({ name, args: [descriptor, vectors, count], memory }) => {
        if (name !== "fd_write" || (descriptor !== 1 && descriptor !== 2)) return;
        const view = new DataView(memory!.buffer, memory!.byteOffset, memory!.byteLength);
        for (let k = 0; k < (count as number); k++) {
          const at = view.getUint32((vectors as number) + k * 8, true);
          const length = view.getUint32((vectors as number) + k * 8 + 4, true);
          written[descriptor - 1] += String.fromCharCode(...memory!.subarray(at, at + length));
        }
      },
    });
    assert.deepEqual([endOf(again.error), again.hash, again.fuel], [end, hash, fuel], `${name} ${args.join(" ")}`);
    assert.deepEqual(written, [out, err]);
  }
}

function withFolder(run: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-recording-"));
  try {
    mkdirSync(join(folder, "box"));
    run(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

Deno.test("programs with streams, variables, clocks and exit statuses repeat without them", () => {
  withFolder((folder) => {
    const forms = `(define (loop n sum) (if (= n 0) sum (loop (- n 1) (+ sum n)))) (loop 500 0) (getenv "GREETING")`;
    recordAndReplay(folder, "lisp", { args: [], input: forms });
    recordAndReplay(folder, "lisp", { args: [], input: "(first 5)", end: 1 });
    recordAndReplay(folder, "words", { args: [], input: "one two two three three three\n" });
    recordAndReplay(folder, "files", { args: ["env"] });
    recordAndReplay(folder, "files", { args: ["exit", "42"], end: 42 });
    recordAndReplay(folder, "files", { args: ["abort"], end: "unreachable" });
    recordAndReplay(folder, "files", { args: ["sleep", "20"] });
    recordAndReplay(folder, "files", { args: ["sleep", "60000"], context: { deadline: 10 }, end: "interrupted" });
    recordAndReplay(folder, "lisp", { args: [], input: forms, context: { fuel: 20_000 }, end: "out-of-fuel" });
    const endless = "(define (f n) (f (+ n 1))) (f 0)";
    recordAndReplay(folder, "lisp", { args: [], input: endless, context: { deadline: 30 }, end: "interrupted" });
  });
});

Deno.test("programs with files repeat without them", () => {
  withFolder((folder) => {
    const original = readFileSync(new URL("words.ts", EXAMPLES));
    writeFileSync(join(folder, "box", "original"), original);
    recordAndReplay(folder, "pack", { args: ["compress", "/box/original", "/box/packed"] });
    recordAndReplay(folder, "pack", { args: ["decompress"], input: readFileSync(join(folder, "box", "packed")) });
    for (
      const args of [
        ["mkdir", "/box/a", "/box/a/b"],
        ["append", "/box/a/one", "first line"],
        ["cp", "/box/a/one", "/box/a/b/two"],
        ...(LACKS_POSIX_FILES ? [] : [["symlink", "../one", "/box/a/b/link"], ["cat", "/box/a/b/link"]]),
        ["tree", "/box"],
        ["stat", "/box/a/one", "/box/a"],
        ["patch", "/box/a/b/two", "6", "LINE"],
        ["mv", "/box/a/b", "/box/c"],
      ]
    ) recordAndReplay(folder, "files", { args });
    recordAndReplay(folder, "files", { args: ["cat", "/box/none"], end: 1 });
  });
});
