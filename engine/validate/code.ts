/**
 * Validation of function bodies (specification, 3.4 and the appendix "Validation Algorithm"). In: a ValidModule whose
 * bodies may not have been validated, and a function index. Out: an error for an invalid body, and the types of the
 * operands of casts. Simple rows are checked here by signature columns without a case per opcode; the
 * most frequent special rows (locals) inline; all others by their rule (special.ts).
 *
 * One pass, no recursion, no allocation per instruction.
 */
import { Bug, MalformedError } from "../base/errors.ts";
import { idOf, NATURAL_ALIGN, OPCODES } from "../wasm/opcodes.ts";
import { I32, isDefaultable, isRef, V128 } from "../wasm/types.ts";
import { CHECK, CHECKS, FEATURES, OPERANDS, RESULT, SECOND, THIRD, TOP } from "./columns.ts";
import { applySimple } from "./simple.ts";
import { SPECIAL_RULES } from "./special.ts";
import type { ValidModule } from "./valid_module.ts";
import { acquireWalker, type CastOperands, releaseWalker, type Walker } from "./walker.ts";

const LOCAL_GET = idOf("local.get");
const LOCAL_SET = idOf("local.set");
const LOCAL_TEE = idOf("local.tee");
const END = idOf("end");

/**
 * Validates the body of function `funcIndex`, which the module must define, and records the
 * types of the operands of casts in `casts`. Throws MalformedError, InvalidError or UnsupportedError with the offset of
 * the offending instruction.
 */
export function validateBody(valid: ValidModule, funcIndex: number, casts: CastOperands | null = null): void {
  const func = valid.funcs[funcIndex - valid.importedFuncCount];
  if (func === undefined) throw new Bug(`Function ${funcIndex} has no body`);
  const type = valid.funcTypes[funcIndex];
  const walker = acquireWalker();
  try {
    walker.begin(valid, func.body, funcIndex);
    walker.casts = casts;
    const locals = type.params.slice();
    walker.reader.locals(locals);
    walker.locals = locals;
    checkLocals(walker, type.params.length);
    walker.beginExpression(type.results);
    walk(walker);
    if (!walker.reader.done) {
      throw new MalformedError("section size mismatch: instructions after the function's last end", {
        offset: walker.reader.offset,
      });
    }
  } finally {
    releaseWalker(walker);
  }
}

/** Checks the types of declared locals, and starts tracking those without a default value. */
function checkLocals(walker: Walker, paramCount: number): void {
  const locals = walker.locals;
  let last = I32;
  for (let i = paramCount; i < locals.length; i++) {
    const type = locals[i];
    if (type !== last && (type === V128 || isRef(type))) walker.useType(type);
    last = type;
    if (!isDefaultable(type) && !walker.tracksInit) {
      walker.tracksInit = true;
      if (walker.isSet.length < locals.length) walker.isSet = new Uint8Array(locals.length);
      walker.isSet.fill(1, 0, locals.length);
    }
    if (!isDefaultable(type)) walker.isSet[i] = 0;
  }
}

/** Walks the instructions up to the end of the outermost frame. */
function walk(walker: Walker): void {
  const { reader, imm, locals, tracksInit, valid } = walker;
  const { firstUse } = valid.gate;
  const localCount = locals.length;
  const memory0Is32 = valid.memoryTypes.length > 0 && valid.memoryTypes[0].limits.address === I32;
  // Columns and the operand stack in local variables. The walker's `stack`, `top` and `base` are current only during
  // special rules.
  const operands = OPERANDS;
  const tops = TOP;
  const seconds = SECOND;
  const thirds = THIRD;
  const results = RESULT;
  const checks = CHECKS;
  const features = FEATURES;
  const naturalAlign = NATURAL_ALIGN;
  const rules = SPECIAL_RULES;
  let stack = walker.stack;
  let top = walker.top;
  let base = walker.base;
  for (;;) {
    const id = reader.next();
    const at = reader.at;
    const feature = features[id];
    if (at < firstUse[feature]) valid.gate.use(feature, at, OPCODES[id].mnemonic);
    const count = operands[id];
    if (count >= 0) {
      const check = checks[id];
      const isPlain = check === 0 ||
        (check === CHECK.MEMARG && memory0Is32 && imm.memory === 0 && imm.align <= naturalAlign[id] &&
          imm.offsetHi === 0);
      if (
        isPlain && top - base >= count &&
        (count === 0 || (stack[top - 1] === tops[id] &&
          (count === 1 || (stack[top - 2] === seconds[id] && (count === 2 || stack[top - 3] === thirds[id])))))
      ) {
        top -= count;
        const result = results[id];
        if (result !== 0) stack[top++] = result;
      } else {
        walker.id = id;
        walker.at = at;
        walker.top = top;
        applySimple(walker);
        top = walker.top;
      }
      continue;
    }
    if (!tracksInit && imm.index < localCount) {
      if (id === LOCAL_GET) {
        stack[top++] = locals[imm.index];
        continue;
      }
      if ((id === LOCAL_SET || id === LOCAL_TEE) && top > base && stack[top - 1] === locals[imm.index]) {
        if (id === LOCAL_SET) top--;
        continue;
      }
    }
    walker.id = id;
    walker.at = at;
    walker.top = top;
    rules[id](walker);
    if (id === END && walker.depth === 0) return;
    stack = walker.stack;
    top = walker.top;
    base = walker.base;
  }
}
