/**
 * Proofs of Merkle trees against the definitions of RFC 9162, and proofs that are damaged.
 */
import assert from "node:assert/strict";
import { emptyRoot, hashLeaf, isConsistent, isIncluded } from "./merkle_tree.ts";
import { consistencyPath, inclusionPath, treeHash } from "../../tests/support/naive_merkle_tree.ts";

const ENTRIES = Array.from({ length: 40 }, (_, i) => new TextEncoder().encode(`entry ${i}`));
const first = (size: number) => ENTRIES.slice(0, size);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

/** Proofs with one fault each. */
function damaged(proof: readonly Uint8Array[]): Uint8Array[][] {
  const flipped = proof.map((_, i) => proof.map((hash, j) => i === j ? hash.map((b, k) => k === 0 ? b ^ 1 : b) : hash));
  const shorter = proof.map((_, i) => proof.filter((_, j) => i !== j));
  const swapped = proof.length < 2 ? [] : [[proof[1], proof[0], ...proof.slice(2)]];
  return [...flipped, ...shorter, ...swapped, [...proof, emptyRoot()]];
}

Deno.test("known values: the roots of RFC 6962's first test trees", () => {
  assert.equal(hex(emptyRoot()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  assert.equal(
    hex(hashLeaf(new Uint8Array())),
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  );
});

Deno.test("each leaf of each tree of up to 40 has its proof, and no other", () => {
  for (let size = 1; size <= ENTRIES.length; size++) {
    const root = treeHash(first(size));
    for (let number = 0; number < size; number++) {
      const leaf = hashLeaf(ENTRIES[number]);
      const proof = inclusionPath(number, first(size));
      assert.ok(isIncluded(leaf, number, size, proof, root), `${number} of ${size}`);
      for (const wrong of damaged(proof)) assert.equal(isIncluded(leaf, number, size, wrong, root), false);
      assert.equal(isIncluded(hashLeaf(ENTRIES[(number + 1) % 40]), number, size, proof, root), false);
      for (const other of [-1, 0.5, NaN, size, number ^ 1].filter((n) => n !== number)) {
        assert.equal(isIncluded(leaf, other, size, proof, root), false);
      }
    }
  }
});

Deno.test("each tree of up to 40 begins with each smaller one, by its proof and no other", () => {
  for (let size = 0; size <= ENTRIES.length; size++) {
    const root = treeHash(first(size));
    for (let before = 0; before <= size; before++) {
      const rootBefore = treeHash(first(before));
      const proof = consistencyPath(before, first(size));
      assert.ok(isConsistent(before, size, proof, rootBefore, root), `${before} of ${size}`);
      for (const wrong of damaged(proof)) {
        assert.equal(isConsistent(before, size, wrong, rootBefore, root), false, `${before} of ${size}`);
      }
      const other = treeHash([...first(before - 1), new Uint8Array([1])]);
      if (before > 0) assert.equal(isConsistent(before, size, proof, other, root), false);
      assert.equal(isConsistent(size + 1, size, proof, rootBefore, root), false);
    }
  }
});
