/**
 * Continuations (proposal "stack switching"). In: cont.new, cont.bind, suspend, resume, resume_throw, resume_throw_ref
 * and switch. Out: calls of routines of the runtime, which move the frames of computations off the stack and back.
 *
 *     suspend, switch    payload to the overflow buffer, the routine; once resumed: arguments from the buffer
 *     resume             arguments and handlers to the buffer, the routine; its result is 0 if the computation has
 *                        ended, with its results in the buffer, and n if it has suspended with a tag of the nth handler
 *                        with a label, which receives the payload and the continuation from the buffer
 *
 * All of these may throw. While another computation runs, it may do anything, as a callee may.
 */
import { BUILTIN } from "../abi/builtins.ts";
import { SWITCH_HANDLERS_SHIFT, TAG_SIZE } from "../abi/context_layout.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { HandlerClause, Immediates } from "../wasm/immediates.ts";
import { OPCODES } from "../wasm/opcodes.ts";
import { callBuiltin } from "./builtin_calls.ts";
import { branch } from "./control.ts";
import { leaveDepth } from "./deterministic.ts";
import { branchOnUnwind, PAYLOAD_ENTRY, payloadBuffer } from "./exceptions.ts";
import type { Translation } from "./translation.ts";

const { I32, I64, NONE, REF } = TY;
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);

const NEW = 0;
const BIND = 1;
const SUSPEND = 2;
const RESUME = 3;
const RESUME_THROW = 4;
const RESUME_THROW_REF = 5;
const NAMES: readonly string[] = [
  "cont.new",
  "cont.bind",
  "suspend",
  "resume",
  "resume_throw",
  "resume_throw_ref",
  "switch",
];

/** The case of a row below; 0 for all others. */
const CASE: Uint8Array = new Uint8Array(OPCODES.length);
for (const { id, mnemonic } of OPCODES) CASE[id] = Math.max(0, NAMES.indexOf(mnemonic));

/** Translates an instruction of continuations. */
export function translateContinuation(t: Translation, id: number, imm: Immediates): void {
  const { b, env } = t;
  const { index, index2, handlers } = imm;
  switch (CASE[id]) {
    case NEW:
      t.push(callBuiltin(t, BUILTIN.cont_new, [t.pop(), b.i32(index)]));
      return;
    case BIND: {
      const cont = t.pop();
      const bound = paramsOf(t, index).length - paramsOf(t, index2).length;
      passValues(t, bound);
      t.push(callBuiltin(t, BUILTIN.cont_bind, [cont, b.i32(bound)]));
      return;
    }
    case SUSPEND: {
      const { params, results } = env.signatures[env.tagSignature[index]];
      passValues(t, params.length);
      callBuiltin(t, BUILTIN.suspend, [b.i32(index)]);
      branchOnUnwind(t);
      takeValues(t, results, results.length);
      return;
    }
    case RESUME: {
      const cont = t.pop();
      const count = paramsOf(t, index).length;
      passValues(t, count);
      const wanted = passHandlers(t, handlers, count);
      if (t.deterministic) leaveDepth(t, -1, false);
      dispatch(t, index, handlers, callBuiltin(t, BUILTIN.resume, [cont, b.i32(index), wanted]));
      return;
    }
    case RESUME_THROW: {
      const cont = t.pop();
      const count = env.signatures[env.tagSignature[index2]].params.length;
      passValues(t, count);
      const wanted = passHandlers(t, handlers, count);
      if (t.deterministic) leaveDepth(t, -1, false);
      const args = [cont, b.i32(index), b.i32(index2), wanted];
      dispatch(t, index, handlers, callBuiltin(t, BUILTIN.resume_throw, args));
      return;
    }
    case RESUME_THROW_REF: {
      const cont = t.pop();
      const exception = t.pop();
      const wanted = passHandlers(t, handlers, 0);
      if (t.deterministic) leaveDepth(t, -1, false);
      const args = [cont, b.i32(index), exception, wanted];
      dispatch(t, index, handlers, callBuiltin(t, BUILTIN.resume_throw_ref, args));
      return;
    }
    default:
      translateSwitch(t, index, index2);
  }
}

/** The last argument of the other computation is this one. */
function translateSwitch(t: Translation, index: number, tag: number): void {
  const { b, env } = t;
  const cont = t.pop();
  const count = paramsOf(t, index).length;
  passValues(t, count - 1);
  callBuiltin(t, BUILTIN.switch_to, [cont, b.i32(count), b.i32(tag)]);
  branchOnUnwind(t);
  const { params } = env.signatures[env.ownSignature[index]];
  takeValues(t, params, params.length);
}

/** The types of the parameters of continuations of type `index`. */
function paramsOf(t: Translation, index: number): Uint8Array {
  return t.env.signatures[t.env.typeSignature[index]].params;
}

/** Pops `count` operands and stores them to the overflow buffer. */
function passValues(t: Translation, count: number): void {
  const { b, env } = t;
  t.sp -= count;
  const buffer = count > 0 ? payloadBuffer(t) : 0;
  for (let k = 0; k < count; k++) {
    b.emit(OP.STORE, NONE, buffer, t.stack[t.sp + k], env.payloadRegion, k * PAYLOAD_ENTRY);
  }
}

/** Pushes the first `count` values in the overflow buffer, of `types`. */
function takeValues(t: Translation, types: Uint8Array, count: number): void {
  const { b, env } = t;
  t.reserve(count);
  const buffer = count > 0 ? payloadBuffer(t) : 0;
  for (let k = 0; k < count; k++) t.push(b.emit(OP.LOAD, types[k], buffer, 0, env.payloadRegion, k * PAYLOAD_ENTRY));
}

/**
 * Stores the tags of handlers to the overflow buffer, from entry `first` on: those with labels, then those of
 * switches. Returns their numbers as an argument of the routine.
 */
function passHandlers(t: Translation, handlers: readonly HandlerClause[], first: number): number {
  const { b, env } = t;
  const buffer = handlers.length > 0 ? payloadBuffer(t) : 0;
  let entry = first;
  let switches = 0;
  for (let round = 0; round < 2; round++) {
    for (const { tag, label } of handlers) {
      if ((label < 0) !== (round === 1)) continue;
      const identity = b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, env.tagsOffset + tag * TAG_SIZE);
      b.emit(OP.STORE, NONE, buffer, identity, env.payloadRegion, entry * PAYLOAD_ENTRY);
      entry++;
      if (label < 0) switches++;
    }
  }
  return b.i32((entry - first - switches) | (switches << SWITCH_HANDLERS_SHIFT));
}

/** Branches to the label of the handler that `hit` counts, or pushes the results of type `index`. */
function dispatch(t: Translation, index: number, handlers: readonly HandlerClause[], hit: number): void {
  const { b, f, env } = t;
  branchOnUnwind(t);
  const { sp } = t;
  let number = 0;
  for (const { tag, label } of handlers) {
    if (label < 0) continue;
    number++;
    const condition = b.binary(OP.EQ, I32, hit, b.i32(number));
    const from = b.block;
    const taken = f.addEdge(from, from + 1, f.poolCount);
    const other = f.addEdge(from, 0, f.poolCount);
    b.emit(OP.BRANCH, NONE, condition, taken, other, 0);
    b.closeBlock();
    b.openBlock(0, true);
    const { params } = env.signatures[env.tagSignature[tag]];
    takeValues(t, params, params.length);
    t.reserve(1);
    t.push(b.emit(OP.LOAD, REF, payloadBuffer(t), 0, env.payloadRegion, params.length * PAYLOAD_ENTRY));
    branch(t, label);
    f.edgeTo[other] = b.openBlock(0, false);
    f.edgeArgs[other] = f.poolCount;
    t.sp = sp;
    t.reachable = true;
  }
  const { results } = env.signatures[env.typeSignature[index]];
  takeValues(t, results, results.length);
}
