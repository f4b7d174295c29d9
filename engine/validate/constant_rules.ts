/**
 * Constant expressions (specification, 3.4.14): the initial values of globals, tables and elements, and the offsets of
 * segments. The rules are those of bodies (simple.ts, special.ts), restricted to constant instructions. Expressions of
 * the usual instructions are accepted without this file (constants.ts).
 */
import { InvalidError, MalformedError } from "../base/errors.ts";
import type { FeatureName } from "../settings/features.ts";
import type { Expr } from "../wasm/module.ts";
import { idOf, IS_SIMPLE, type Mnemonic, OPCODES } from "../wasm/opcodes.ts";
import type { ValType } from "../wasm/types.ts";
import { FEATURES } from "./columns.ts";
import { FEATURE, featureNumber } from "./gate.ts";
import { applySimple } from "./simple.ts";
import { SPECIAL_RULES } from "./special.ts";
import type { ValidModule } from "./valid_module.ts";
import { acquireWalker, releaseWalker } from "./walker.ts";

/** Constant instructions, by the feature that made them constant; the row's own feature is required too. */
const CONSTANT: readonly (readonly [FeatureName | "mvp", readonly Mnemonic[]])[] = [
  ["mvp", ["i32.const", "i64.const", "f32.const", "f64.const", "v128.const", "global.get", "ref.null", "ref.func"]],
  ["extended-const-expressions", ["i32.add", "i32.sub", "i32.mul", "i64.add", "i64.sub", "i64.mul"]],
  ["gc", ["ref.i31", "struct.new", "struct.new_default", "array.new", "array.new_default", "array.new_fixed"]],
  ["gc", ["any.convert_extern", "extern.convert_any"]],
  ["custom-descriptors", ["struct.new_desc", "struct.new_default_desc"]],
];

const END = idOf("end");
const NOT_CONSTANT = 255;

/** By id: number of the feature that made the instruction constant, or NOT_CONSTANT. */
const CONSTANT_SINCE: Uint8Array = constantSince();

function constantSince(): Uint8Array {
  const since = new Uint8Array(OPCODES.length).fill(NOT_CONSTANT);
  for (const [feature, mnemonics] of CONSTANT) {
    for (const mnemonic of mnemonics) since[idOf(mnemonic)] = featureNumber(feature);
  }
  since[END] = 0;
  return since;
}

/** Validates `expr` as constant and of type `type`; globals from `visibleGlobals` on are not visible. */
export function validateConstant(valid: ValidModule, expr: Expr, type: ValType, visibleGlobals: number): void {
  const walker = acquireWalker();
  const { gate } = valid;
  try {
    walker.begin(valid, expr, -1);
    walker.visibleGlobals = visibleGlobals;
    walker.locals = [];
    walker.beginExpression([type]);
    const reader = walker.reader;
    while (walker.depth > 0) {
      const id = walker.id = reader.next();
      const at = walker.at = reader.at;
      const since = CONSTANT_SINCE[id];
      if (since === NOT_CONSTANT) {
        const message = `constant expression required: ${OPCODES[id].mnemonic} is not constant`;
        throw new InvalidError(message, { offset: at });
      }
      if (since === FEATURE["extended-const-expressions"]) {
        gate.use(since, at, `constant expression required: ${OPCODES[id].mnemonic} in one`);
      }
      gate.use(FEATURES[id], at, OPCODES[id].mnemonic);
      if (IS_SIMPLE[id] === 1) applySimple(walker);
      else SPECIAL_RULES[id](walker);
    }
    if (!reader.done) throw new MalformedError("END opcode expected: bytes after the end", { offset: reader.offset });
  } finally {
    releaseWalker(walker);
  }
}
