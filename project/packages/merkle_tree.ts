/**
 * Merkle trees of append-only logs (RFC 9162, 2.1): hashes of leaves and nodes, checks of proofs.
 *
 * In: untrusted hashes, sizes and proofs. Out: true or false; nothing here throws for hostile proofs. Invariant: a
 * proof that is true binds the leaf, or the smaller tree, to the root of the larger one under collision resistance of
 * SHA-256; leaves and nodes are hashed with different prefixes, so neither passes for the other.
 */
import { createHash } from "node:crypto";

/** The length of a hash in bytes. */
export const HASH_BYTES = 32;
/** The maximum length of a proof in hashes: twice the height of the largest tree whose sizes are safe integers. */
export const MAX_PROOF = 108;

/** The root of the tree without leaves. */
export function emptyRoot(): Uint8Array {
  return createHash("sha256").digest();
}

/** The hash of a leaf. */
export function hashLeaf(bytes: Uint8Array): Uint8Array {
  return createHash("sha256").update(new Uint8Array([0])).update(bytes).digest();
}

/** The hash of an inner node. */
export function hashNode(left: Uint8Array, right: Uint8Array): Uint8Array {
  return createHash("sha256").update(new Uint8Array([1])).update(left).update(right).digest();
}

/** Positions of the last node of two trees, the smaller one first, on the level that a check has reached. */
class Positions {
  #small: number;
  #large: number;

  constructor(small: number, large: number) {
    this.#small = small;
    this.#large = large;
  }

  /** Whether the larger tree has no further level. */
  get isAtRoot(): boolean {
    return this.#large === 0;
  }

  /** Whether the node has a sibling to its left whose hash the proof must give. */
  get isRight(): boolean {
    return this.#small % 2 === 1 || this.#small === this.#large;
  }

  /** Goes up by one level. */
  rise(): void {
    this.#small = Math.floor(this.#small / 2);
    this.#large = Math.floor(this.#large / 2);
  }

  /** Goes up until the node is a right child, or at the left edge. */
  riseToRight(): void {
    while (this.#small % 2 === 0 && this.#small !== 0) this.rise();
  }

  /** Goes up while the node is a right child. */
  riseWhileRight(): void {
    while (this.#small % 2 === 1) this.rise();
  }
}

/** Whether the leaf `number` of the tree with this size and root has this hash. */
export function isIncluded(
  leaf: Uint8Array,
  number: number,
  size: number,
  proof: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  if (!Number.isSafeInteger(number) || !Number.isSafeInteger(size) || number < 0 || number >= size) return false;
  const at = new Positions(number, size - 1);
  let hash = leaf;
  for (const sibling of proof) {
    if (at.isAtRoot) return false;
    if (at.isRight) {
      hash = hashNode(sibling, hash);
      at.riseToRight();
    } else hash = hashNode(hash, sibling);
    at.rise();
  }
  return at.isAtRoot && isSame(hash, root);
}

/** Whether the tree of the size `size` begins with the leaves of the one of the size `before`. */
export function isConsistent(
  before: number,
  size: number,
  proof: readonly Uint8Array[],
  rootBefore: Uint8Array,
  root: Uint8Array,
): boolean {
  if (!Number.isSafeInteger(before) || !Number.isSafeInteger(size) || before < 0 || before > size) return false;
  if (before === size) return proof.length === 0 && isSame(rootBefore, root);
  if (before === 0) return proof.length === 0 && isSame(rootBefore, emptyRoot());
  const at = new Positions(before - 1, size - 1);
  at.riseWhileRight();
  // A smaller tree that is one complete subtree needs no hash of its own in the proof.
  const [first, ...others] = isPowerOfTwo(before) ? [rootBefore, ...proof] : proof;
  if (first === undefined) return false;
  let small = first;
  let large = first;
  for (const sibling of others) {
    if (at.isAtRoot) return false;
    if (at.isRight) {
      small = hashNode(sibling, small);
      large = hashNode(sibling, large);
      at.riseToRight();
    } else large = hashNode(large, sibling);
    at.rise();
  }
  return at.isAtRoot && isSame(small, rootBefore) && isSame(large, root);
}

/** The largest power of two below `size`, which is at least 2. */
export function leftSize(size: number): number {
  let left = 1;
  while (left * 2 < size) left *= 2;
  return left;
}

function isPowerOfTwo(size: number): boolean {
  return size === 1 || leftSize(size) * 2 === size;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
