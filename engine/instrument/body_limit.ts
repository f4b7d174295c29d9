/**
 * The engine's limit on function bodies, for instrumented ones. In: the sizes of a body before and after
 * instrumentation. Out: nothing, or an Error with the function and the size of its own body, which a user can compare
 * with the module.
 */
import { MAX_BODY_BYTES } from "../wasm/limits.ts";

/** Throws an Error if the instrumented body of function `func` is too large; sizes are in bytes. */
export function requireBodySize(func: number, ownBytes: number, instrumentedBytes: number): void {
  if (instrumentedBytes <= MAX_BODY_BYTES) return;
  const ratio = Math.ceil(instrumentedBytes / ownBytes);
  throw new Error(
    `func ${func} of ${ownBytes} bytes is too large to be instrumented: its body would have ${ratio} times its size, ` +
      `and at most ${MAX_BODY_BYTES} bytes are possible`,
  );
}
