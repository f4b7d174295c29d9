/**
 * The definitions of RFC 9162, 2.1, word for word, over all leaves: slow, and independent of the code under test.
 */
import { createHash } from "node:crypto";

const sha256 = (...parts: readonly Uint8Array[]): Uint8Array => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return new Uint8Array(hash.digest());
};

/** The largest power of two smaller than `n`. */
function split(n: number): number {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}

/** MTH(D): the root of the tree of these entries. */
export function treeHash(entries: readonly Uint8Array[]): Uint8Array {
  if (entries.length === 0) return sha256();
  if (entries.length === 1) return sha256(new Uint8Array([0]), entries[0]);
  const k = split(entries.length);
  return sha256(new Uint8Array([1]), treeHash(entries.slice(0, k)), treeHash(entries.slice(k)));
}

/** PATH(m, D): the inclusion proof of entry `m`. */
export function inclusionPath(m: number, entries: readonly Uint8Array[]): Uint8Array[] {
  if (entries.length <= 1) return [];
  const k = split(entries.length);
  const [left, right] = [entries.slice(0, k), entries.slice(k)];
  return m < k ? [...inclusionPath(m, left), treeHash(right)] : [...inclusionPath(m - k, right), treeHash(left)];
}

/** PROOF(m, D): the consistency proof of the tree of the first `m` entries; empty for no entries. */
export function consistencyPath(m: number, entries: readonly Uint8Array[]): Uint8Array[] {
  return m === 0 ? [] : subproof(m, entries, true);
}

function subproof(m: number, entries: readonly Uint8Array[], isWhole: boolean): Uint8Array[] {
  if (m === entries.length) return isWhole ? [] : [treeHash(entries)];
  const k = split(entries.length);
  const [left, right] = [entries.slice(0, k), entries.slice(k)];
  return m <= k ? [...subproof(m, left, isWhole), treeHash(right)] : [...subproof(m - k, right, false), treeHash(left)];
}
