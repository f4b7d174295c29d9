/**
 * The quick validation of constant expressions accepts the same expressions as the rules of instructions, with the same
 * uses of features and the same declared functions, and leaves errors to them.
 */
import assert from "node:assert/strict";
import { type FeatureSet, featureSet } from "../settings/features.ts";
import { emptyModule, type Expr, type Module } from "../wasm/module.ts";
import { F64, FUNCREF, HEAP, I32, I64, refType, V128, type ValType } from "../wasm/types.ts";
import { validateConstant } from "./constant_rules.ts";
import { validateConstExpr } from "./constants.ts";
import { validateModule } from "./module.ts";
import type { ValidModule } from "./valid_module.ts";

const OFFSET = 100;

/** Two imported globals, one of them mutable, two globals of its own, two functions. */
function moduleOf(features: FeatureSet): ValidModule {
  const module: Module = {
    ...emptyModule(new Uint8Array(0)),
    types: [{ final: true, supertypes: [], composite: { kind: "func", params: [], results: [] } }],
    recGroups: [{ start: 0, count: 1 }],
    imports: [
      { module: "m", name: "a", desc: { kind: "global", type: { type: I32, mutable: false } }, offset: 0 },
      { module: "m", name: "b", desc: { kind: "global", type: { type: I32, mutable: true } }, offset: 0 },
      { module: "m", name: "f", desc: { kind: "func", typeIndex: 0 }, offset: 0 },
    ],
    globals: [{ type: { type: I64, mutable: false }, init: { bytes: Uint8Array.of(0x42, 0, 0x0b), offset: 0 } }],
  };
  return validateModule(module, features);
}

/** The result of validating `expr`: the error, or the uses of features and the declared functions. */
function outcome(features: FeatureSet, expr: Expr, type: ValType, validate: typeof validateConstant): unknown {
  const valid = moduleOf(features);
  try {
    validate(valid, expr, type, 3);
  } catch (error) {
    return String(error);
  }
  return { used: [...valid.usedFeatures].sort(), declared: [...valid.declaredFuncs] };
}

/** Instructions, some of them not constant or with indices out of range. */
const INSTRUCTIONS: readonly (readonly number[])[] = [
  [0x41, 0x05],
  [0x41, 0x80, 0x7f],
  [0x42, 0x05],
  [0x43, 0, 0, 0, 0],
  [0x44, 0, 0, 0, 0, 0, 0, 0, 0],
  [0xfd, 0x0c, ...new Array(16).fill(1)],
  [0xfd, 0x8c, 0x00, ...new Array(16).fill(1)],
  [0xfd, 0x0f],
  [0x23, 0],
  [0x23, 1],
  [0x23, 2],
  [0x23, 3],
  [0xd0, 0x70],
  [0xd0, 0x6f],
  [0xd0, 0x6e],
  [0xd0, 0x00],
  [0xd0, 0x01],
  [0xd2, 0],
  [0xd2, 1],
  [0x6a],
  [0x6b],
  [0x6c],
  [0x7c],
  [0x7e],
  [0x45],
  [0x01],
  [0xfb, 0x1c],
  [0x0b],
];

const TYPES: readonly ValType[] = [I32, I64, F64, V128, FUNCREF, refType(false, HEAP.func), refType(true, 0)];

/** The empty sequence, all of one and two instructions, and a third of those that end in an addition. */
function expressions(): number[][] {
  const ones = INSTRUCTIONS.map((bytes) => [...bytes]);
  const pairs = ones.flatMap((first) => ones.map((second) => [...first, ...second]));
  const triples = pairs.filter((_, k) => k % 3 === 0).map((pair) => [...pair, 0x6a]);
  return [[], ...ones, ...pairs, ...triples].map((bytes) => [...bytes, 0x0b]);
}

const SWITCHED_OFF = ["reference-types", "extended-const-expressions", "simd", "gc"] as const;

for (const off of [undefined, ...SWITCHED_OFF]) {
  Deno.test(`constant expressions are decided as by the rules of instructions, ${off ?? "no feature"} switched off`, () => {
    const features: FeatureSet = featureSet(off === undefined ? {} : { [off]: false });
    let accepted = 0;
    for (const bytes of expressions()) {
      for (const type of TYPES) {
        const expr: Expr = { bytes: Uint8Array.from(bytes), offset: OFFSET };
        const expected = outcome(features, expr, type, validateConstant);
        assert.deepEqual(outcome(features, expr, type, validateConstExpr), expected, `${bytes} of type ${type}`);
        if (typeof expected === "object") accepted++;
      }
    }
    assert.ok(accepted > 10, `${accepted} accepted`);
  });
}
