/**
 * `waft run` of a command component: output, status, limits, and a component whose imports are missing. In: the binary
 * of tests/component/fixtures/hello.wat.
 */
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { readFile } from "@waft/engine/internal/host/files";
import { compileComponent } from "../../component/mod.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { waft } from "./waft.ts";

const HELLO = fileURLToPath(new URL("../component/fixtures/hello.wasm", import.meta.url));

Deno.test("waft run runs a command component", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-component-"));
  try {
    assert.deepEqual(await waft(["run", HELLO], home, home), { code: 0, out: "hello", err: "" });
    assert.deepEqual(await waft(["run", HELLO, "a word"], home, home), { code: 0, out: "a word", err: "" });
    assert.deepEqual(await waft(["run", HELLO, "one", "two"], home, home), { code: 1, out: "one", err: "" });
    const limited = await waft(["run", "--fuel", "5", HELLO], home, home);
    assert.equal(limited.code, 134);
    assert.match(limited.err, /out of fuel/);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

/** A component with a function of its own and one in an interface, in text form. */
const GREET = fileURLToPath(new URL("../component/fixtures/greet.wat", import.meta.url));

Deno.test("waft run --invoke calls a function in WAVE notation and prints its result", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-component-"));
  const invoke = (call: string) => waft(["run", "--invoke", call, "greet.wat"], home, home);
  try {
    copyFileSync(GREET, join(home, "greet.wat"));
    assert.deepEqual(await invoke('greet("you")'), { code: 0, out: '"hello, you"\n', err: "" });
    assert.deepEqual(await invoke("half(8)"), { code: 0, out: "ok(4)\n", err: "" });
    assert.deepEqual(await invoke("test:math/halves@1.0.0#half(9)"), { code: 1, out: "err(4)\n", err: "" });
    assert.deepEqual(await invoke("greet(5)"), {
      code: 2,
      out: "",
      err: 'waft: --invoke: expected string, found "5"\n    greet(5)\n          ^\n',
    });
    assert.deepEqual(await invoke("gret()"), {
      code: 2,
      out: "",
      err: "waft: --invoke: greet.wat does not export gret; did you mean greet? It exports:\n" +
        "    greet: func(name: string) -> string\n" +
        "    test:math/halves@1.0.0#half: func(n: u32) -> result<u32, u32>\n",
    });
    const whole = await waft(["run", "greet.wat"], home, home);
    writeFileSync(
      join(home, "missing.wat"),
      `(component (import "a:b/c@1.0.0" (instance (export "f" (func)))) (import "x" (func)))`,
    );
    assert.deepEqual(await waft(["run", "missing.wat"], home, home), {
      code: 1,
      out: "",
      err: "waft: missing.wat: the component's imports are missing:\n    a:b/c@1.0.0#f: func()\n    x: func()\n",
    });
    assert.match(whole.err, /does not export wasi:cli\/run; call one of its functions with --invoke/);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

/** A component with a call of a clock and one of the random source. */
const HOST_CALLS = `(component
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
  (import "wasi:random/random@0.2.0" (instance $random (export "get-random-u64" (func (result u64)))))
  (core func $now (canon lower (func $clock "now")))
  (core func $number (canon lower (func $random "get-random-u64")))
  (core module $m
    (import "host" "now" (func $now (result i64)))
    (import "host" "number" (func $number (result i64)))
    (func (export "tick") (result i32) (i64.ge_u (call $now) (i64.const 0)))
    (func (export "roll") (result i32) (i64.ge_u (call $number) (i64.const 0))))
  (core instance $i (instantiate $m (with "host" (instance
    (export "now" (func $now)) (export "number" (func $number))))))
  (func (export "tick") (result bool) (canon lift (core func $i "tick")))
  (func (export "roll") (result bool) (canon lift (core func $i "roll"))))`;

Deno.test("a project narrows WASI for components, too", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-component-"));
  const run = (...args: string[]) => waft(["run", ...args], home, home);
  const refuses = async (subject: string, ...args: string[]) => {
    const { code, out, err } = await run(...args);
    assert.deepEqual([code, out], [4, ""], err);
    assert.ok(err.includes(`authority.wasi: the project does not allow its guests ${subject}`), err);
  };
  try {
    copyFileSync(HELLO, join(home, "hello.wasm"));
    writeFileSync(join(home, "calls.wat"), HOST_CALLS);
    assert.equal((await waft(["init", "--quick", "--yes"], home, home)).code, 0);
    assert.equal((await waft(["add", "--wasi", "clock"], home, home)).code, 0);
    assert.deepEqual(await run("--invoke", "tick()", "calls.wat"), { code: 0, out: "true\n", err: "" });
    await refuses("wasi:random/random (random)", "--invoke", "roll()", "calls.wat");
    await refuses("wasi:cli/stdout (stdio)", "hello.wasm");
    await refuses("arguments (args)", "hello.wasm", "word");
    await refuses("--env (env)", "--env", "A=1", "hello.wasm");
    await refuses("--dir (fs)", "--dir", ".", "hello.wasm");
    assert.deepEqual(await run("--bare", "hello.wasm"), { code: 0, out: "hello", err: "" });
    assert.equal((await waft(["add", "--wasi", "random,stdio"], home, home)).code, 0);
    await refuses("wasi:clocks/monotonic-clock (clock)", "--invoke", "tick()", "calls.wat");
    assert.deepEqual(await run("hello.wasm"), { code: 0, out: "hello", err: "" });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

Deno.test("missing imports are named with their signatures, all at once", () => {
  const component = compileComponent(NewEngine(), readFile(HELLO));
  assert.throws(() => component.instantiate(), {
    name: "LinkError",
    message: "The component's imports are missing:\n" +
      "  wasi:io/streams@0.2.0#[method]output-stream.blocking-write-and-flush: " +
      "func(self: borrow<output-stream>, contents: list<u8>) -> " +
      "result<_, variant { last-operation-failed(error), closed }>\n" +
      "  wasi:cli/stdout@0.2.0#get-stdout: func() -> output-stream\n" +
      "  wasi:cli/environment@0.2.0#get-arguments: func() -> list<string>",
  });
});

Deno.test("an import is satisfied by a later compatible version, and by its name without a version", () => {
  const component = compileComponent(NewEngine(), readFile(HELLO));
  const written: string[] = [];
  class OutputStream {
    blockingWriteAndFlush(contents: Uint8Array) {
      written.push(new TextDecoder().decode(contents));
    }
  }
  const imports = {
    "wasi:io/error@0.2.9": {},
    "wasi:io/streams@0.2.12": { OutputStream },
    "wasi:cli/stdout": { getStdout: () => new OutputStream() },
    "wasi:cli/environment@0.2.0": { getArguments: () => ["program", "text"] },
  };
  const { exports } = component.instantiate({}, imports) as unknown as {
    exports: Record<string, { run(): void }>;
  };
  exports["wasi:cli/run@0.2.0"].run();
  exports["run"].run();
  assert.deepEqual(written, ["text", "text"]);
  const { "wasi:io/streams@0.2.12": streams, ...rest } = imports;
  assert.throws(() => component.instantiate({}, { ...rest, "wasi:io/streams@0.3.0": streams }), /are missing/);
});

Deno.test("WASI 0.2 grants only the directories that it was given", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-component-"));
  type Any = Record<string, (...args: unknown[]) => unknown>;
  const none = new ComponentWasi();
  const some = new ComponentWasi({ preopens: [{ host: folder, guest: "/data" }] });
  const preopens = (wasi: ComponentWasi) =>
    (wasi.imports["wasi:filesystem/preopens"] as Any)["getDirectories"]() as [Any, string][];
  const code = (action: () => unknown) => {
    try {
      action();
    } catch (error) {
      return (error as { payload: unknown }).payload;
    }
  };
  try {
    assert.deepEqual(preopens(none), []);
    const [[directory, name]] = preopens(some);
    assert.equal(name, "/data");
    const follow = { symlinkFollow: true };
    const write = { read: true, write: true };
    const file = directory["openAt"](follow, "a.txt", { create: true }, write) as Any;
    assert.equal(file["write"](new TextEncoder().encode("text"), 0n), 4n);
    assert.equal((file["stat"]() as { size: bigint }).size, 4n);
    const readOnly = directory["openAt"](follow, "a.txt", {}, { read: true }) as Any;
    assert.deepEqual(readOnly["read"](10n, 0n), [new TextEncoder().encode("text"), false]);
    assert.equal(code(() => readOnly["writeViaStream"](0n)), "bad-descriptor");
    assert.equal(code(() => directory["openAt"](follow, "../outside", { create: true }, write)), "not-permitted");
    assert.equal(code(() => directory["openAt"](follow, "/etc/passwd", {}, { read: true })), "not-permitted");
    if (!LACKS_POSIX_FILES) directory["symlinkAt"]("../..", "up");
    const beyond = LACKS_POSIX_FILES ? "no-entry" : "not-permitted";
    assert.equal(code(() => directory["openAt"](follow, "up/etc/passwd", {}, { read: true })), beyond);
    assert.equal(code(() => directory["symlinkAt"]("/etc", "etc")), "not-permitted");
    assert.equal(
      code(() => (some.imports["wasi:sockets/tcp-create-socket"] as Any)["createTcpSocket"]("ipv4")),
      "access-denied",
    );
  } finally {
    none.close();
    some.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

/** A command of WASI 0.3, in text form. */
const ASYNC_COMMAND = fileURLToPath(new URL("../component/fixtures/async_command.wat", import.meta.url));

Deno.test("waft run runs a command of WASI 0.3, whose waits do not outlive it", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-component-"));
  try {
    // It leaves a wait of an hour behind.
    assert.deepEqual(await waft(["run", ASYNC_COMMAND, "wait"], home, home), { code: 0, out: "", err: "done\n" });
    assert.deepEqual(await waft(["run", ASYNC_COMMAND, "exit"], home, home), { code: 7, out: "", err: "" });
    const stuck = await waft(["run", ASYNC_COMMAND, "stuck"], home, home);
    assert.equal(stuck.code, 134);
    assert.match(stuck.err, /deadlock/);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
