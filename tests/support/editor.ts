/**
 * An editor for tests on every host, in a few lines of the Debug Adapter Protocol. In: requests, and the streams to an
 * adapter. Out: the bodies of the answers, and events. tests/debug has a client of the protocol's authors.
 */
import assert from "node:assert/strict";
import type { Readable, Writable } from "node:stream";

/** A message of the protocol. */
interface Message {
  readonly type: string;
  readonly event?: string;
  readonly request_seq?: number;
  readonly success?: boolean;
  readonly body?: Record<string, unknown>;
}

/** An editor: requests, and events in the order in which they come. */
export class Editor {
  readonly #output: Writable;
  readonly #messages: Message[] = [];
  #input = "";
  #sequence = 0;
  #arrived: () => void = () => {};

  /** `input` has the messages of the adapter. */
  constructor(input: Readable, output: Writable) {
    this.#output = output;
    input.setEncoding("utf8").on("data", (text: string) => {
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
    this.#output.write(`Content-Length: ${text.length}\r\n\r\n${text}`);
    const { success, body = {} } = await this.take(({ request_seq }) => request_seq === seq);
    assert.ok(success, `${command}: ${JSON.stringify(body)}`);
    return body;
  }
}
