/**
 * Checks every invariant of an IrFunction that later stages rely on (ir/function.ts): block shape and order, edges,
 * loops, dominance, operand and result types by operation row. In: a function. Out: nothing, or a Bug that names the
 * place and shows the instruction. Runs in tests and between passes when checking is switched on; never needed for
 * correct output.
 *
 * Dominators: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001); blocks are in reverse postorder
 * already.
 */
import { Bug } from "../base/errors.ts";
import { BLOCK_LOOP, type IrFunction } from "./function.ts";
import { atomicWidth, REGION, regionKind } from "./regions.ts";
import { FLAG, OP, OP_FLAGS, OP_HAS_LIST, OP_ROWS, OP_VALUE_MASK } from "./ops.ts";
import { hasSignature, isAccess, isAtomic, printInstruction } from "./print.ts";
import { SHAPE, SHAPE_LANE_TY, type Signature, TY, TY_NAMES } from "./types.ts";

/** Result types by the letter of an operation row. */
const RESULT_TYPES: Readonly<Record<string, number>> = {
  i: TY.I32,
  I: TY.I64,
  f: TY.F32,
  F: TY.F64,
  v: TY.V128,
  r: TY.REF,
  _: TY.NONE,
};

/** Throws a {@linkcode Bug} if the function breaks an invariant; `when` names the preceding step, for the message. */
export function verifyFunction(f: IrFunction, when = ""): void {
  new Verifier(f, when).verify();
}

class Verifier {
  readonly #f: IrFunction;
  readonly #when: string;
  /** Block of each scheduled value, −1 for others. */
  readonly #blockOf: Int32Array;
  /** Position in sched of each scheduled value. */
  readonly #position: Int32Array;
  readonly #idom: Int32Array;
  /** Depth in the dominator tree. */
  readonly #domDepth: Int32Array;
  /** First predecessor edge by block, next by edge; −1 ends. */
  readonly #firstIn: Int32Array;
  readonly #nextIn: Int32Array;

  constructor(f: IrFunction, when: string) {
    this.#f = f;
    this.#when = when;
    this.#blockOf = new Int32Array(f.count).fill(-1);
    this.#position = new Int32Array(f.count).fill(-1);
    this.#idom = new Int32Array(f.blockCount).fill(-1);
    this.#domDepth = new Int32Array(f.blockCount);
    this.#firstIn = new Int32Array(f.blockCount).fill(-1);
    this.#nextIn = new Int32Array(f.edgeCount).fill(-1);
  }

  verify(): void {
    this.#checkBlocks();
    this.#checkEdges();
    this.#checkLoops();
    this.#checkLayout();
    for (let k = 0; k < this.#f.blockCount; k++) {
      for (let s = this.#f.blockStart[k]; s < this.#f.blockEnd[k]; s++) {
        this.#checkInstruction(this.#f.sched[s], k, s);
      }
    }
  }

  #fail(message: string, i = -1): never {
    const after = this.#when === "" ? "" : ` after ${this.#when}`;
    const shown = i >= 0 ? `: ${printInstruction(this.#f, i)}` : "";
    throw new Bug(`IR of function ${this.#f.funcIndex}${after}: ${message}${shown}`);
  }

  #checkBlocks(): void {
    const f = this.#f;
    if (f.blockCount === 0) this.#fail("no blocks");
    for (let k = 0; k < f.blockCount; k++) {
      const start = f.blockStart[k];
      const end = f.blockEnd[k];
      if (start < 0 || end > f.schedCount || start >= end) this.#fail(`b${k} is empty or out of the order`);
      for (let s = start; s < end; s++) {
        const i = f.sched[s];
        if (i <= 0 || i >= f.count) this.#fail(`b${k} schedules v${i}, which does not exist`);
        if (this.#blockOf[i] !== -1) this.#fail(`v${i} is scheduled twice (b${this.#blockOf[i]}, b${k})`, i);
        this.#blockOf[i] = k;
        this.#position[i] = s;
        const op = f.op[i];
        if (op >= OP_ROWS.length || op === OP.UNDEF) this.#fail(`b${k} has an instruction without operation`, i);
        const isParam = s - start < f.blockParams[k];
        if (isParam !== (op === OP.PARAM)) this.#fail(`b${k}: parameters must be first and counted`, i);
        if (isParam && f.imm[i] !== s - start) this.#fail(`b${k}: parameter number ${f.imm[i]} at ${s - start}`, i);
        const ends = (OP_FLAGS[op] & FLAG.ENDS) !== 0;
        if (ends !== (s === end - 1)) this.#fail(`b${k}: exactly the last instruction ends a block`, i);
      }
    }
    const { params } = f.signature;
    if (f.blockParams[0] !== params.length) this.#fail("b0's parameters are not the function's");
    for (let n = 0; n < params.length; n++) {
      const i = f.sched[f.blockStart[0] + n];
      if (f.ty[i] !== params[n]) this.#fail(`parameter ${n} should be ${TY_NAMES[params[n]]}`, i);
    }
  }

  /** Every edge is named by one terminator; its ends; arity and types of its arguments. */
  #checkEdges(): void {
    const f = this.#f;
    const owner = new Int32Array(f.edgeCount).fill(-1);
    for (let k = 0; k < f.blockCount; k++) {
      const i = f.sched[f.blockEnd[k] - 1];
      const [first, second, count] = successorEdges(f, i);
      for (let n = 0; n < count; n++) {
        const e = n === 1 && second >= 0 ? second : first + n;
        if (e < 0 || e >= f.edgeCount) this.#fail(`b${k} names edge ${e}, which does not exist`, i);
        if (owner[e] !== -1) this.#fail(`edge ${e} belongs to b${owner[e]} and b${k}`, i);
        owner[e] = k;
        if (f.edgeFrom[e] !== k) this.#fail(`edge ${e} of b${k} says it comes from b${f.edgeFrom[e]}`, i);
        const to = f.edgeTo[e];
        if (to <= 0 || to >= f.blockCount) this.#fail(`edge ${e} of b${k} leads to b${to}`, i);
        this.#nextIn[e] = this.#firstIn[to];
        this.#firstIn[to] = e;
      }
    }
    for (let k = 1; k < f.blockCount; k++) {
      let forward = false;
      for (let e = this.#firstIn[k]; e >= 0; e = this.#nextIn[e]) forward ||= f.edgeFrom[e] < k;
      if (!forward) this.#fail(`b${k} has no predecessor before it`);
    }
    this.#computeDominators();
    for (let k = 1; k < f.blockCount; k++) {
      for (let e = this.#firstIn[k]; e >= 0; e = this.#nextIn[e]) this.#checkEdgeArguments(e, k);
    }
  }

  #checkEdgeArguments(e: number, to: number): void {
    const f = this.#f;
    const from = f.edgeFrom[e];
    const count = f.blockParams[to];
    const first = f.edgeArgs[e];
    if (count > 0 && (first < 0 || first + count > f.poolCount)) this.#fail(`edge b${from} → b${to} has no arguments`);
    for (let n = 0; n < count; n++) {
      const value = f.pool[first + n];
      const param = f.sched[f.blockStart[to] + n];
      this.#checkUse(value, from, f.blockEnd[from] - 1, f.sched[f.blockEnd[from] - 1]);
      if (f.ty[value] !== f.ty[param]) {
        this.#fail(`edge b${from} → b${to}: argument ${n} is v${value}:${TY_NAMES[f.ty[value]]}`, param);
      }
    }
  }

  #computeDominators(): void {
    const f = this.#f;
    const idom = this.#idom;
    idom[0] = 0;
    for (let changed = true; changed;) {
      changed = false;
      for (let k = 1; k < f.blockCount; k++) {
        let best = -1;
        for (let e = this.#firstIn[k]; e >= 0; e = this.#nextIn[e]) {
          let other = f.edgeFrom[e];
          if (idom[other] < 0) continue;
          if (best < 0) {
            best = other;
            continue;
          }
          while (best !== other) {
            while (best > other) best = idom[best];
            while (other > best) other = idom[other];
          }
        }
        if (idom[k] !== best) {
          idom[k] = best;
          changed = true;
        }
      }
    }
    for (let k = 1; k < f.blockCount; k++) this.#domDepth[k] = this.#domDepth[idom[k]] + 1;
  }

  #dominates(a: number, b: number): boolean {
    while (this.#domDepth[b] > this.#domDepth[a]) b = this.#idom[b];
    return a === b;
  }

  /**
   * Back edges lead to headers with BLOCK_LOOP that dominate all blocks up to the loop's last (contiguous, reducible).
   */
  #checkLoops(): void {
    const f = this.#f;
    const loopEnd = new Int32Array(f.blockCount).fill(-1);
    for (let k = 0; k < f.blockCount; k++) {
      for (let e = this.#firstIn[k]; e >= 0; e = this.#nextIn[e]) {
        if (f.edgeFrom[e] >= k) loopEnd[k] = Math.max(loopEnd[k], f.edgeFrom[e]);
      }
    }
    for (let k = 0; k < f.blockCount; k++) {
      const last = loopEnd[k];
      if (last < 0) continue;
      if ((f.blockFlags[k] & BLOCK_LOOP) === 0) this.#fail(`b${k} heads a loop and is not marked`);
      if (f.blockDepth[k] < 1) this.#fail(`b${k} heads a loop and has depth 0`);
      for (let member = k + 1; member <= last; member++) {
        if (!this.#dominates(k, member)) this.#fail(`b${member} is inside the loop of b${k} and not dominated by it`);
        if (f.blockDepth[member] < f.blockDepth[k]) this.#fail(`b${member} is shallower than its loop b${k}`);
      }
    }
  }

  #checkLayout(): void {
    const f = this.#f;
    const seen = new Uint8Array(f.blockCount);
    for (let n = 0; n < f.blockCount; n++) {
      const k = f.layout[n];
      if (k < 0 || k >= f.blockCount || seen[k]) this.#fail("the layout is not a permutation of the blocks");
      seen[k] = 1;
    }
    if (f.layout[0] !== 0) this.#fail("the layout must begin with b0");
  }

  /** `value` must be defined before position `at` of block `k`. */
  #checkUse(value: number, k: number, at: number, user: number): void {
    const f = this.#f;
    if (value <= 0 || value >= f.count) this.#fail(`v${value} does not exist, used in b${k}`, user);
    const home = this.#blockOf[value];
    if (home < 0) this.#fail(`v${value} is not scheduled, used in b${k}`, user);
    if (f.ty[value] === TY.NONE) this.#fail(`v${value} has no value, used in b${k}`, user);
    const before = home === k ? this.#position[value] < at : this.#dominates(home, k);
    if (!before) this.#fail(`v${value} of b${home} does not dominate its use in b${k}`, user);
  }

  #checkInstruction(i: number, k: number, at: number): void {
    const f = this.#f;
    const op = f.op[i];
    const row = OP_ROWS[op];
    const mask = OP_VALUE_MASK[op];
    if (op !== OP.RESULT) {
      if (mask & 1 && !(isAccess(op) && (f.c[i] & 0xff) === REGION.CONTEXT)) this.#checkUse(f.a[i], k, at, i);
      if (mask & 2) this.#checkUse(f.b[i], k, at, i);
      if (mask & 4) this.#checkUse(f.c[i], k, at, i);
    }
    if (OP_HAS_LIST[op]) {
      if (f.a[i] < 0 || f.a[i] + f.b[i] > f.poolCount) this.#fail(`b${k}: the list is outside the pool`, i);
      for (let n = 0; n < f.b[i]; n++) this.#checkUse(f.pool[f.a[i] + n], k, at, i);
    }
    const fixed = RESULT_TYPES[row.result];
    if (fixed !== undefined && f.ty[i] !== fixed) this.#fail(`b${k}: result must be ${TY_NAMES[fixed]}`, i);
    this.#checkTypes(i, k, at);
  }

  #want(i: number, k: number, ok: boolean, message: string): void {
    if (!ok) this.#fail(`b${k}: ${message}`, i);
  }

  #checkTypes(i: number, k: number, at: number): void {
    const f = this.#f;
    const op = f.op[i];
    const ty = f.ty[i];
    const mask = OP_VALUE_MASK[op];
    const ta = mask & 1 && f.a[i] > 0 ? f.ty[f.a[i]] : 0;
    const tb = mask & 2 ? f.ty[f.b[i]] : 0;
    const isInt = (t: number) => t === TY.I32 || t === TY.I64;
    const isFloat = (t: number) => t === TY.F32 || t === TY.F64;
    if (hasSignature(op)) return this.#checkCall(i, k, at);
    if (isAccess(op)) return this.#checkAccess(i, k, ta);
    if (isAtomic(op)) return this.#checkAtomic(i, k);
    if ((op >= OP.ADD && op <= OP.ROTR) || (op >= OP.DIV_S && op <= OP.REM_U)) {
      this.#want(i, k, isInt(ty) && ta === ty && tb === ty, "integer operands and result must have one type");
    } else if ((op >= OP.CLZ && op <= OP.POPCNT) || op === OP.EXTEND8_S || op === OP.EXTEND16_S) {
      this.#want(i, k, isInt(ty) && ta === ty, "integer operand and result must have one type");
    } else if (op === OP.MULHI_S || op === OP.MULHI_U) {
      this.#want(i, k, ta === TY.I64 && tb === TY.I64, "operands must be i64");
    } else if (op === OP.EXTEND32_S || op === OP.WRAP) {
      this.#want(i, k, ta === TY.I64, "operand must be i64");
    } else if (op === OP.EXTEND_S || op === OP.EXTEND_U) {
      this.#want(i, k, ta === TY.I32, "operand must be i32");
    } else if (op >= OP.EQ && op <= OP.GE_U) {
      this.#want(i, k, (isInt(ta) || ta === TY.REF) && ta === tb, "operands must be integers of one type");
    } else if (op >= OP.FADD && op <= OP.FCOPYSIGN) {
      this.#want(i, k, isFloat(ty) && ta === ty && tb === ty, "float operands and result must have one type");
    } else if (op >= OP.FABS && op <= OP.FNEAREST) {
      this.#want(i, k, isFloat(ty) && ta === ty, "float operand and result must have one type");
    } else if (op >= OP.FEQ && op <= OP.FGE) {
      this.#want(i, k, isFloat(ta) && ta === tb, "operands must be floats of one type");
    } else if (op === OP.FDEMOTE) this.#want(i, k, ta === TY.F64, "operand must be f64");
    else if (op === OP.FPROMOTE) this.#want(i, k, ta === TY.F32, "operand must be f32");
    else if (op === OP.CONVERT_S || op === OP.CONVERT_U) {
      this.#want(i, k, isFloat(ty) && isInt(ta), "integer to float expected");
    } else if (op >= OP.TRUNC_S && op <= OP.TRUNC_SAT_U) {
      this.#want(i, k, isInt(ty) && isFloat(ta), "float to integer expected");
    } else if (op === OP.BITCAST) {
      const fits = ta === TY.REF
        ? ty === TY.I64
        : ty === TY.REF
        ? ta === TY.I64
        : bitcastPartner(ty) === ta && ta !== 0;
      this.#want(i, k, fits, "bad pair of types");
    } else if (op === OP.CHARGE) {
      this.#want(i, k, ta === TY.I64 && f.b[i] >= 0, "units must be i64, and the owed units not negative");
      this.#want(i, k, (f.b[i] === 0 && f.imm[i] === 0) || f.op[f.a[i]] === OP.CONST, "only constants are owed");
    } else if (op === OP.GC_ALLOC) this.#want(i, k, ta === TY.I64, "the size must be i64");
    else if (op === OP.SELECT) {
      this.#want(i, k, ta === ty && tb === ty && f.ty[f.c[i]] === TY.I32, "select's types disagree");
    } else if (op === OP.CHECK_INDEX) {
      const fits = isInt(ty) && ta === ty && (tb === ty || tb === TY.I64) && (f.c[i] === 0 || tb === TY.I64);
      this.#want(i, k, fits, "index and result must have one type, and the limit that of the sum");
      this.#want(i, k, f.c[i] >= 0 && f.imm[i] > 0, "distance or trap code missing");
    } else if (op === OP.BOUNDS) this.#want(i, k, isInt(ta), "address must be an integer");
    else if (op === OP.TRAP_IF || op === OP.BRANCH || op === OP.SWITCH) {
      this.#want(i, k, ta === TY.I32, "condition must be i32");
      if (op === OP.TRAP_IF) this.#want(i, k, f.imm[i] > 0, "trap code missing");
      if (op === OP.SWITCH) this.#want(i, k, f.c[i] > 0, "a switch needs a default");
    } else if (op === OP.UNWOUND) this.#checkUnwound(i, k, at);
    else if (op === OP.CONST) this.#want(i, k, ty > 0 && ty <= TY.REF, "a constant needs a type");
    else if (op === OP.RETURN) this.#checkList(i, k, f.signature.results, "returned");
    else if (op === OP.RESULT) this.#checkResult(i, k, at);
    else if (op >= OP.VSPLAT && op <= OP.VBITSELECT) this.#checkVector(i, k, ta, tb);
  }

  /**
   * UNWOUND follows a call and its results and is read by the BRANCH that ends the block, whose landing pad uses none
   * of them.
   */
  #checkUnwound(i: number, k: number, at: number): void {
    const f = this.#f;
    const branch = f.sched[f.blockEnd[k] - 1];
    this.#want(i, k, f.op[branch] === OP.BRANCH && f.a[branch] === i, "the block must end in a branch on it");
    let s = at - 1;
    while (s >= f.blockStart[k] && f.op[f.sched[s]] === OP.RESULT) s--;
    const call = s >= f.blockStart[k] ? f.sched[s] : 0;
    this.#want(i, k, hasSignature(f.op[call]), "it must follow a call");
    const e = f.b[branch];
    for (let n = 0; n < f.blockParams[f.edgeTo[e]]; n++) {
      const value = f.pool[f.edgeArgs[e] + n];
      const isResult = value === call || (f.op[value] === OP.RESULT && f.a[value] === call);
      this.#want(i, k, !isResult, "a landing has no results");
    }
  }

  /** Operands are vectors except for the scalar of splats, replacements and shifts; shape and lane exist. */
  #checkVector(i: number, k: number, ta: number, tb: number): void {
    const f = this.#f;
    const op = f.op[i];
    if (op === OP.VSHUFFLE) {
      this.#want(i, k, f.imm[i] >= 0 && f.imm[i] < f.vectorCount, "the lane numbers are not there");
      this.#want(i, k, ta === TY.V128 && tb === TY.V128, "operands must be vectors");
      return;
    }
    const shape = f.imm[i] & 0xff, lane = f.imm[i] >>> 8;
    this.#want(i, k, shape <= SHAPE.F64X2, "no such shape");
    const scalar = SHAPE_LANE_TY[shape];
    const extracts = op === OP.VEXTRACT_S || op === OP.VEXTRACT_U;
    const lanes = [16, 8, 4, 2, 4, 2][shape];
    this.#want(i, k, lane < (extracts || op === OP.VREPLACE ? lanes : 1), "no such lane");
    const a = op === OP.VSPLAT || op === OP.VFROM_SCALAR ? scalar : TY.V128;
    this.#want(i, k, ta === a, `the operand must be ${TY_NAMES[a]}`);
    if (op === OP.VFROM_SCALAR) this.#want(i, k, shape >= SHAPE.F32X4, "the operand must be a float");
    if (extracts) this.#want(i, k, f.ty[i] === scalar, `the result must be ${TY_NAMES[scalar]}`);
    if ((OP_VALUE_MASK[op] & 2) === 0) return;
    const b = op === OP.VREPLACE ? scalar : op >= OP.VSHL && op <= OP.VSHR_U ? TY.I32 : TY.V128;
    this.#want(i, k, tb === b, `the second operand must be ${TY_NAMES[b]}`);
    if (op === OP.VBITSELECT) this.#want(i, k, f.ty[f.c[i]] === TY.V128, "the mask must be a vector");
  }

  #checkAccess(i: number, k: number, ta: number): void {
    const f = this.#f;
    const op = f.op[i];
    const kind = f.c[i] & 0xff;
    const value = op >= OP.STORE ? f.ty[f.b[i]] : f.ty[i];
    if (kind === REGION.MEMORY0) this.#want(i, k, ta === TY.I32 || ta === TY.I64, "address must be an integer");
    else if (kind === REGION.CONTEXT) this.#want(i, k, f.a[i] === 0, "context accesses have no address value");
    else if (kind === REGION.POINTER) this.#want(i, k, ta === TY.I64 || ta === TY.REF, "a pointer must be i64 or ref");
    else if (kind === REGION.STRUCT) this.#want(i, k, ta === TY.REF && f.imm[i] >>> 0 < 4096, "an object expected");
    else this.#fail(`b${k}: unknown region kind ${kind}`, i);
    const wide = op === OP.LOAD32_S || op === OP.LOAD32_U || op === OP.STORE32;
    if (wide) this.#want(i, k, value === TY.I64, "the value must be i64");
    else if (op === OP.LOAD || op === OP.STORE) this.#want(i, k, value !== TY.NONE, "an access needs a type");
    else this.#want(i, k, value === TY.I32 || value === TY.I64, "the value must be an integer");
  }

  /** The address as its region requires, and values of one integer type at least as wide as the access. */
  #checkAtomic(i: number, k: number): void {
    const f = this.#f;
    const op = f.op[i];
    const list = op === OP.ATOMIC_CMPXCHG;
    this.#want(i, k, !list || f.b[i] === 3, "address, expected value and replacement expected");
    const address = f.ty[list ? f.pool[f.a[i]] : f.a[i]];
    const kind = regionKind(f.c[i]);
    if (kind === REGION.MEMORY0) {
      this.#want(i, k, address === TY.I32 || address === TY.I64, "address must be an integer");
    } else this.#want(i, k, kind === REGION.POINTER && address === TY.I64, "a pointer must be i64");
    const ty = op === OP.ATOMIC_STORE ? f.ty[f.b[i]] : f.ty[i];
    this.#want(i, k, ty === TY.I64 || (ty === TY.I32 && atomicWidth(f.c[i]) < 3), "the value must be an integer");
    if (list) {
      for (const n of [1, 2]) this.#want(i, k, f.ty[f.pool[f.a[i] + n]] === ty, "the values' types disagree");
    } else if (op !== OP.ATOMIC_LOAD) this.#want(i, k, f.ty[f.b[i]] === ty, "value and result must have one type");
  }

  #checkCall(i: number, k: number, at: number): void {
    const f = this.#f;
    const op = f.op[i];
    const signature = f.signatures[f.imm[i]];
    if (signature === undefined) this.#fail(`b${k}: signature ${f.imm[i]} does not exist`, i);
    const record = op === OP.CALL_RECORD || op === OP.TAIL_CALL_RECORD;
    if (record) {
      const first = f.b[i] > 0 ? f.ty[f.pool[f.a[i]]] : 0;
      this.#want(i, k, first === TY.I64 || first === TY.REF, "the first argument must be a function record");
    }
    this.#checkList(i, k, signature.params, "argument", record ? 1 : 0);
    if (OP_FLAGS[op] & FLAG.ENDS) return;
    const { results } = signature;
    const ty = results.length === 1 ? results[0] : TY.NONE;
    if (f.ty[i] !== ty) this.#fail(`b${k}: the call's type should be ${TY_NAMES[ty]}`, i);
    let seen = -1;
    for (let s = at + 1; s < f.blockEnd[k] && f.op[f.sched[s]] === OP.RESULT; s++) {
      const result = f.sched[s];
      if (f.a[result] !== i) this.#fail(`b${k}: this result does not follow its call`, result);
      if (f.imm[result] <= seen) this.#fail(`b${k}: results must be in order`, result);
      seen = f.imm[result];
    }
  }

  #checkResult(i: number, k: number, at: number): void {
    const f = this.#f;
    let s = at - 1;
    while (s >= f.blockStart[k] && f.op[f.sched[s]] === OP.RESULT) s--;
    const call = s >= f.blockStart[k] ? f.sched[s] : 0;
    if (call !== f.a[i] || !hasSignature(f.op[call])) this.#fail(`b${k}: a result must follow its call`, i);
    const { results } = f.signatures[f.imm[call]];
    if (results.length < 2 || results[f.imm[i]] !== f.ty[i]) this.#fail(`b${k}: no such result`, i);
  }

  #checkList(i: number, k: number, types: Uint8Array, message: string, skip = 0): void {
    const f = this.#f;
    if (f.b[i] !== types.length + skip) this.#fail(`b${k}: ${types.length} values expected`, i);
    for (let n = 0; n < types.length; n++) {
      const value: Signature["params"][number] = f.pool[f.a[i] + skip + n];
      if (f.ty[value] !== types[n]) this.#fail(`b${k}: ${message} ${n} should be ${TY_NAMES[types[n]]}`, i);
    }
  }
}

/** The edges that terminator `i` names: [first, second or −1, count]; with second ≥ 0 they are first and second. */
function successorEdges(f: IrFunction, i: number): [number, number, number] {
  switch (f.op[i]) {
    case OP.JUMP:
      return [f.a[i], -1, 1];
    case OP.BRANCH:
      return [f.b[i], f.c[i], 2];
    case OP.SWITCH:
      return [f.b[i], -1, f.c[i]];
    default:
      return [0, -1, 0];
  }
}

function bitcastPartner(ty: number): number {
  switch (ty) {
    case TY.I32:
      return TY.F32;
    case TY.F32:
      return TY.I32;
    case TY.I64:
      return TY.F64;
    case TY.F64:
      return TY.I64;
    default:
      return TY.NONE;
  }
}
