/**
 * Modules that accept connections: `waft run --listen`, and the option `sockets` of WASI. In: a server of one
 * connection, which runs under wasmtime in the same way.
 */
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { ERRNO, FDFLAG, FILETYPE } from "../../engine/wasi/abi.ts";
import { listenTcp } from "../../engine/wasi/listening_socket.ts";
import { Wasi } from "../../engine/wasi/mod.ts";
import { removeFolder } from "../support/remove_folder.ts";
import { waft } from "../cli_project/waft.ts";
import { BUFFER } from "./raw_guest.ts";
import { ROOT, withSandbox } from "./sandbox.ts";

/** Answers one connection with what it sent. Its status is 0, or 100 and the error number of the call that failed. */
const ECHO = `(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_recv" (func $recv (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_send" (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_shutdown" (func $shutdown (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func $check (param $errno i32)
    (if (local.get $errno) (then (call $exit (i32.add (i32.const 100) (local.get $errno))))))
  (func $readable (param $fd i32)
    (i32.store8 (i32.const 8) (i32.const 1)) ;; a subscription to fd_read
    (i32.store (i32.const 16) (local.get $fd))
    (call $check (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 96))))
  (func (export "_start")
    (call $readable (i32.const 3))
    (call $check (call $accept (i32.const 3) (i32.const 0) (i32.const 100)))
    (call $readable (i32.load (i32.const 100)))
    (i32.store (i32.const 104) (i32.const 200))
    (i32.store (i32.const 108) (i32.const 100))
    (call $check (call $recv (i32.load (i32.const 100)) (i32.const 104) (i32.const 1) (i32.const 0)
      (i32.const 112) (i32.const 116)))
    (i32.store (i32.const 108) (i32.load (i32.const 112)))
    (call $check (call $send (i32.load (i32.const 100)) (i32.const 104) (i32.const 1) (i32.const 0) (i32.const 112)))
    (call $check (call $shutdown (i32.load (i32.const 100)) (i32.const 2)))))`;

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Connects as soon as something listens, unless `isOver`; sends a text and returns the answer. */
async function talk(port: number, text: string, isOver: () => boolean): Promise<string> {
  for (;;) {
    const socket = await new Promise<Socket | undefined>((resolve) => {
      const connecting = connect(port, "127.0.0.1", () => resolve(connecting));
      connecting.on("error", () => resolve(undefined));
    });
    if (socket === undefined) {
      if (isOver()) return "";
      await new Promise((resolve) => setTimeout(resolve, 20));
      continue;
    }
    socket.write(text);
    let answer = "";
    for await (const part of socket) answer += String(part);
    return answer;
  }
}

Deno.test({
  name: "waft run --listen gives a module a socket, from descriptor 3 on",
  ignore: process.platform !== "linux",
}, async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-listen-"));
  try {
    writeFileSync(join(home, "echo.wat"), ECHO);
    const port = await freePort();
    let isOver = false;
    const run = waft(["run", "--listen", `127.0.0.1:${port}`, "--dir", ".", "echo.wat"], home, home);
    void run.then(() => isOver = true);
    assert.equal(await talk(port, "ping", () => isOver), "ping");
    assert.deepEqual(await run, { code: 0, out: "", err: "" });

    assert.equal((await waft(["run", "echo.wat"], home, home)).code, 100 + ERRNO.badf);
    const busy = createServer();
    await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
    const taken = `127.0.0.1:${(busy.address() as AddressInfo).port}`;
    const cases: [string[], RegExp][] = [
      [["--listen", taken], /cannot listen on 127\.0\.0\.1:\d+: the address is in use/],
      [["--listen", "127.0.0.1:0"], /a module cannot use a port that it does not know/],
      [["--listen", "localhost:80"], /"localhost:80" is not ADDRESS:PORT/],
      [["--net", "127.0.0.1"], /--net is for components/],
      [["--listen", "127.0.0.1:1", "--record", "x.rec"], /--record is for programs without sockets/],
    ];
    for (const [options, message] of cases) {
      const { code, err } = await waft(["run", ...options, "echo.wat"], home, home);
      assert.equal(code, 2, err);
      assert.match(err, message);
    }
    busy.close();
  } finally {
    removeFolder(home);
  }
});

Deno.test({
  name: "sockets come before directories, do not block, and stay open",
  ignore: process.platform !== "linux",
}, () => {
  const sockets = [listenTcp("127.0.0.1:0"), listenTcp("[::1]:0")];
  try {
    withSandbox(({ guest }) => {
      for (const fd of [3, 4]) {
        assert.equal(guest.call("fd_fdstat_get", fd, BUFFER), 0);
        assert.equal(guest.bytes(BUFFER, 1)[0], FILETYPE.socket_stream);
        assert.equal(guest.bytes(BUFFER + 2, 1)[0], FDFLAG.nonblock);
        assert.equal(guest.call("sock_accept", fd, 0, 0), ERRNO.again);
      }
      assert.equal(guest.call("fd_prestat_get", 3, 0), ERRNO.badf);
      assert.equal(guest.call("fd_prestat_get", ROOT + 2, 0), 0);
      assert.equal(guest.call("fd_close", 3), 0);
    }, { sockets: sockets.map(({ descriptor }) => descriptor) });
    // The guest's end has not closed them: the port is still taken.
    for (const [k, address] of ["127.0.0.1", "[::1]"].entries()) {
      assert.throws(() => listenTcp(`${address}:${sockets[k].port}`), /the address is in use/);
    }
  } finally {
    for (const socket of sockets) socket.close();
  }
  for (const text of ["", "127.0.0.1", ":80", "1.2.3:80", "1.2.3.256:80", "127.0.0.1:65536", "[::g]:80", "::1:80"]) {
    assert.throws(() => listenTcp(text), /is not ADDRESS:PORT/, text);
  }
  for (const option of [7, [-1], ["3"], [1.5]]) {
    assert.throws(() => new Wasi({ sockets: option as number[] }), /option sockets/);
  }
});
