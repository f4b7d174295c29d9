/**
 * The call at which a recorded run exhausted its native stack. In: the activations of the innermost call from
 * JavaScript, as activationsOf (runtime/traps/trap_error.ts) numbers them. Out: the fields of an event.
 *
 * A function's prologue checks the stack before the function has any effect. Machine code without tail calls that is
 * not replaced while it runs has a stack pointer that is a function of the activations: the host's frames below them do
 * not change between two events. So the first call with the same activations, after the same event, is that call in
 * every code of the module.
 */
import { type ByteReader, ByteWriter } from "../base/bytes.ts";
import { sha256 } from "./log_file.ts";

/** Length of a digest of activations, in bytes. */
const DIGEST_BYTES = 16;
/** The innermost activations, as numbers: a replay compares them before it walks the stack. */
const MAX_NEAR = 15;
/** More activations than fit on any stack. */
const MAX_ACTIVATIONS = 1 << 24;

/** Activations at which a stack was exhausted. */
export interface Exhaustion {
  /** The number of activations. */
  readonly depth: number;
  /** The first numbers of the path; the very first is the index of the innermost function. */
  readonly near: readonly number[];
  /** The digest of the whole path. */
  readonly digest: Uint8Array;
}

/** Writes the activations `path`. */
export function writeExhaustion(out: ByteWriter, path: readonly number[]): void {
  const near = path.slice(0, MAX_NEAR);
  out.u32(depthOf(path));
  out.u32(near.length);
  for (const number of near) out.u32(number);
  out.raw(digestOf(path));
}

/** Reads the exhaustion that `writeExhaustion` has written. Throws MalformedError for a depth that no run has. */
export function readExhaustion(reader: ByteReader): Exhaustion {
  const depth = reader.u32();
  const length = reader.u32();
  if (depth === 0 || depth > MAX_ACTIVATIONS || length !== Math.min(2 * depth - 1, MAX_NEAR)) {
    reader.fail(`a stack of ${depth} activations, of which ${length} numbers are known`);
  }
  const near = Array.from({ length }, () => reader.u32());
  return { depth, near, digest: reader.take(DIGEST_BYTES).slice() };
}

/** Whether the activations that `path` finds, at most `most` numbers of them, are those of `exhaustion`. */
export function isAt({ depth, near, digest }: Exhaustion, path: (most?: number) => readonly number[]): boolean {
  const first = path(near.length);
  if (near.some((number, k) => number !== first[k])) return false;
  const all = path();
  return depthOf(all) === depth && digestOf(all).every((byte, k) => byte === digest[k]);
}

function depthOf(path: readonly number[]): number {
  return (path.length + 1) >> 1;
}

function digestOf(path: readonly number[]): Uint8Array {
  const out = new ByteWriter(path.length * 2 + 16);
  for (const number of path) out.u32(number);
  return sha256(out.bytes.subarray(0, out.length)).subarray(0, DIGEST_BYTES);
}
