/**
 * The cost of every stage grows linearly with every count of a module: decoding, encoding, validation, printing and
 * parsing text, compilation, instantiation, artifacts, and the drop-in `WebAssembly` namespace. growth_program.ts
 * measures in a process of its own, because other test files share this one.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { hostCommand } from "../support/host_arguments.ts";
import { FAMILIES, type Family } from "./growing_modules.ts";
import { growthOf, type StageGrowth } from "./measure_growth.ts";

const PROGRAM = fileURLToPath(new URL("./growth_program.ts", import.meta.url));
const STAGES = 11;

/** Runs the measurement. */
function measured(...args: string[]): StageGrowth[] {
  const [program, first] = hostCommand(PROGRAM);
  const { status, stdout, stderr } = spawnSync(program, [...first, ...args], { encoding: "utf8", maxBuffer: 1 << 24 });
  assert.equal(status, 0, stderr);
  return stdout.trim().split("\n").map((line) => JSON.parse(line) as StageGrowth);
}

Deno.test("every stage takes linear time in every count of a module", () => {
  const rows = measured();
  assert.equal(rows.length, FAMILIES.length * STAGES);
  assert.deepEqual(rows.filter(({ linear }) => !linear), []);
});

Deno.test("the measurement finds a quadratic stage", () => {
  const [row] = measured("quadratic");
  assert.equal(row.linear, false, JSON.stringify(row));
});

Deno.test("the bound is between quadratic and linear growth", () => {
  // Counted steps in place of time.
  const counted = (action: () => unknown): number => action() as number;
  const family: Family = { name: "bytes", count: 2500, make: (n) => new Uint8Array(n) };
  assert.equal(growthOf("", (bytes) => () => bytes.length ** 2, family, counted).linear, false);
  assert.equal(growthOf("", (bytes) => () => bytes.length * Math.log2(bytes.length), family, counted).linear, true);
});
