/**
 * Streams of WASI 0.3, which come with a future for their outcome. In: functions that read and write. Out: the results
 * of the functions in WIT. Invariant: a source is read only when the guest asks for bytes, and its outcome is settled
 * before the guest sees the end of the stream.
 */
import { consume, discard, Outcome, type Take } from "../../async/host_streams.ts";
import { ComponentError } from "../../abi/traps.ts";

/** The end of a stream: success, or an error-code. */
export type End = { readonly tag: "ok"; readonly val?: undefined } | { readonly tag: "err"; readonly val: unknown };

/** The error-code of a WASI interface for an error; throws those that are not the guest's. */
type CodeOf = (error: unknown) => unknown;

const OK: End = { tag: "ok" };

/** A stream as the host returns it, and the future of its outcome. */
export type Produced<T, Result = End> = [AsyncIterable<T>, Outcome<Result>];

/** A producer of elements; `next` returns undefined at the end. */
interface Source<T> {
  next(): T | undefined | Promise<T | undefined>;
  /** Called once: at the end, after an error, or when the guest drops the stream. */
  close?(): void;
}

class Production<T, Result> implements AsyncIterator<T> {
  readonly #source: Source<T>;
  readonly #outcome: Outcome<Result>;
  readonly #ok: () => Result;
  readonly #err: (error: unknown) => Result;
  #closed = false;

  constructor(source: Source<T>, outcome: Outcome<Result>, ok: () => Result, err: (error: unknown) => Result) {
    this.#source = source;
    this.#outcome = outcome;
    this.#ok = ok;
    this.#err = err;
  }

  async next(): Promise<IteratorResult<T>> {
    try {
      const value = await this.#source.next();
      if (value !== undefined) return { done: false, value };
      return this.#end(this.#ok());
    } catch (error) {
      return this.#end(this.#err(error));
    }
  }

  #end(result: Result): IteratorResult<T> {
    if (!this.#closed) this.#source.close?.();
    this.#closed = true;
    this.#outcome.settle(result);
    return { done: true, value: undefined };
  }

  return(): Promise<IteratorResult<T>> {
    return Promise.resolve(this.#end(this.#ok()));
  }
}

/** The stream of a source whose outcome has another form than {@linkcode End}. */
export function produceWith<T, Result>(
  source: Source<T>,
  ok: () => Result,
  err: (error: unknown) => Result,
): Produced<T, Result> {
  const outcome = new Outcome<Result>();
  const production = new Production(source, outcome, ok, err);
  return [{ [Symbol.asyncIterator]: () => production }, outcome];
}

/** The stream of a source. */
export function produce<T>(source: Source<T>, codeOf: CodeOf): Produced<T> {
  return produceWith(source, () => OK, (error): End => ({ tag: "err", val: codeOf(error) }));
}

/** An empty stream with an error, which also a guest gets that drops the stream. */
export function failed<T>(error: unknown, codeOf: CodeOf): Produced<T> {
  const [stream, outcome] = produce<T>({ next: () => undefined }, codeOf);
  outcome.settle({ tag: "err", val: codeOf(error) });
  return [stream, outcome];
}

/** Passes the bytes of a guest's stream to `take`. `close` is called once, before the outcome is settled. */
export function receive(
  data: ReadableStream<Uint8Array>,
  take: Take,
  codeOf: CodeOf,
  close: () => void | Promise<void> = () => {},
): Outcome<End> {
  const outcome = new Outcome<End>();
  const settle = (error: unknown) => {
    if (error === undefined) outcome.settle(OK);
    // Any other error has ended the component.
    else if (error instanceof ComponentError) outcome.settle({ tag: "err", val: codeOf(error) });
  };
  const settleFailure = (failure: unknown) => {
    if (!(failure instanceof ComponentError)) throw failure;
    settle(failure);
  };
  consume(data, take, (error) => {
    try {
      const closing = close();
      if (closing instanceof Promise) return closing.then(() => settle(error), settleFailure);
      settle(error);
    } catch (failure) {
      settle(error ?? failure);
    }
  });
  return outcome;
}

/** Refuses a guest's stream. */
export function refused(data: ReadableStream<Uint8Array>, error: unknown, codeOf: CodeOf): Outcome<End> {
  discard(data);
  const outcome = new Outcome<End>();
  outcome.settle({ tag: "err", val: codeOf(error) });
  return outcome;
}

/** The code of an error-code of WASI 0.2, which is an enum; other errors are failures of the host. */
export function codeName(error: unknown): string {
  if (error instanceof ComponentError && typeof error.payload === "string") return error.payload;
  throw error;
}
