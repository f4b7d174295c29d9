/**
 * Guaranteed use of one feature: the first statement of a function that every run calls. In: the state of a body and a
 * feature. Out: a statement that uses the feature, usually without trapping first.
 */
import { isReference, type TypeName } from "../value_types.ts";
import { atomicStatement } from "./atomics.ts";
import type { Body } from "./body.ts";
import { tailCall } from "./calls.ts";
import { exceptionStatement } from "./exceptions.ts";
import { store } from "./memories.ts";
import { OP } from "./opcodes.ts";
import { nullBranch } from "./references.ts";
import { sizeOrGrowth, tableSizeOrGrowth } from "./tables.ts";
import { vector } from "./vectors.ts";
import { consume } from "./values.ts";
import { wideStatement } from "./wide.ts";

/** Writes the statement; it leaves the stack unchanged. */
export function forceFeature(b: Body, feature: string): void {
  const drop = (type: TypeName) => consume(b, [type]);
  switch (feature) {
    case "simd":
      for (let i = b.random.between(2, 8); i > 0; i--) { // several, since there are 280 vector instructions
        vector(b, 3);
        drop("v128");
      }
      return;
    case "exception-handling":
      return exceptionStatement(b, 2);
    case "gc":
      b.construct("(ref any)", 2);
      return drop("(ref any)");
    case "typed-function-references":
      if (b.plan.types.some((type) => isReference(type))) return nullBranch(b, 1);
      return;
    case "tail-call":
      b.impure++;
      b.expression("i32", 1);
      b.out.byte(OP.if).byte(0x40);
      b.labels.push({ types: [] });
      tailCall(b, 1);
      b.labels.pop();
      b.out.byte(OP.end);
      return;
    case "memory64":
      return store(b, 1, b.memory((m) => m.is64));
    case "multi-memory":
      return store(b, 1, b.plan.memories.length - 1);
    case "table64":
      tableSizeOrGrowth(b, b.plan.tables.findIndex((t) => t.is64), 1);
      return drop("i64");
    case "threads":
      return atomicStatement(b, 1);
    case "wide-arithmetic":
      for (let i = b.random.between(2, 6); i > 0; i--) wideStatement(b, 3);
      return;
    case "acquire-release-atomics":
      for (let i = b.random.between(2, 6); i > 0; i--) atomicStatement(b, 2);
      return;
    case "custom-page-sizes": {
      const memory = b.memory((m) => m.bytePages === true)!;
      for (let i = b.random.between(1, 4); i > 0; i--) store(b, 2, memory);
      sizeOrGrowth(b, memory);
      return drop(b.addressType(memory));
    }
  }
}
