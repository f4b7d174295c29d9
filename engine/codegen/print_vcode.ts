/**
 * VCode and its allocation as text, for goldens and debugging: one instruction a line, operands as `role
 * vreg[:constraint]` and, with an allocation, `=location`; edits on lines of their own, marked `|`.
 */
import { TY_NAMES } from "../ir/types.ts";
import type { Allocation } from "./allocation.ts";
import { CONSTRAINT, operandConstraint, operandFixed, operandRole, operandVreg, type VCode } from "./vcode.ts";

const ROLE_NAMES = ["use", "def", "temp", "late"] as const;

/** Names for printing: of target operations, and of physical registers. */
interface VCodeNames {
  op(op: number): string;
  register(r: number): string;
}

const PLAIN: VCodeNames = {
  op: (op) => `op${op}`,
  register: (r) => (r < 32 ? `g${r}` : `x${r - 32}`),
};

function location(at: number, names: VCodeNames): string {
  return at >= 0 ? names.register(at) : `[${-1 - at}]`;
}

function operand(v: VCode, o: number, allocation: Allocation | undefined, names: VCodeNames): string {
  const word = v.operands[o], constraint = operandConstraint(word);
  let text = `${ROLE_NAMES[operandRole(word)]} v${operandVreg(word)}`;
  if (constraint === CONSTRAINT.ANY) text += ":any";
  else if (constraint === CONSTRAINT.FIXED) text += `:${names.register(operandFixed(word))}`;
  else if (constraint === CONSTRAINT.REUSE) text += `:same${operandFixed(word)}`;
  return allocation === undefined ? text : `${text}=${location(allocation.location[o], names)}`;
}

function edits(allocation: Allocation, first: number, end: number, names: VCodeNames): string {
  let text = "";
  for (let e = first; e < end; e++) {
    const remat = allocation.editRemat[e], to = location(allocation.editTo[e], names);
    const from = location(allocation.editFrom[e], names);
    const edit = remat === 0 ? `${to} = ${from}` : remat < 0 ? `${to} <-> ${from}` : `${to} = repeat ${remat - 1}`;
    text += `    | ${TY_NAMES[allocation.editTy[e] as 0]} ${edit}\n`;
  }
  return text;
}

/** Prints `v`, with locations and edits if an allocation is given. */
export function printVCode(v: VCode, allocation?: Allocation, names: VCodeNames = PLAIN): string {
  let text = "", edit = 0;
  const editEnd = allocation === undefined ? 0 : v.edgeCount > 0 ? allocation.edgeFirst[0] : allocation.editCount;
  for (let k = 0; k < v.blockCount; k++) {
    const params = [...v.pool.subarray(v.paramStart[k], v.paramStart[k] + v.paramCount[k])];
    text += `block ${k}(${params.map((p) => `v${p}`).join(" ")}) depth ${v.blockDepth[k]}\n`;
    const end = k + 1 < v.blockCount ? v.blockFirst[k + 1] : v.count;
    for (let i = v.blockFirst[k]; i < end; i++) {
      if (allocation !== undefined) {
        const first = edit;
        while (edit < editEnd && allocation.editAt[edit] <= 2 * i) edit++;
        text += edits(allocation, first, edit, names);
      }
      let line = `  ${i}: ${names.op(v.op[i])}`;
      for (let o = v.firstOperand[i]; o < v.firstOperand[i + 1]; o++) line += `  ${operand(v, o, allocation, names)}`;
      if (v.clobbers[i] !== 0) line += `  clobbers ${v.clobbers[i]}`;
      if (allocation !== undefined && allocation.skip[i] !== 0) line += "  (skipped)";
      text += line + "\n";
    }
    for (let s = 0; s < v.succCount[k]; s++) {
      const e = v.succ[v.succStart[k] + s], to = v.edgeTo[e];
      const args = [...v.pool.subarray(v.argStart[e], v.argStart[e] + v.paramCount[to])];
      text += `  edge ${e} -> ${to}(${args.map((a) => `v${a}`).join(" ")})\n`;
      if (allocation !== undefined) {
        text += edits(allocation, allocation.edgeFirst[e], allocation.edgeFirst[e + 1], names);
      }
    }
  }
  return text;
}
