/**
 * The entry of the optimizer as WebAssembly, in AssemblyScript. Its memory holds one function and the workspace of the
 * passes; the host copies columns in and out (optimizer_module.ts).
 *
 *     reserve(…)  makes room for a function and returns the address of the record HEAD
 *     HEAD        the counts and flags of the function, and the addresses of its columns, in the order of
 *                 optimizer_module.ts; run reads the counts and writes them again
 *     run(bits)   runs the passes that `bits` enable
 *     observe(1)  calls the import env.afterPass after each pass from now on, with the address of its name
 *     fold(…)     evaluate of ir/eval.ts; foldedLow and foldedHigh are its results
 */
import { GVN_FLAGS, PASS_FLAGS } from "../../../engine/portable/compiler_interface.ts";

export const OPTIMIZER_ENTRY = `
import { grown } from "./base/columns";
import { evalHi, evalLo, evaluate } from "./ir/eval";
import { IrFunction } from "./ir/function";
import { PassCounts, PassOptions } from "./optimize/pass_options";
import { OptimizerWorkspace, runPasses } from "./optimize/passes";

@external("env", "afterPass") declare function passed(name: usize): void;

const HEAD: StaticArray<i32> = [${Array(27).fill(0).join(", ")}];
let f: IrFunction = new IrFunction();
let workspace: OptimizerWorkspace = new OptimizerWorkspace();
let observed: bool = false;

export function renewOptimizer(): void {
  f = new IrFunction();
  workspace = new OptimizerWorkspace();
}

/** The function, and the address of its record as it is now. */
export function currentFunction(): IrFunction {
  return f;
}

/** The counts of the last run. */
export function passCounts(): PassCounts {
  return workspace.counts;
}

export function describeFunction(): usize {
  describe();
  return changetype<usize>(HEAD);
}

export function observe(on: bool): void {
  observed = on;
}

export function fold(op: i32, ty: i32, from: i32, aLo: i32, aHi: i32, bLo: i32, bHi: i32, imm: i32): i32 {
  return evaluate(op, ty, from, aLo, aHi, bLo, bHi, imm);
}

export function foldedLow(): i32 {
  return evalLo;
}

export function foldedHigh(): i32 {
  return evalHi;
}

export function reserve(count: i32, sched: i32, blocks: i32, edges: i32, pool: i32, vectors: i32): usize {
  f.ensure(max(count, sched));
  if (blocks > f.blockStart.length) {
    f.blockStart = grown(f.blockStart, blocks);
    f.blockEnd = grown(f.blockEnd, blocks);
    f.blockParams = grown(f.blockParams, blocks);
    f.blockFlags = grown(f.blockFlags, blocks);
    f.blockDepth = grown(f.blockDepth, blocks);
    f.layout = grown(f.layout, blocks);
  }
  if (edges > f.edgeFrom.length) {
    f.edgeFrom = grown(f.edgeFrom, edges);
    f.edgeTo = grown(f.edgeTo, edges);
    f.edgeArgs = grown(f.edgeArgs, edges);
  }
  if (pool > f.pool.length) f.pool = grown(f.pool, pool);
  if (vectors * 16 > f.vectors.length) f.vectors = grown(f.vectors, vectors * 16);
  describe();
  return changetype<usize>(HEAD);
}

function describe(): void {
  HEAD[0] = f.count;
  HEAD[1] = f.schedCount;
  HEAD[2] = f.blockCount;
  HEAD[3] = f.edgeCount;
  HEAD[4] = f.poolCount;
  HEAD[5] = f.vectorCount;
  HEAD[6] = i32(f.charged) | (i32(f.canonicalizes) << 1) | (i32(f.keepsNans) << 2) | (i32(f.treatedAsCalling) << 3);
  HEAD[7] = <i32>f.op.dataStart;
  HEAD[8] = <i32>f.ty.dataStart;
  HEAD[9] = <i32>f.a.dataStart;
  HEAD[10] = <i32>f.b.dataStart;
  HEAD[11] = <i32>f.c.dataStart;
  HEAD[12] = <i32>f.imm.dataStart;
  HEAD[13] = <i32>f.pos.dataStart;
  HEAD[14] = <i32>f.site.dataStart;
  HEAD[15] = <i32>f.sched.dataStart;
  HEAD[16] = <i32>f.blockStart.dataStart;
  HEAD[17] = <i32>f.blockEnd.dataStart;
  HEAD[18] = <i32>f.blockParams.dataStart;
  HEAD[19] = <i32>f.blockFlags.dataStart;
  HEAD[20] = <i32>f.blockDepth.dataStart;
  HEAD[21] = <i32>f.layout.dataStart;
  HEAD[22] = <i32>f.edgeFrom.dataStart;
  HEAD[23] = <i32>f.edgeTo.dataStart;
  HEAD[24] = <i32>f.edgeArgs.dataStart;
  HEAD[25] = <i32>f.pool.dataStart;
  HEAD[26] = <i32>f.vectors.dataStart;
}

function report(name: string, f: IrFunction): void {
  describe();
  passed(changetype<usize>(name));
}

/** The function whose counts and columns the host has written. */
export function loadedFunction(): IrFunction {
  f.count = HEAD[0];
  f.schedCount = HEAD[1];
  f.blockCount = HEAD[2];
  f.edgeCount = HEAD[3];
  f.poolCount = HEAD[4];
  f.vectorCount = HEAD[5];
  f.charged = (HEAD[6] & 1) != 0;
  f.canonicalizes = (HEAD[6] & 2) != 0;
  f.keepsNans = (HEAD[6] & 4) != 0;
  f.treatedAsCalling = (HEAD[6] & 8) != 0;
  return f;
}

export function run(bits: i32): void {
  loadedFunction();
  const options: PassOptions = {
    gvn: {
${GVN_FLAGS.map((name, n) => `      ${name}: (bits & ${1 << n}) != 0,`).join("\n")}
    },
${PASS_FLAGS.map((name, n) => `    ${name}: (bits & ${1 << (GVN_FLAGS.length + n)}) != 0,`).join("\n")}
  };
  runPasses(f, options, workspace, observed ? report : null);
  describe();
}
`;
