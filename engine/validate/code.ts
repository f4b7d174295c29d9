/**
 * Validation of function bodies (specification, 3.4 and the appendix "Validation Algorithm"). In: a ValidModule whose
 * bodies may not have been validated, and a function index. Out: calls of the visitor for every instruction in order,
 * each after it has been found valid. Simple rows are checked here by signature columns without a case per opcode; the
 * most frequent special rows (locals) inline; all others by their rule (special.ts).
 *
 * One pass, no recursion, no allocation per instruction. A visitor may call validateBody for another function from any
 * of its callbacks: each walk has its own walker.
 */
import { Bug, MalformedError } from "../base/errors.ts";
import { idOf, type Mnemonic, NATURAL_ALIGN, opcodeColumn, OPCODES } from "../wasm/opcodes.ts";
import { I32, isDefaultable, isRef, V128 } from "../wasm/types.ts";
import { CHECK, CHECKS, FEATURES, OPERANDS, RESULT, SECOND, THIRD, TOP } from "./columns.ts";
import { applySimple } from "./simple.ts";
import { SPECIAL_RULES } from "./special.ts";
import type { ValidModule } from "./valid_module.ts";
import { type CodeVisitor, FRAME } from "./visitor.ts";
import { acquireWalker, releaseWalker, type Walker } from "./walker.ts";

const LOCAL_GET = idOf("local.get");
const LOCAL_SET = idOf("local.set");
const LOCAL_TEE = idOf("local.tee");
const END = idOf("end");

/** The visitor's method for a special row. */
const REPORT = { PLAIN: 0, ENTER: 1, OTHERWISE: 2, HANDLER: 3, CATCH_ALL: 4, END: 5, DELEGATE: 6 } as const;

const REPORTS: Readonly<Partial<Record<Mnemonic, number>>> = {
  "block": REPORT.ENTER,
  "loop": REPORT.ENTER,
  "if": REPORT.ENTER,
  "try_table": REPORT.ENTER,
  "try": REPORT.ENTER,
  "else": REPORT.OTHERWISE,
  "catch": REPORT.HANDLER,
  "catch_all": REPORT.CATCH_ALL,
  "end": REPORT.END,
  "delegate": REPORT.DELEGATE,
};
const REPORT_BY_ID: Uint8Array = opcodeColumn(Uint8Array, (row) => REPORTS[row.mnemonic as Mnemonic] ?? REPORT.PLAIN);

const FRAMES: Readonly<Partial<Record<Mnemonic, number>>> = {
  "block": FRAME.BLOCK,
  "loop": FRAME.LOOP,
  "if": FRAME.IF,
  "try_table": FRAME.TRY_TABLE,
  "try": FRAME.TRY,
};
const FRAME_BY_ID: Uint8Array = opcodeColumn(Uint8Array, (row) => FRAMES[row.mnemonic as Mnemonic] ?? 0);

/**
 * Validates the body of function `funcIndex`, which the module must define, and reports it to `visitor`. Throws
 * MalformedError, InvalidError or UnsupportedError with the offset of the offending instruction.
 */
export function validateBody(valid: ValidModule, funcIndex: number, visitor: CodeVisitor | null): void {
  const func = valid.funcs[funcIndex - valid.importedFuncCount];
  if (func === undefined) throw new Bug(`Function ${funcIndex} has no body`);
  const type = valid.funcTypes[funcIndex];
  const walker = acquireWalker();
  try {
    walker.begin(valid, func.body, funcIndex);
    const locals = type.params.slice();
    walker.reader.locals(locals);
    walker.locals = locals;
    checkLocals(walker, type.params.length);
    walker.beginExpression(type.results);
    if (visitor !== null) visitor.begin(funcIndex, type.params.length, type.results.length, locals);
    walk(walker, visitor);
    if (!walker.reader.done) {
      throw new MalformedError("section size mismatch: instructions after the function's last end", {
        offset: walker.reader.offset,
      });
    }
    if (visitor !== null) visitor.finish();
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
function walk(walker: Walker, visitor: CodeVisitor | null): void {
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
      if (visitor !== null) visitor.instruction(id, imm, at);
      continue;
    }
    if (!tracksInit && imm.index < localCount) {
      if (id === LOCAL_GET) {
        stack[top++] = locals[imm.index];
        if (visitor !== null) visitor.instruction(id, imm, at);
        continue;
      }
      if ((id === LOCAL_SET || id === LOCAL_TEE) && top > base && stack[top - 1] === locals[imm.index]) {
        if (id === LOCAL_SET) top--;
        if (visitor !== null) visitor.instruction(id, imm, at);
        continue;
      }
    }
    walker.id = id;
    walker.at = at;
    walker.top = top;
    rules[id](walker);
    if (visitor !== null) report(walker, visitor);
    if (id === END && walker.depth === 0) return;
    stack = walker.stack;
    top = walker.top;
    base = walker.base;
  }
}

/** Reports the current special instruction to the visitor. */
function report(walker: Walker, visitor: CodeVisitor): void {
  const { id, imm, at } = walker;
  switch (REPORT_BY_ID[id]) {
    case REPORT.PLAIN:
      visitor.instruction(id, imm, at);
      break;
    case REPORT.ENTER: {
      const frame = walker.depth - 1;
      visitor.enter(FRAME_BY_ID[id], walker.params[frame].length, walker.results[frame].length, imm, at);
      break;
    }
    case REPORT.OTHERWISE:
      visitor.otherwise(at);
      break;
    case REPORT.HANDLER:
      visitor.handler(imm.index, at);
      break;
    case REPORT.CATCH_ALL:
      visitor.handler(-1, at);
      break;
    case REPORT.END:
      visitor.end(at, -1);
      break;
    case REPORT.DELEGATE:
      visitor.end(at, imm.index);
      break;
  }
}
