/**
 * A debug server on every host: an editor, here a few lines of the Debug Adapter Protocol, attaches to an instance,
 * stops it, reads a variable, and leaves. tests/debug/attach_test.ts has the rest, with a client of the protocol's.
 */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { DebugServer } from "../../project/debug/mod.ts";

const TEXT = `(module
  (func $square (param $n i32) (result i32)
    (i32.mul (local.get $n) (local.get $n)))
  (func (export "run") (param $n i32) (result i32)
    (i32.add (call $square (local.get $n)) (i32.const 1))))`;

/** A message of the protocol. */
interface Message {
  readonly type: string;
  readonly event?: string;
  readonly request_seq?: number;
  readonly success?: boolean;
  readonly body?: Record<string, unknown>;
}

/** An editor: requests, and events in the order in which they come. */
class Editor {
  readonly #socket: Socket;
  readonly #messages: Message[] = [];
  #input = "";
  #sequence = 0;
  #arrived: () => void = () => {};

  constructor(port: number) {
    this.#socket = connect(port, "127.0.0.1");
    this.#socket.setEncoding("utf8").on("data", (text: string) => {
      this.#input += text;
      for (;;) {
        const [head, length] = /^Content-Length: (\d+)\r\n\r\n/.exec(this.#input) ?? [];
        if (head === undefined || this.#input.length < head.length + Number(length)) break;
        this.#messages.push(JSON.parse(this.#input.slice(head.length, head.length + Number(length))));
        this.#input = this.#input.slice(head.length + Number(length));
      }
      this.#arrived();
    });
  }

  /** The first message that has not been taken and fits. */
  async take(fits: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const at = this.#messages.findIndex(fits);
      if (at >= 0) return this.#messages.splice(at, 1)[0];
      await new Promise<void>((arrived) => this.#arrived = arrived);
    }
  }

  event(name: string): Promise<Message> {
    return this.take(({ event }) => event === name);
  }

  /** Sends a request; resolves with the body of its response. */
  async request(command: string, args: object = {}): Promise<Record<string, unknown>> {
    const seq = ++this.#sequence;
    const text = JSON.stringify({ seq, type: "request", command, arguments: args });
    this.#socket.write(`Content-Length: ${text.length}\r\n\r\n${text}`);
    const { success, body = {} } = await this.take(({ request_seq }) => request_seq === seq);
    assert.ok(success, `${command}: ${JSON.stringify(body)}`);
    return body;
  }

  leave(): void {
    this.#socket.destroy();
  }
}

Deno.test("an editor attaches to an instance of the program, on every host", async () => {
  const server = await DebugServer.listen();
  try {
    const guest = await server.instantiate(TEXT, {}, { name: "square.wat" });
    assert.equal(await guest.call({}, "run", 2), 5);
    const editor = new Editor(server.port);
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
    editor.leave();
    assert.equal(await result, 10, "the program goes on without the editor");
  } finally {
    await server.close();
  }
});
