/**
 * The captured output of a guest with hostile arguments: lists that are too long, overlap or lie outside of the memory,
 * and streams that are closed or renumbered. WASI itself is replaced here by functions that note their calls.
 */
import assert from "node:assert/strict";
import { withOutput } from "../../project/ops/run/captured_output.ts";
import { WASI } from "../../project/ops/run/run_module.ts";

/** The errno of the noted function. */
const NOTED = 28;

function captured() {
  const bytes = new Uint8Array(65536);
  const printed: string[] = [];
  const imports = {
    [WASI]: { fd_write: () => NOTED, fd_read: () => NOTED, fd_close: () => 0, fd_renumber: () => 0 },
  };
  const instance = { exports: { memory: { bytes } } };
  const functions = withOutput(
    imports,
    () => instance as never,
    (category, text) => printed.push(`${category} ${text}`),
  );
  return { bytes, printed, functions: functions[WASI] as Record<string, (...args: number[]) => unknown> };
}

/** Fills a list with `count` entries for the first `length` bytes at `start`. */
function list(bytes: Uint8Array, count: number, start: number, length: number): void {
  const view = new DataView(bytes.buffer);
  for (let k = 0; k < count; k++) {
    view.setUint32(8 * k, start, true);
    view.setUint32(8 * k + 4, length, true);
  }
}

Deno.test("a list of overlapping buffers prints a part, and says how much", () => {
  const { bytes, printed, functions } = captured();
  list(bytes, 1024, 0, 65536);
  assert.equal(functions.fd_write!(1, 0, 1024, 8192), 0);
  assert.equal(new DataView(bytes.buffer).getUint32(8192, true), 1 << 20);
  assert.equal(printed.length, 1);
  assert.ok(printed[0].length <= (1 << 20) + 7);
});

Deno.test("lists that WASI refuses are left to it", () => {
  const { bytes, printed, functions } = captured();
  list(bytes, 4096, 60_000, 1);
  for (
    const [at, count, written] of [
      [0, 1025, 8],
      [0, -1, 8],
      [-8, 1, 8],
      [65535, 1, 8],
      [0, 1, 65534],
      [0, 1, -4],
    ] as const
  ) assert.equal(functions.fd_write!(1, at, count, written), NOTED, `${at} ${count} ${written}`);
  list(bytes, 1, 65535, 2);
  assert.equal(functions.fd_write!(1, 0, 1, 8), NOTED);
  assert.deepEqual(printed, []);
});

Deno.test("streams keep their meaning when they are renumbered and lose it when they are closed", () => {
  const { bytes, printed, functions } = captured();
  bytes[60_000] = 0x61;
  list(bytes, 1, 60_000, 1);
  functions.fd_renumber!(2, 7);
  assert.equal(functions.fd_write!(7, 0, 1, 8), 0);
  assert.equal(functions.fd_write!(2, 0, 1, 8), NOTED);
  functions.fd_renumber!(9, 1);
  assert.equal(functions.fd_write!(1, 0, 1, 8), NOTED);
  functions.fd_close!(7);
  assert.equal(functions.fd_write!(7, 0, 1, 8), NOTED);
  assert.deepEqual(printed, ["stderr a"]);
});
