/**
 * wasi:tls, a draft: handshakes over the sockets of a component, with servers on the loopback interface. In:
 * fixtures/tcp.wat, to which this file adds TLS, and two certificates.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { tlsInterface, type TlsOptions } from "../../component/wasi/tls.ts";

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), "utf8");

const IMPORT = `
  (import "wasi:tls/types@0.2.0-draft" (instance $tls
    (alias outer 1 $input-stream (type $outer-input))
    (export "input-stream" (type $input-stream (eq $outer-input)))
    (alias outer 1 $output-stream (type $outer-output))
    (export "output-stream" (type $output-stream (eq $outer-output)))
    (alias outer 1 $pollable (type $outer-pollable))
    (export "pollable" (type $pollable (eq $outer-pollable)))
    (alias outer 1 $error-type (type $outer-error))
    (export "io-error" (type $io-error (eq $outer-error)))
    (export "client-handshake" (type $client-handshake (sub resource)))
    (export "client-connection" (type $client-connection (sub resource)))
    (export "future-client-streams" (type $future (sub resource)))
    (export "[constructor]client-handshake" (func
      (param "server-name" string) (param "input" (own $input-stream)) (param "output" (own $output-stream))
      (result (own $client-handshake))))
    (export "[static]client-handshake.finish" (func (param "this" (own $client-handshake)) (result (own $future))))
    (export "[method]client-connection.close-output" (func (param "self" (borrow $client-connection))))
    (export "[method]future-client-streams.subscribe" (func
      (param "self" (borrow $future)) (result (own $pollable))))
    (export "[method]future-client-streams.get" (func (param "self" (borrow $future))
      (result (option (result (result
        (tuple (own $client-connection) (own $input-stream) (own $output-stream)) (error (own $io-error))))))))))
`;

const FUNCTIONS = {
  handshake: ["[constructor]client-handshake", "(param i32 i32 i32 i32) (result i32)"],
  finish_tls: ["[static]client-handshake.finish", "(param i32) (result i32)"],
  close_output: ["[method]client-connection.close-output", "(param i32)"],
  subscribe_tls: ["[method]future-client-streams.subscribe", "(param i32) (result i32)"],
  get_tls: ["[method]future-client-streams.get", "(param i32 i32)"],
} as const;

/** Makes `input` and `output` those of TLS; a handshake that fails is the error code access-denied. */
const HANDSHAKE = `
      (local.set $future (call $finish_tls (call $handshake
        (i32.const 1100) (i32.const 11) (local.get $input) (local.get $output))))
      (call $block (call $subscribe_tls (local.get $future)))
      (call $get_tls (local.get $future) (i32.const 64))
      (if (i32.or (i32.ne (i32.load8_u (i32.const 64)) (i32.const 1)) (i32.load8_u (i32.const 68)))
        (then (unreachable)))
      (if (i32.load8_u (i32.const 72)) (then
        (i32.store8 (i32.const 0) (i32.const 1))
        (i32.store8 (i32.const 4) (i32.const 1))
        (return (i32.const 0))))
      (local.set $input (i32.load (i32.const 80)))
      (local.set $output (i32.load (i32.const 84)))
`;

/** The component of tcp.wat, which talks through TLS to the server "one.example". */
function withTls(): string {
  const rows = Object.entries(FUNCTIONS);
  const lowered = rows.map(([name, [full]]) =>
    `(core func $${name} (canon lower (func $tls "${full}") (memory (core memory $memory "memory"))))`
  ).join("\n");
  const imported = rows.map(([name, [, type]]) => `(import "h" "${name}" (func $${name} ${type}))`).join("\n");
  const passed = rows.map(([name]) => `(export "${name}" (func $${name}))`).join(" ");
  const changes: readonly (readonly [string, string])[] = [
    ["  (core module $memory", `${IMPORT}  (core module $memory`],
    ["  (core module $main", `${lowered}  (core module $main`],
    [
      '(data (i32.const 1024) "ping")',
      `${imported} (data (i32.const 1024) "ping") (data (i32.const 1100) "one.example")`,
    ],
    ["(local $output i32)", "(local $output i32) (local $future i32)"],
    ["      (call $write (local.get $output)", `${HANDSHAKE}      (call $write (local.get $output)`],
    [
      "      (call $read (local.get $input)",
      `      (call $close_output (i32.load (i32.const 76)))\n      (call $read (local.get $input)`,
    ],
    [
      '(export "network" (func $network)) (export "create"',
      `${passed} (export "network" (func $network)) (export "create"`,
    ],
  ];
  let text = fixture("tcp.wat");
  for (const [old, added] of changes) {
    assert.equal(text.split(old).length, 2, old);
    text = text.replace(old, () => added);
  }
  return text;
}

const component = compileComponent(NewEngine({ interruptible: true }), withTls());
const certificate = (pem: string) => /-----BEGIN CERTIFICATE-[^]*-END CERTIFICATE-----/.exec(pem)?.[0] ?? "";
const [ONE, TWO] = ["tls_one.pem", "tls_two.pem"].map(fixture);

interface Talk {
  readonly answer: unknown;
  /** The bytes that arrived at the server. */
  readonly received: string;
}

/** Lets the component talk to a server with this certificate and key. */
async function talk(pem: string, options: TlsOptions): Promise<Talk> {
  let received = "";
  const server = createServer({ cert: pem, key: pem }, (socket: TLSSocket) => {
    socket.on("error", () => {});
    socket.on("data", (part) => received += String(part));
    // The answer follows the end of the request, which close-output sends.
    socket.on("end", () => socket.end(`pong after ${received}`));
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return { answer: await talkTo((server.address() as AddressInfo).port, options), received };
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

async function talkTo(port: number, options: TlsOptions): Promise<unknown> {
  const wasi = new ComponentWasi({ network: { connect: ["127.0.0.1"] }, waitInEventLoop: true });
  try {
    const instance = component.instantiate({}, { ...wasi.imports, ...tlsInterface(wasi, options) });
    try {
      return await instance.callAsync({ deadline: 600_000 }, "talk", port);
    } finally {
      instance.close();
    }
  } catch (error) {
    return (error as { payload?: unknown }).payload ?? error;
  } finally {
    wasi.close();
  }
}

Deno.test("a component talks to a server through TLS", async () => {
  assert.deepEqual(await talk(ONE, { ca: certificate(ONE) }), { answer: "pong after ping", received: "ping" });
});

Deno.test("a handshake fails if the certificate is not trusted, or is for another name", async () => {
  for (const [pem, options] of [[ONE, {}], [ONE, { ca: certificate(TWO) }], [TWO, { ca: certificate(TWO) }]] as const) {
    assert.deepEqual(await talk(pem, options), { answer: "access-denied", received: "" });
  }
});

Deno.test("a handshake fails with a server that does not speak TLS, or closes the connection", async () => {
  for (const answer of ["no TLS at all\r\n", ""]) {
    const server = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.resume();
      socket.end(answer);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    assert.equal(await talkTo((server.address() as AddressInfo).port, {}), "access-denied");
    await new Promise((resolve) => server.close(resolve));
  }
});

Deno.test("TLS is not granted by default, and functions of other types are not passed to the host", () => {
  const wasi = new ComponentWasi({ network: { connect: ["127.0.0.1"] }, waitInEventLoop: true });
  assert.throws(() => component.instantiate({}, wasi.imports), /wasi:tls\/types/);
  const changed = withTls()
    .replace(
      '(param "self" (borrow $client-connection))',
      '(param "self" (borrow $client-connection)) (param "all" bool)',
    )
    .replace("(func $close_output (param i32))", "(func $close_output (param i32 i32))")
    .replace(
      "(call $close_output (i32.load (i32.const 76)))",
      "(call $close_output (i32.load (i32.const 76)) (i32.const 1))",
    );
  const other = compileComponent(NewEngine(), changed);
  assert.throws(() => other.instantiate({}, { ...wasi.imports, ...tlsInterface(wasi) }), /wasi:tls\/types/);
  wasi.close();
});
