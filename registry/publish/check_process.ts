/**
 * The process that checks archives and renders READMEs: no files, no network, no environment, a small heap.
 *
 * In, on stdin: frames with a CheckTask and its bytes. Out, on stdout: for each task any number of `load` messages,
 * each answered with a `releases` message, and at last a `result`. The parent ends the process when a task exceeds its
 * bounds.
 */
import process from "node:process";
import type { Release } from "../../project/packages/source.ts";
import { renderAuthorText } from "../site/markdown.ts";
import { checkArchive, type CheckReply, type CheckTask, type TaskInput } from "./check.ts";
import { encodeFrame, type Frame, FrameReader } from "./frames.ts";

const MAX_FRAME_BYTES = 256 << 20;

/** Frames of stdin, one at a time. */
class Inbox {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #reader = new FrameReader(MAX_FRAME_BYTES);
  readonly #frames: Frame[] = [];

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** The next frame; undefined at the end of the stream. */
  async take(): Promise<Frame | undefined> {
    while (this.#frames.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done === true) return undefined;
      this.#frames.push(...this.#reader.push(value));
    }
    return this.#frames.shift();
  }
}

function send(reply: CheckReply): void {
  process.stdout.write(encodeFrame(reply));
}

const inbox = new Inbox(process.stdin as AsyncIterable<Uint8Array>);

/** Asks the parent for the published releases of ids. */
async function load(ids: readonly string[]): Promise<ReadonlyMap<string, readonly Release[]>> {
  send({ kind: "load", ids });
  const answer = await inbox.take();
  return new Map(Object.entries((answer?.header as TaskInput | undefined)?.releases ?? {}));
}

for (let frame = await inbox.take(); frame !== undefined; frame = await inbox.take()) {
  const task = frame.header as CheckTask;
  if (task.kind === "readme") {
    const html = renderAuthorText(new TextDecoder().decode(frame.body));
    send({ kind: "result", result: html.length > task.readmeHtmlBytes ? "" : html });
  } else send({ kind: "result", result: await checkArchive(frame.body, task, load) });
}
