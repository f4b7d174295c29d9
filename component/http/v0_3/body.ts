/**
 * Bodies of wasi:http 0.3. In: streams and trailers of a guest, or messages that arrive. Out: the streams and futures
 * of consume-body, and the bytes of messages that are sent. Invariant: the outcome of a body is settled once, after its
 * last byte has been taken or refused.
 */
import { consume, Outcome } from "../../async/host_streams.ts";
import { ComponentError } from "../../abi/traps.ts";
import type { EventOutputStream } from "../../wasi/event_streams.ts";
import { CHUNK_BYTES } from "../../wasi/preview1.ts";
import { type Produced, produceWith } from "../../wasi/v0_3/streams.ts";
import { type HttpError, HttpIoError, IncomingBody, OutgoingBody } from "../body.ts";
import type { Fields } from "../fields.ts";

/** The end of a body: trailers, or an abort. */
type BodyEnd = { readonly tag: "ok"; readonly val: Fields | undefined } | {
  readonly tag: "err";
  readonly val: HttpError;
};

/** A body that can be read once: a stream of a guest or of a message, and its end. */
export interface Body {
  readonly contents: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | undefined;
  readonly trailers: unknown;
  /** Tells the maker of the body whether it was sent. */
  settle(result: { tag: "ok" } | { tag: "err"; val: HttpError }): void;
}

/** The error-code of an error of a stream of 0.2, or of a body. */
function httpError(error: unknown): HttpError {
  if (!(error instanceof ComponentError)) throw error;
  const payload = error.payload as { readonly tag: string; readonly val?: unknown };
  if (payload.tag === "last-operation-failed" && payload.val instanceof HttpIoError) return payload.val.httpError;
  const isStream = payload.tag === "last-operation-failed" || payload.tag === "closed";
  return isStream ? { tag: "connection-terminated" } : payload;
}

function isEnd(error: unknown): boolean {
  return error instanceof ComponentError && (error.payload as { tag?: unknown }).tag === "closed";
}

/** The stream and the trailers of a message that arrives. `close` is called once. */
export function arriving(body: IncomingBody, close: () => void): Produced<Uint8Array, BodyEnd> {
  const input = body.stream();
  const ok = (): BodyEnd => {
    const end = IncomingBody.finish(body).get() as { readonly val: BodyEnd } | undefined;
    return end?.val ?? { tag: "ok", val: undefined };
  };
  return produceWith(
    {
      async next() {
        try {
          return await input.blockingRead(BigInt(CHUNK_BYTES));
        } catch (error) {
          if (isEnd(error)) return undefined;
          throw error;
        }
      },
      close,
    },
    ok,
    (error): BodyEnd => ({ tag: "err", val: httpError(error) }),
  );
}

async function write(output: EventOutputStream, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const room = Number(output.checkWrite());
    if (room === 0) await output.subscribe().block();
    else output.write(bytes.subarray(at, at += room));
  }
}

/** Passes bytes on, at once if there is room. */
function take(output: EventOutputStream, bytes: Uint8Array): void | Promise<void> {
  if (bytes.length > Number(output.checkWrite())) return write(output, bytes);
  output.write(bytes);
}

/** The end of a body, which may be a message that arrives. */
export async function endOf({ trailers }: Body): Promise<BodyEnd> {
  return await (trailers instanceof Outcome ? trailers.settled() : trailers) as BodyEnd;
}

/**
 * Sends a body. Resolves when its last byte has been taken, and the message's `transmission` has ended. Rejects if the
 * component ended, or its body cannot be as its message announced it; then the receiver sees that it is incomplete.
 */
export async function sendBody(
  body: Body,
  to: OutgoingBody,
  transmission?: Promise<HttpError | undefined>,
): Promise<void> {
  try {
    await copy(body.contents, to.write());
    const end = await endOf(body);
    if (end.tag === "err") throw new ComponentError(end.val);
    OutgoingBody.finish(to, end.val);
    const error = await transmission;
    body.settle(error === undefined ? { tag: "ok" } : { tag: "err", val: error });
  } catch (error) {
    to[Symbol.dispose]();
    if (!(error instanceof ComponentError)) throw error;
    body.settle({ tag: "err", val: httpError(error) });
    throw error;
  }
}

async function copy(contents: Body["contents"], output: EventOutputStream): Promise<void> {
  if (contents instanceof ReadableStream) {
    await new Promise<void>((resolve, reject) => {
      consume(contents, (bytes) => take(output, bytes), (error) => {
        if (error === undefined) resolve();
        else reject(error);
      });
    });
  } else if (contents !== undefined) { for await (const bytes of contents) await take(output, bytes); }
}
