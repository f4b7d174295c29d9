/**
 * Plugins of Extism: input, output, errors, config, variables, logs, host functions, HTTP with allowed hosts, WASI,
 * linked modules, timeouts, limits of memory, and pools.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type CallContext, compilePlugin, createPlugin } from "../../engine/extism/mod.ts";
import { NewEngine, TrapError } from "../../engine/mod.ts";

/** Imports of the host, with a function that copies a block to the output. */
const HOST = `
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "free" (func $free (param i64)))
  (import "extism:host/env" "length" (func $length (param i64) (result i64)))
  (import "extism:host/env" "load_u8" (func $load (param i64) (result i32)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "store_u64" (func $store_wide (param i64 i64)))
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "input_load_u8" (func $input (param i64) (result i32)))
  (import "extism:host/env" "input_offset" (func $input_offset (result i64)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (import "extism:host/env" "error_set" (func $error (param i64)))
  (import "extism:host/env" "config_get" (func $config (param i64) (result i64)))
  (import "extism:host/env" "var_get" (func $var_get (param i64) (result i64)))
  (import "extism:host/env" "var_set" (func $var_set (param i64 i64)))
  (import "extism:host/env" "http_request" (func $http (param i64 i64) (result i64)))
  (import "extism:host/env" "http_status_code" (func $status (result i32)))
  (import "extism:host/env" "log_info" (func $log_info (param i64)))
  (import "extism:host/env" "log_debug" (func $log_debug (param i64)))
  (import "extism:host/user" "greet" (func $greet (param i64) (result i64)))`;

const PLUGIN = `(module ${HOST}
  (memory (export "memory") 1)
  (global $calls (mut i32) (i32.const 0))
  (func $give (param $at i64) (call $output (local.get $at) (call $length (local.get $at))))
  ;; A block with the name "n".
  (func $name (result i64) (local $at i64)
    (local.set $at (call $alloc (i64.const 1)))
    (call $store (local.get $at) (i32.const 110))
    (local.get $at))
  (func (export "upper") (result i32) (local $at i64) (local $k i64)
    (local.set $at (call $alloc (call $input_length)))
    (loop $next
      (if (i64.lt_u (local.get $k) (call $input_length))
        (then
          (call $store (i64.add (local.get $at) (local.get $k))
            (i32.sub (call $input (local.get $k)) (i32.const 32)))
          (local.set $k (i64.add (local.get $k) (i64.const 1)))
          (br $next))))
    (call $give (local.get $at)) (i32.const 0))
  (func (export "fail") (result i32) (call $error (call $input_offset)) (i32.const 1))
  (func (export "trap") unreachable)
  (func (export "spin") (loop (br 0)))
  (func (export "config") (call $give (call $config (call $input_offset))))
  (func (export "set") (call $var_set (call $name) (call $input_offset)))
  (func (export "get") (call $give (call $var_get (call $name))))
  (func (export "log") (call $log_info (call $input_offset)) (call $log_debug (call $input_offset)))
  (func (export "user") (call $give (call $greet (call $input_offset))))
  (func (export "http") (local $body i64)
    (local.set $body (call $http (call $input_offset) (i64.const 0)))
    (if (i32.ne (call $status) (i32.const 200)) (then (call $error (call $input_offset)) (return)))
    (call $give (local.get $body)))
  ;; The length of the output is a status, or a byte of a new block.
  (func (export "status") (call $output (call $alloc (i64.const 1000)) (i64.extend_i32_u (call $status))))
  (func (export "stale") (local $at i64)
    (local.set $at (call $alloc (i64.const 1000)))
    (call $output (local.get $at) (i64.extend_i32_u (call $load (local.get $at)))))
  (func (export "count") (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (call $output (call $alloc (i64.extend_i32_u (global.get $calls))) (i64.extend_i32_u (global.get $calls)))
    (i32.const 0))
  ;; Allocates and frees until the numbers of the input are used up; the output is the last address.
  (func (export "churn") (local $at i64) (local $k i32)
    (loop $next
      (local.set $at (call $alloc (i64.const 1000)))
      (call $free (local.get $at)) (call $free (local.get $at))
      (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 10000))))
    (local.set $at (call $alloc (i64.const 8)))
    (call $store_wide (local.get $at) (i64.const 42))
    (call $give (local.get $at)))
  (func (export "outside") (drop (call $load (i64.const 0x7fffffff0))))
  (func (export "forge") (call $output (i64.const -1) (i64.const 100)))
  (func (export "huge") (result i32) (call $store (call $alloc (i64.const 0x40000000)) (i32.const 1)) (i32.const 0)))`;

const binary = (text: string) => new Uint8Array(NewEngine().parse(text).bytes);
const data = binary(PLUGIN);
const text = (output: { text(): string } | null) => output?.text();
const greet = async (context: CallContext, name: bigint) => {
  await new Promise((resolve) => setTimeout(resolve, 1));
  return context.store(`hello ${context.read(name)!.text()}${context.hostContext<string | undefined>() ?? ""}`);
};
const functions = { "extism:host/user": { greet } };

Deno.test("a plugin of Extism: input, output, errors, config, variables, logs and host functions", async () => {
  const lines: string[] = [];
  const line = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const logger = {
    trace: line("trace"),
    debug: line("debug"),
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
  };
  const plugin = await createPlugin({ wasm: [{ data }], config: { a: "from the manifest", b: "b" } }, {
    functions,
    logger,
    config: { a: "from the options" },
  });
  assert.equal(text(await plugin.call("upper", "shout")), "SHOUT");
  assert.equal(await plugin.call("upper", ""), null);
  await assert.rejects(plugin.call("fail", "my reason"), /The plugin reports an error: my reason/);
  await assert.rejects(plugin.call("trap"), TrapError);
  await assert.rejects(plugin.call("none"), /exports no function "none"/);
  assert.deepEqual([await plugin.functionExists("upper"), await plugin.functionExists("none")], [true, false]);
  assert.equal(text(await plugin.call("config", "a")), "from the options");
  assert.equal(await plugin.call("config", "toString"), null);
  await plugin.call("set", "kept");
  assert.equal(text(await plugin.call("get")), "kept");
  await plugin.call("log", "said");
  assert.deepEqual(lines, ["info said"], "the level info leaves out debug");
  const both = [plugin.call("user", "A", "!"), plugin.call("user", "B")];
  assert.equal(plugin.isActive(), false);
  assert.deepEqual((await Promise.all(both)).map(text), ["hello A!", "hello B"]);
  const churned = await plugin.call("churn");
  assert.equal(churned?.getBigInt64(0, true), 42n);
  await assert.rejects(plugin.call("outside"), TrapError);
  await assert.rejects(plugin.call("forge"), /outside of its shared memory/);
  assert.equal((await plugin.call("upper", new Uint8Array([97, 98])))?.string(), "AB");
  plugin.close();
});

Deno.test("a plugin's timeout ends endless calls and waits in this thread", async () => {
  const never = { "extism:host/user": { greet: () => new Promise<bigint>(() => {}) } };
  const plugin = await createPlugin({ wasm: [{ data }], timeout_ms: 40 } as never, { functions: never });
  for (const name of ["spin", "user"]) {
    const error = await plugin.call(name, "x").catch((error) => error);
    assert.ok(error instanceof TrapError && error.code === "interrupted", String(error));
  }
  assert.equal(text(await plugin.call("upper", "on")), "ON");
  plugin.close();
});

Deno.test("a plugin's memories are limited, and its pool gives plugins without the state of earlier users", async () => {
  const compiled = await compilePlugin({ wasm: [{ data }], memory: { maxPages: 20, maxVarBytes: 8 } }, { functions });
  const pool = compiled.pool({ size: 2 });
  for (let user = 0; user < 3; user++) {
    const plugin = pool.take();
    assert.equal((await plugin.call("count"))?.byteLength, 1);
    assert.equal(await plugin.call("get"), null);
    await plugin.call("set", "secret");
    await assert.rejects(plugin.call("set", "too long for 8"), /maxVarBytes/);
    await assert.rejects(plugin.call("huge"), TrapError);
    await assert.rejects(plugin.call("upper", "x".repeat(20 * 65536)), /has no room/);
    pool.put(plugin);
  }
  pool.close();
});

Deno.test("a plugin requests only hosts that are allowed, also after redirections", async () => {
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    if (request.url === "/elsewhere") response.writeHead(302, { location: `http://localhost:${port}/` }).end();
    else if (request.url === "/here") response.writeHead(302, { location: "/" }).end();
    else response.end(request.url === "/long" ? "x".repeat(5000) : `${request.method} ${request.headers["x-a"]}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const plugin = await createPlugin(
      { wasm: [{ data }], allowed_hosts: ["127.0.0.*"], memory: { max_http_response_bytes: 1000 } } as never,
      { functions },
    );
    const get = async (path: string, host = "127.0.0.1") =>
      text(
        await plugin.call(
          "http",
          JSON.stringify({ method: null, url: `http://${host}:${port}${path}`, headers: { "x-a": "1" } }),
        ),
      );
    assert.equal(await get("/"), "GET 1");
    assert.equal(await get("/here"), "GET 1");
    await assert.rejects(get("/elsewhere"), /HTTP requests to "localhost:\d+" are not allowed/);
    await assert.rejects(get("/", "localhost"), /are not allowed/);
    await assert.rejects(get("/long"), /maxHttpResponseBytes/);
    await assert.rejects(plugin.call("http", '{"url":"file:///etc/passwd"}'), /are not allowed/);
    plugin.close();
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

Deno.test("a call sees nothing of earlier calls: neither shared memory nor HTTP responses, not even late ones", async () => {
  let answer: ((response: Response) => void) | undefined;
  let signal: AbortSignal | null | undefined;
  const send: typeof fetch = (address, init) => {
    signal = init?.signal;
    if (String(address).endsWith("now")) return Promise.resolve(new Response("now"));
    return new Promise((resolve) => answer = resolve);
  };
  const options = { functions, fetch: send, timeoutMs: 50 };
  const plugin = await createPlugin({ wasm: [{ data }], allowedHosts: ["host"] }, options);
  assert.equal(text(await plugin.call("http", '{"url":"http://host/now"}')), "now");
  assert.equal(await plugin.call("status"), null);
  assert.equal(await plugin.call("stale"), null);
  await assert.rejects(plugin.call("http", '{"url":"http://host/late"}'), (error) => TrapError.is(error));
  assert.equal(signal?.aborted, true);
  answer?.(new Response("late", { status: 404 }));
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(await plugin.call("status"), null);
  plugin.close();
});

Deno.test("modules that import each other in a cycle call each other's functions, which may wait", async () => {
  const env = `(import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
    (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
    (import "extism:host/env" "input_length" (func $input_length (result i64)))
    (import "extism:host/env" "output_set" (func $output (param i64 i64)))
    (import "extism:host/user" "wait" (func $wait (param i32) (result i32)))`;
  const main = binary(`(module ${env}
    (import "library" "odd" (func $odd (param i32) (result i32)))
    (import "library" "spin" (func $spin))
    (func $even (export "even") (param i32) (result i32)
      (if (result i32) (i32.eqz (local.get 0))
        (then (call $wait (i32.const 49)))
        (else (call $odd (i32.sub (local.get 0) (i32.const 1))))))
    (func $give (param $byte i32) (local $at i64)
      (local.set $at (call $alloc (i64.const 1)))
      (call $store (local.get $at) (local.get $byte))
      (call $output (local.get $at) (i64.const 1)))
    (func (export "spin_here") (loop (br 0)))
    (func (export "parity") (call $give (call $even (i32.wrap_i64 (call $input_length)))))
    (func (export "deep") (drop (call $even (i32.const 100000))))
    (func (export "spin") (call $spin)))`);
  const library = binary(`(module
    (import "main" "even" (func $even (param i32) (result i32)))
    (import "main" "spin_here" (func $spin))
    (func (export "odd") (param i32) (result i32)
      (if (result i32) (i32.eqz (local.get 0))
        (then (i32.const 48))
        (else (call $even (i32.sub (local.get 0) (i32.const 1))))))
    (func (export "spin") (call $spin)))`);
  const wasm = [{ name: "library", data: library }, { name: "main", data: main }];
  const waited: number[] = [];
  const wait = async (_: CallContext, byte: number) => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    waited.push(byte);
    return byte;
  };
  const functions = { "extism:host/user": { wait } };
  const plugin = await createPlugin({ wasm }, { functions, timeoutMs: 2_000 });
  for (const length of [0, 1, 2, 7, 100]) {
    const output = await plugin.call("parity", "x".repeat(length));
    assert.equal(output?.text(), length % 2 === 0 ? "1" : "0", `${length}`);
  }
  assert.deepEqual(waited, [49, 49, 49]);
  await assert.rejects(plugin.call("deep"), /call stack exhausted/);
  assert.equal((await plugin.call("parity", "xx"))?.text(), "1", "it goes on");
  plugin.close();
  const hasty = await createPlugin({ wasm }, { functions, timeoutMs: 500 });
  await assert.rejects(hasty.call("spin"), /interrupted/);
  assert.equal((await hasty.call("parity", "x"))?.text(), "0");
  hasty.reset();
  assert.equal((await hasty.call("parity", "xx"))?.text(), "1");
  hasty.close();
  const refused = (text: string, message: RegExp) =>
    assert.rejects(
      createPlugin({ wasm: [{ name: "library", data: binary(text) }, { name: "main", data: main }] }, { functions }),
      message,
    );
  const exported = `(func (export "odd") (param i32) (result i32) (i32.const 0)) (func (export "spin"))`;
  await refused(
    `(module (import "main" "memory" (memory 1)) ${exported})`,
    /"library" and "main" import each other: the memory "memory" does not exist in time/,
  );
  await refused(
    `(module (import "main" "none" (func)) ${exported})`,
    /from "main", which exports nothing of that name/,
  );
  await refused(
    `(module (import "main" "even" (func (param i64))) ${exported})`,
    /imports "even" of type \[i64\] -> \[\] from "main", which exports \[i32\] -> \[i32\]/,
  );
  await refused(
    `(module (import "main" "spin_here" (func $spin)) ${exported} (start $spin))`,
    /"main" is called before it is instantiated/,
  );
});

Deno.test("modules of a manifest import each other, and WASI is an option", async () => {
  const library = binary(`(module (func (export "seven") (result i64) (i64.const 7)))`);
  const main = binary(`(module
    (import "library" "seven" (func $seven (result i64)))
    (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
    (import "extism:host/env" "output_set" (func $output (param i64 i64)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
    (memory (export "memory") 1)
    (global $ready (mut i64) (i64.const 0))
    (func (export "_initialize") (global.set $ready (i64.const 1)))
    (func (export "run") (drop (call $sizes (i32.const 0) (i32.const 4)))
      (call $output (call $alloc (call $seven)) (i64.add (call $seven) (global.get $ready)))))`);
  const wasm = [{ name: "library", data: library }, { data: main }];
  const plugin = await createPlugin({ wasm }, { useWasi: true });
  assert.equal((await plugin.call("run"))?.byteLength, 8, "initialized before the first call");
  plugin.close();
  await assert.rejects(createPlugin({ wasm }), /wasi_snapshot_preview1/);
});

Deno.test("manifests that cannot be are refused", async () => {
  await assert.rejects(createPlugin({ wasm: [] }), /no modules/);
  await assert.rejects(createPlugin({ wasm: [{}] }), /none of the fields data, path and url/);
  await assert.rejects(createPlugin({ wasm: [{ data, hash: "00" }] }), /has the digest [0-9a-f]{64}, not 00/);
  await assert.rejects(createPlugin({ wasm: [{ data }], allowedHost: [] } as never), /did you mean "allowedHosts"/);
  await assert.rejects(createPlugin({ wasm: [{ data }], config: { a: 5 } } as never), /an object of strings/);
  await assert.rejects(createPlugin(data, { timeout: 5 } as never), /option of a plugin/);
});
