/** Reassociation: chains of associative operations, and the order of operands. */
import { Statistics } from "../base/statistics.ts";
import { equal, ok } from "node:assert/strict";
import { parseFunction } from "../ir/parse.ts";
import { verifyFunction } from "../ir/verify.ts";
import { optimize } from "./passes.ts";
import { observe } from "./testing/model_machine.ts";
import { randomNumbers } from "./testing/random_functions.ts";
import { ALL, becomes, optimizeText } from "./testing/golden_text.ts";

const CHAINS = { ...ALL, "assoc-tree": true };
const ORDER = { ...ALL, "tree-order": true };

const BALANCED = `func 0 (i32 i32 i32 i32) -> (i32)
  sig 0 () -> (i32 i32)
  b0(v1:i32 v2:i32 v3:i32 v4:i32):
    v5:i32 = MUL v1 v2
    v6:i32 = XOR v3 v5
    v7:i32 = MUL v3 v4
    v8:i32 = LOAD memory0[v4]
    v9:i32 = XOR v7 v8
    v10:i32 = XOR v6 v9
    RETURN (v10)`;

Deno.test("a tree of one operation becomes a chain in the order of its leaves", () => {
  becomes(
    BALANCED,
    `b0(v1:i32 v2:i32 v3:i32 v4:i32):
       v5:i32 = MUL v1 v2
       v6:i32 = XOR v3 v5
       v7:i32 = MUL v3 v4
       v9:i32 = XOR v6 v7
       v8:i32 = LOAD memory0[v4]
       v10:i32 = XOR v9 v8
       RETURN (v10)`,
    CHAINS,
  );
});

Deno.test("results of a call stay together, and constants come last", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     sig 0 () -> (i32 i32)
     b0(v1:i32 v2:i32):
       v3:none = CALL f0() sig0
       v4:i32 = RESULT v3 0
       v5:i32 = RESULT v3 1
       v6:i32 = AND v4 v1
       v7:i32 = OR v5 v2
       v8:i32 = AND v7 v2
       v9:i32 = AND v6 v8
       RETURN (v9)`,
    `b0(v1:i32 v2:i32):
       v3:none = CALL f0() sig0
       v4:i32 = RESULT v3 0
       v5:i32 = RESULT v3 1
       v6:i32 = AND v1 v2
       v8:i32 = AND v6 v4
       v7:i32 = OR v2 v5
       v9:i32 = AND v8 v7
       RETURN (v9)`,
    CHAINS,
  );
});

Deno.test("a value with another use is a leaf, and other shapes stay", () => {
  for (
    const text of [
      BALANCED.replace("RETURN (v10)", "STORE memory0[v1] v9\n RETURN (v10)"),
      BALANCED.replaceAll("XOR", "SUB"),
    ]
  ) {
    equal(optimizeText(text, CHAINS), optimizeText(text, ALL));
  }
});

const SECOND_NEEDS_MORE = `func 0 (i32 i32 i32 i32) -> (i32)
  b0(v1:i32 v2:i32 v3:i32 v4:i32):
    v5:i32 = SUB v1 v2
    v6:i32 = SUB v2 v3
    v7:i32 = SUB v3 v4
    v8:i32 = XOR v6 v7
    v9:i32 = SUB v5 v8
    RETURN (v9)`;

Deno.test("the operand that needs more registers is computed first", () => {
  becomes(
    SECOND_NEEDS_MORE,
    `b0(v1:i32 v2:i32 v3:i32 v4:i32):
       v6:i32 = SUB v2 v3
       v7:i32 = SUB v3 v4
       v8:i32 = XOR v6 v7
       v5:i32 = SUB v1 v2
       v9:i32 = SUB v5 v8
       RETURN (v9)`,
    ORDER,
  );
});

Deno.test("an operand that needs more registers stays behind the results of a call", () => {
  const text = `func 0 (i32 i32 i32) -> (i32)
    sig 0 () -> (i32 i32)
    b0(v1:i32 v2:i32 v3:i32):
      v4:none = CALL f0() sig0
      v5:i32 = RESULT v4 1
      v6:i32 = SUB v1 v2
      v7:i32 = SUB v2 v3
      v8:i32 = XOR v6 v7
      v9:i32 = SUB v5 v8
      RETURN (v9)`;
  equal(optimizeText(text, ORDER), optimizeText(text, ALL));
});

Deno.test("nothing moves across operations that are not pure", () => {
  const text = SECOND_NEEDS_MORE.replace("v7:i32 = SUB v3 v4", "v7:i32 = LOAD memory0[v3]");
  equal(optimizeText(text, ORDER), optimizeText(text, ALL));
});

/**
 * A function of random trees: operands are mostly values without a use yet, with loads, stores and calls in between.
 */
function randomTrees(seed: number): string {
  const random = randomNumbers(seed);
  const lines: string[] = [];
  const fresh: number[] = [];
  let next = 5;
  // Operands from a stack, as in translated code, or any value in scope.
  const operand = () => fresh.length > 0 && random(5) > 1 ? fresh.pop()! : 1 + random(random(4) === 0 ? next - 1 : 4);
  const operations = random(2) === 0 ? ["ADD", "ADD", "XOR"] : ["MUL", "AND", "OR", "SUB", "XOR"];
  while (next < 60) {
    const kind = random(20);
    if (kind < 2) lines.push(`v${next}:i32 = CONST ${random(9)}`);
    else if (kind < 4) lines.push(`v${next}:i32 = LOAD memory0[${random(2) === 0 ? "v1" : "v2"}]`);
    else if (kind === 4) lines.push(`v${next}:i32 = CALL f0(v${operand()}) sig0`);
    else if (kind === 5) {
      lines.push(`STORE memory0[v1+8] v${operand()}`);
      continue;
    } else {
      const second = operand();
      lines.push(`v${next}:i32 = ${operations[random(operations.length)]} v${operand()} v${second}`);
    }
    fresh.push(next++);
  }
  const results = [next - 1, operand(), operand(), operand()];
  return `func 0 (i32 i32 i32 i32) -> (i32 i32 i32 i32)
    sig 0 (i32) -> (i32)
    b0(v1:i32 v2:i32 v3:i32 v4:i32):
      ${lines.join("\n      ")}
      RETURN (${results.map((v) => `v${v}`).join(" ")})`;
}

Deno.test("random trees give the same values in another shape and order", () => {
  const statistics = new Statistics();
  for (let seed = 1; seed <= 500; seed++) {
    const text = randomTrees(seed);
    const before = parseFunction(text), after = parseFunction(text);
    optimize(after, { ...CHAINS, "tree-order": true }, statistics, (pass, f) => verifyFunction(f, pass));
    const args: [number, number][] = [16, 24, seed * 77777, -seed].map((n) => [n, 0]);
    equal(observe(after, args, false).seen, observe(before, args, false).seen, text);
  }
  ok(statistics.of("assoc-tree") > 50 && statistics.of("tree-order") > 5, JSON.stringify(statistics.snapshot()));
});
