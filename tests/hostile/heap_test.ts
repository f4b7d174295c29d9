/**
 * The JavaScript heap that a decoded and validated module takes, per entry of each section: a limit on entries
 * (wasm/limits.ts) bounds memory only if an entry is small. Sections of which a module may have ten million entries
 * take columns outside of the heap.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { decodeModule } from "../../engine/binary/decode.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { collectGarbage } from "../support/collect_garbage.ts";
import { FAMILIES } from "./growing_modules.ts";

const COUNT = 20_000;

/** The most bytes of heap per entry, by the name of a family: about a fifth more than is taken today. */
const BYTES: Readonly<Record<string, number>> = {
  "equal types": 490,
  "recursive groups": 490,
  "imported functions": 200,
  "imported globals": 250,
  "functions": 150,
  "tables": 190,
  "tags": 70,
  "globals": 190,
  "exports of one function": 110,
  "element segments": 4,
  "elements of one segment": 4,
  "element expressions of one segment": 4,
  "data segments": 330,
  "passive data segments": 240,
  "custom sections": 240,
  "names of globals": 270,
};

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

function heapOf(bytes: Uint8Array): number {
  const before = heapUsed();
  const module = decodeModule(bytes);
  const valid = validateModule(module, featureSet());
  const used = heapUsed() - before;
  assert.ok(valid.bytes === bytes);
  return used;
}

for (const [name, most] of Object.entries(BYTES)) {
  Deno.test(`${name} take at most ${most} bytes of heap each`, () => {
    const { make } = FAMILIES.find((family) => family.name === name)!;
    heapOf(make(100));
    // The least of three: the host compiles and collects meanwhile.
    const each = Math.min(...[0, 1, 2].map(() => heapOf(make(COUNT)))) / COUNT;
    assert.ok(each <= most, `${each.toFixed(1)} bytes`);
  });
}
