/**
 * A debug server on every host: an editor attaches to an instance, stops it, reads a variable, and leaves.
 * tests/debug/attach_test.ts has the rest, with a client of the protocol's.
 */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { DebugServer } from "../../project/debug/mod.ts";
import { Editor } from "../support/editor.ts";

const TEXT = `(module
  (func $square (param $n i32) (result i32)
    (i32.mul (local.get $n) (local.get $n)))
  (func (export "run") (param $n i32) (result i32)
    (i32.add (call $square (local.get $n)) (i32.const 1))))`;

Deno.test("an editor attaches to an instance of the program, on every host", async () => {
  const server = await DebugServer.listen();
  try {
    const guest = await server.instantiate(TEXT, {}, { name: "square.wat" });
    assert.equal(await guest.call({}, "run", 2), 5);
    const socket = connect(server.port, "127.0.0.1");
    const editor = new Editor(socket, socket);
    await editor.request("initialize");
    await editor.request("attach", { program: "square.wat" });
    await editor.event("initialized");
    await editor.request("setFunctionBreakpoints", { breakpoints: [{ name: "square" }] });
    await editor.request("configurationDone");
    const result = guest.call({}, "run", 3);
    assert.equal((await editor.event("stopped")).body?.["reason"], "breakpoint");
    const { stackFrames } = await editor.request("stackTrace", { threadId: 1 });
    assert.deepEqual((stackFrames as { name: string }[]).map(({ name }) => name), ["square", "run"]);
    const { result: value } = await editor.request("evaluate", { expression: "$n * 10", frameId: 1 });
    assert.equal(value, "30");
    socket.destroy();
    assert.equal(await result, 10, "the program goes on without the editor");
  } finally {
    await server.close();
  }
});
