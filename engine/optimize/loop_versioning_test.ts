/**
 * Versioned loops: the same results, traps and memory for all starts, ends and steps; and which loops are versioned.
 */
import { Statistics } from "../base/statistics.ts";
import { equal, ok } from "node:assert/strict";
import { parseFunction } from "../ir/parse.ts";
import { verifyFunction } from "../ir/verify.ts";
import { optimize } from "./passes.ts";
import { MEMORY_BYTES, observe } from "./testing/model_machine.ts";
import { randomNumbers } from "./testing/random_functions.ts";
import { ALL } from "./testing/golden_text.ts";

interface Shape {
  type: "i32" | "i64";
  compare: string;
  step: number;
  /** Whether the test is at the top, followed by the accesses. */
  top: boolean;
  /** Distance of the first address from the index, and factor of the index in the last one. */
  before: number;
  scale: number;
  /** The conversion of an index of 32 bits to an address of 64. */
  extend?: "EXTEND_S" | "EXTEND_U";
}

/**
 * A loop from v1 to v2 by `step`, which writes at v3 + index × scale, and reads before that at index + before and index
 * + 8.
 */
function loopText({ type, compare, step, top, before, scale, extend }: Shape): string {
  const extended = extend !== undefined;
  const wide = extended ? "i64" : type, index = extended ? "v41" : "v4";
  // An extended index counts from v3 everywhere.
  const prologue = extended ? `v40:i64 = ${extend} v4\n       v41:i64 = ADD v3 v40` : "";
  const access = `
       ${prologue}
       v20:${wide} = CONST ${before}
       v21:${wide} = ADD ${index} v20
       BOUNDS memory0[v21] 1
       v22:i32 = LOAD8_U memory0[v21]
       BOUNDS memory0[${index}+8] 2
       v23:i32 = LOAD16_U memory0[${index}+8]
       v24:i32 = ADD v22 v23
       v25:i32 = ADD v24 v5
       v26:${wide} = CONST ${scale}
       v27:${wide} = MUL ${index} v26
       v28:${wide} = ADD ${extended ? "v41 v26" : "v3 v27"}
       BOUNDS memory0[v28+3] 1
       STORE8 memory0[v28+3] v25
       v29:${type} = CONST ${step}
       v30:${type} = ADD v4 v29`;
  const head = `func 0 (${type} ${type} ${wide}) -> (i32 ${type})
     b0(v1:${type} v2:${type} v3:${wide}):
       v6:i32 = CONST 0
       JUMP b1(v1 v6)
     b1(v4:${type} v5:i32) loop depth=1:`;
  return top
    ? `${head}
       v7:i32 = ${compare} v4 v2
       BRANCH v7 b2() b3()
     b2() depth=1:${access}
       JUMP b1(v30 v25)
     b3():
       RETURN (v5 v4)`
    : `${head}${access}
       v7:i32 = ${compare} v30 v2
       BRANCH v7 b1(v30 v25) b2()
     b2():
       RETURN (v25 v30)`;
}

function words(type: string, n: number): [number, number] {
  return [n | 0, type === "i32" ? 0 : Math.floor(n / 2 ** 32) | 0];
}

const END = MEMORY_BYTES;
/** Runs of each loop. */
const RUNS = 40;
/** Starts and ends: around 0, around the memory's end, around the limits of 32 and 64 bits. */
const PLACES = [
  0,
  1,
  7,
  40,
  END - 40,
  END - 17,
  END - 16,
  END,
  -1,
  -16,
  -17,
  2 ** 31 - 1,
  -(2 ** 31),
  2 ** 32 - 20,
];

Deno.test("a versioned loop behaves as the original, for all starts and ends", () => {
  let faster = 0, combinations = 0, shapes = 0, runs = 0, removed = 0;
  const random = randomNumbers(1);
  const all = ["NE", "LT_S", "LT_U", "GT_S", "GT_U", "LE_S", "LE_U", "GE_S", "GE_U"];
  const kinds = [{ type: "i32" }, { type: "i64" }, { type: "i32", extend: "EXTEND_S" }, {
    type: "i32",
    extend: "EXTEND_U",
  }] as const;
  for (const kind of kinds) {
    for (const compare of all) {
      for (const step of [1, -1, 4, -8, 3]) {
        // Two thirds of the many combinations suffice.
        if (++combinations % 3 === 0) continue;
        for (const top of [true, false]) {
          const text = loopText({
            ...kind,
            compare,
            step,
            top,
            before: 16 * (shapes % 3 - 1),
            scale: shapes++ % 7 - 3,
          });
          const before = parseFunction(text), after = parseFunction(text);
          const statistics = new Statistics();
          optimize(after, ALL, statistics, (pass, f) => verifyFunction(f, pass));
          removed += statistics.of("loop-precheck");
          for (let n = 0; n < RUNS; n++) {
            const from = PLACES[random(PLACES.length)], to = PLACES[random(PLACES.length)] + random(3) - 1;
            // A sum in bounds may have an index out of range.
            const base = "extend" in kind ? [0, -(2 ** 32), -(2 ** 31), 2 ** 31][random(4)] + random(END) : random(END);
            runs++;
            const args = [from, to, base].map((n, k) => words(k === 2 && "extend" in kind ? "i64" : kind.type, n));
            const [old, now] = [observe(before, args, true), observe(after, args, true)];
            equal(now.seen, old.seen, `${text}\nfrom ${from} to ${to}`);
            if (now.steps < old.steps - 40) faster++;
          }
        }
      }
    }
  }
  ok(removed > 130, `${removed} checks removed`);
  ok(faster > 20, `${faster} of ${runs} runs`);
});

function removedFrom(text: string): number {
  const f = parseFunction(text);
  const statistics = new Statistics();
  optimize(f, ALL, statistics, (pass, g) => verifyFunction(g, pass));
  return statistics.of("loop-precheck");
}

const COUNTED = loopText({ type: "i32", compare: "NE", step: 1, top: false, before: 16, scale: 4 });

Deno.test("which loops are versioned", () => {
  equal(removedFrom(COUNTED), 3);
  // Steps other than powers of two may miss the end, and this index may take any value.
  equal(removedFrom(COUNTED.replace("v29:i32 = CONST 1", "v29:i32 = CONST 3")), 0);
  equal(removedFrom(COUNTED.replace("ADD v4 v29", "AND v4 v29")), 0);
  // The other parameters of the loop do not matter.
  equal(removedFrom(COUNTED.replace("b1(v30 v25)", "b1(v30 v5)")), 3);
  // Few rounds do not pay; many do.
  equal(removedFrom(COUNTED.replace("b1(v1 v6)", "b1(v6 v6)").replace("NE v30 v2", "NE v30 v20")), 3);
  const few = COUNTED.replace("b1(v1 v6)", "b1(v6 v6)").replace(
    "v7:i32 = NE v30 v2",
    "v31:i32 = CONST 4\n v7:i32 = NE v30 v31",
  );
  equal(removedFrom(few), 0);
});
