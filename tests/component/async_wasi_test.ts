/**
 * WASI 0.3: the guest of fixtures/async_command.wat with the interfaces of cli, clocks, random and filesystem, and the
 * interfaces' functions against the specification's WIT.
 */
import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NewEngine } from "@waft/engine";
import { readFile } from "@waft/engine/internal/host/files";
import { fileURLToPath } from "node:url";
import { compileComponent, type Component } from "../../component/mod.ts";
import { ComponentWasi, type ComponentWasiOptions } from "../../component/wasi/mod.ts";
import { until } from "../support/http_requests.ts";

const FIXTURE = fileURLToPath(new URL("fixtures/async_command.wat", import.meta.url));
const RUN = "wasi:cli/run@0.3.0#run";

let compiled: Component | undefined;

function command(): Component {
  return compiled ??= compileComponent(NewEngine(), new TextDecoder().decode(readFile(FIXTURE)));
}

/** The output of a run, and its error. */
interface Output {
  readonly out: string;
  readonly err: string;
  readonly error: unknown;
}

/** Runs the guest with files as standard streams; `folder` holds them. */
async function run(name: string, input = "", options: ComponentWasiOptions = {}): Promise<Output> {
  const folder = mkdtempSync(join(tmpdir(), "waft-async-wasi-"));
  const [stdin, stdout, stderr] = ["in", "out", "err"].map((file) => join(folder, file));
  writeFileSync(stdin, input);
  const stdio: [number, number, number] = [openSync(stdin, "r"), openSync(stdout, "w"), openSync(stderr, "w")];
  const wasi = new ComponentWasi({ args: ["guest", name], stdio, ...options });
  let error: unknown;
  try {
    await command().instantiate({}, wasi.imports).callAsync({}, RUN);
  } catch (thrown) {
    error = thrown;
  } finally {
    wasi.close();
    stdio.forEach((fd) => closeSync(fd));
  }
  const [out, err] = [stdout, stderr].map((file) => readFileSync(file, "utf8"));
  rmSync(folder, { recursive: true, force: true });
  return { out, err, error };
}

Deno.test("a guest of WASI 0.3 copies standard input to standard output", async () => {
  assert.deepEqual(await run("echo", "hello"), { out: "hello", err: "done\n", error: undefined });
  const long = "0123456789abcdef".repeat(20_000);
  assert.deepEqual(await run("echo", long), { out: long, err: "done\n", error: undefined });
  assert.deepEqual(await run("echo", ""), { out: "", err: "done\n", error: undefined });
});

Deno.test("a guest of WASI 0.3 waits for clocks, and cancels a wait", async () => {
  assert.deepEqual(await run("wait"), { out: "", err: "done\n", error: undefined });
});

Deno.test("a guest of WASI 0.3 writes, lists and reads files", async () => {
  const directory = mkdtempSync(join(tmpdir(), "waft-async-files-"));
  try {
    const output = await run("files", "", { preopens: [{ host: directory, guest: "/" }] });
    assert.deepEqual(output, { out: "and second\n", err: "done\n", error: undefined });
    assert.equal(readFileSync(join(directory, "notes.txt"), "utf8"), "first and second\n");
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

Deno.test("a guest of WASI 0.3 that waits for itself is deadlocked, although it could use the host's streams", async () => {
  const { error } = await run("stuck");
  assert.match(String(error), /deadlock: no task can continue/);
});

Deno.test("the status of exit-with-code reaches the host", async () => {
  const { err, error } = await run("exit");
  assert.equal((error as { status?: unknown }).status, 7);
  assert.equal(err, "");
});

/** A guest that reads one byte of standard input and keeps both handles. */
const KEEPER = `(component
  (type $bytes (stream u8))
  (import "wasi:cli/types@0.3.0" (instance $cli
    (type $code' (enum "io" "illegal-byte-sequence" "pipe"))
    (export "error-code" (type (eq $code')))))
  (alias export $cli "error-code" (type $code))
  (type $end (result (error $code)))
  (type $outcome (future $end))
  (import "wasi:cli/stdin@0.3.0" (instance $stdin
    (alias outer 1 $bytes (type $bytes))
    (alias outer 1 $outcome (type $outcome))
    (export "read-via-stream" (func (result (tuple $bytes $outcome))))))
  (core module $memory (memory (export "m") 1))
  (core instance $memory (instantiate $memory))
  (core func $input (canon lower (func $stdin "read-via-stream") (memory (core memory $memory "m"))))
  (core func $read (canon stream.read $bytes (memory (core memory $memory "m"))))
  (core func $return (canon task.return (result u8)))
  (core module $main
    (import "m" "m" (memory 1))
    (import "h" "input" (func $input (param i32)))
    (import "h" "read" (func $read (param i32 i32 i32) (result i32)))
    (import "h" "return" (func $return (param i32)))
    (func (export "first")
      (call $input (i32.const 0))
      (drop (call $read (i32.load (i32.const 0)) (i32.const 8) (i32.const 1)))
      (call $return (i32.load8_u (i32.const 8)))))
  (core instance $main (instantiate $main (with "m" (instance $memory)) (with "h" (instance
    (export "input" (func $input)) (export "read" (func $read)) (export "return" (func $return))))))
  (func (export "first") async (result u8) (canon lift (core func $main "first") async)))`;

Deno.test("a reset ends the streams that the guest has kept, so that their sources are closed", async () => {
  const component = compileComponent(NewEngine(), KEEPER);
  let closed = 0;
  const source = () => {
    let next = 5;
    return {
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.resolve({ done: false, value: Uint8Array.of(next++) }),
        return: () => {
          closed++;
          return Promise.resolve({ done: true, value: undefined });
        },
      }),
    };
  };
  const outcome = () => new Promise(() => {});
  const imports = (future: () => unknown) => ({
    "wasi:cli/types@0.3.0": {},
    "wasi:cli/stdin@0.3.0": { readViaStream: () => [source(), future()] },
  });
  const busy = component.instantiate<{ first(): Promise<number> }>({ resettable: true }, imports(outcome));
  assert.equal(await busy.exports.first(), 5);
  assert.throws(() => busy.reset(), /not idle/, "a promise of the host is a call in progress");
  const folder = mkdtempSync(join(tmpdir(), "waft-async-wasi-"));
  try {
    writeFileSync(join(folder, "in"), "xyz");
    const wasi = new ComponentWasi({ stdio: [openSync(join(folder, "in"), "r"), 1, 2] });
    const idle = component.instantiate<{ first(): Promise<number> }>({ resettable: true }, wasi.imports);
    assert.equal(await idle.exports.first(), 0x78);
    idle.reset();
    wasi.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  busy.close();
  await until(() => closed > 0);
  assert.equal(closed, 1);
});
