/**
 * All passes over random functions: every pass keeps the invariants and the observable behaviour, with any set of
 * optimizations.
 */
import { Statistics } from "../base/statistics.ts";
import { noneBut } from "../testing/optimizations.ts";
import type { OptimizationSet } from "../settings/optimizations.ts";
import { equal, ok } from "node:assert/strict";
import type { IrFunction } from "../ir/function.ts";
import { printFunction } from "../ir/print.ts";
import { verifyFunction } from "../ir/verify.ts";
import { type AfterPass, optimize } from "./passes.ts";
import { observe } from "./testing/model_machine.ts";
import { ProgramMaker, randomNumbers } from "./testing/random_functions.ts";

/** Keys that must apply to some of the random functions. */
const REACHED = ["simplify", "store-forward", "bounds-facts", "multi-bounds-cert", "v128-const-cache"];
/**
 * Keys that the random functions rarely or never trigger: they have few counted loops and few values with one use. The
 * tests of these passes make functions of their own.
 */
const NOT_REACHED = ["loop-precheck", "assoc-tree", "tree-order"];
const KEYS = [...REACHED, ...NOT_REACHED];
const SEEDS = Number(Deno.env.get("WAFT_SEEDS") ?? 150);
const FIRST = Number(Deno.env.get("WAFT_FIRST_SEED") ?? 1);

function argumentsFor(seed: number, n: number): [number, number][] {
  const random = randomNumbers(seed * 31 + n);
  const words = [0, 1, 2, -1, 255, 0x7fffffff, -0x80000000, 1000];
  const args: [number, number][] = [];
  for (let k = 0; k < 7; k++) {
    args.push(
      n === 0 ? [k, 0] : [words[random(words.length)] + random(3), random(2) ? 0 : random(2) ? -1 : 0x40080000],
    );
  }
  return args;
}

function check(
  seed: number,
  explicit: boolean,
  selection: OptimizationSet,
  statistics: Statistics,
): number {
  const make = () => new ProgramMaker(seed, 12 + (seed % 60), explicit).make();
  const before = make();
  verifyFunction(before);
  const runs = [0, 1, 2, 3].map((n) => observe(before, argumentsFor(seed, n), explicit));
  const f = make();
  let last = printFunction(f);
  const afterPass: AfterPass = (pass, g: IrFunction) => {
    const text = printFunction(g);
    try {
      verifyFunction(g);
      runs.forEach((run, n) => equal(observe(g, argumentsFor(seed, n), explicit).seen, run.seen));
    } catch (error) {
      throw new Error(
        `seed ${seed}${explicit ? " explicit" : ""}, after ${pass}: ${
          (error as Error).message
        }\nbefore:\n${last}\nafter:\n${text}`,
      );
    }
    last = text;
  };
  optimize(f, selection, statistics, afterPass);
  return runs.reduce((sum, run, n) => sum + observe(f, argumentsFor(seed, n), explicit).steps / run.steps, 0) /
    runs.length;
}

Deno.test("random functions mean the same after every pass", () => {
  const all = noneBut(Object.fromEntries(KEYS.map((key) => [key, true])));
  const statistics = new Statistics();
  let ratio = 0;
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) ratio += check(seed, seed % 2 === 0, all, statistics);
  ok(ratio / SEEDS < 0.8, `instructions executed fell only to ${ratio / SEEDS}`);
  if (SEEDS >= 100) {
    for (const key of REACHED) {
      ok(statistics.of(key) > 0, `${key} never applied: extend testing/random_functions.ts, or test it by itself`);
    }
  }
});

Deno.test("random functions mean the same with each optimization off alone, and with all off", () => {
  for (let seed = FIRST; seed < FIRST + SEEDS / 5; seed++) {
    check(seed, seed % 2 === 0, noneBut({}), new Statistics());
    for (const key of KEYS) {
      const selection = noneBut(Object.fromEntries(KEYS.map((other) => [other, other !== key])));
      const statistics = new Statistics();
      check(seed, true, selection, statistics);
      equal(statistics.of(key), 0);
    }
  }
});
