/**
 * Random functions (optimize/testing/random_functions.ts) compiled and run against the interpreter: results, traps,
 * memory and context. Their calls go to three small compiled functions, so that clobber masks of known callees are
 * exercised too.
 */
import { codeTables } from "../link/image.ts";
import { equal } from "node:assert/strict";
import { STATUS, THREAD } from "../abi/context_layout.ts";
import type { IrFunction } from "../ir/function.ts";
import { REGION, regionKind } from "../ir/regions.ts";
import { interpret, TrapSignal, type World } from "../ir/testing/interpret.ts";
import { OP } from "../ir/ops.ts";
import { parseFunction } from "../ir/parse.ts";
import { isAccess } from "../ir/print.ts";
import { TY } from "../ir/types.ts";
import { ProgramMaker, randomNumbers } from "../optimize/testing/random_functions.ts";
import { BASELINE, compileIr, type CompileSettings, MODERN } from "./testing/compile_ir.ts";
import { CAN_RUN, MEMORY_BYTES, NativeProcess } from "./testing/native_process.ts";

const process = CAN_RUN ? new NativeProcess() : undefined;

/** Globals of the test contexts; the programs use 256 bytes. */
const GLOBALS = 16;

const CALLEES = [
  `func 0 (i32 i64) -> (i64)
b0(v1:i32 v2:i64):
  v3:i64 = EXTEND_U v1
  v4:i64 = CONST 1099511628211
  v5:i64 = ADD v3 v2
  v6:i64 = MUL v5 v4
  RETURN (v6)
`,
  `func 1 (i32 i64) -> (i64)
b0(v1:i32 v2:i64):
  v3:i32 = CONST 4088
  v4:i32 = AND v1 v3
  v5:i64 = LOAD memory0[v4]
  v6:i64 = XOR v5 v2
  STORE memory0[v4+8] v6
  v7:i64 = CALL f0(v1 v6) sig0
  RETURN (v7)
`,
  `func 2 (i32 i64) -> (i64)
b0(v1:i32 v2:i64):
  v3:f64 = CONVERT_U v2
  v4:f64 = CONVERT_S v1
  v5:f64 = FMUL v3 v4
  v6:i64 = TRUNC_SAT_S v5
  v7:i32 = WRAP v2
  v8:i64 = EXTEND_S v1
  v9:i64 = CALL f1(v7 v8) sig0
  v10:i64 = ADD v9 v6
  RETURN (v10)
`,
].map((text) => parseFunction("func" + text.slice(4).replace("\n", "\nsig 0 (i32 i64) -> (i64)\n")));

/** Operations whose NaN results have bits that hardware may choose. */
function choosesNan(op: number): boolean {
  return (op >= OP.FADD && op <= OP.FMAX) || (op >= OP.FSQRT && op <= OP.FNEAREST);
}

/** Makes a program's behaviour independent of NaN bits, and moves its context accesses to the globals. */
function prepare(f: IrFunction, contextOffset: number): void {
  const order: number[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  for (let k = 0; k < f.blockCount; k++) {
    starts.push(order.length);
    for (let p = f.blockStart[k]; p < f.blockEnd[k]; p++) {
      const id = f.sched[p];
      const op = f.op[id];
      if (isAccess(op) && regionKind(f.c[id]) === REGION.CONTEXT) f.imm[id] += contextOffset;
      if (choosesNan(op)) {
        // id = y is ordered ? y : the canonical NaN
        const ty = f.ty[id];
        const y = f.append(op, ty, f.a[id], f.b[id], f.c[id], f.imm[id]);
        const nan = f.append(OP.CONST, ty, 0, 0, ty === TY.F64 ? 0x7ff80000 : 0, ty === TY.F64 ? 0 : 0x7fc00000);
        const ordered = f.append(OP.FEQ, TY.I32, y, y, 0, 0);
        f.op[id] = OP.SELECT;
        f.a[id] = y;
        f.b[id] = nan;
        f.c[id] = ordered;
        order.push(y, nan, ordered);
      }
      order.push(id);
    }
    ends.push(order.length);
  }
  f.ensure(order.length);
  f.sched.set(order);
  f.schedCount = order.length;
  f.blockStart.set(starts);
  f.blockEnd.set(ends);
}

interface Case {
  f: IrFunction;
  seed: number;
}

function runPrograms(settings: CompileSettings, seeds: readonly number[], size: number): number {
  const cases: Case[] = [];
  let contextOffset = 0;
  const shape = { globals: GLOBALS };
  for (const seed of seeds) {
    const f = new ProgramMaker(seed, size, settings.explicitBounds === true).make();
    const first = compileOffset(settings, shape);
    contextOffset = first;
    prepare(f, contextOffset);
    cases.push({ f, seed });
  }
  const all = [...CALLEES, ...cases.map((c) => c.f)];
  const { code, context } = compileIr(all, { ...settings, shape, signatures: [CALLEES[0].signature] });
  const instance = process!.instantiate(code, context);
  const memory = process!.memory;
  const modelMemory = new Uint8Array(MEMORY_BYTES);
  const modelContext = new Uint8Array(context.layout.size);
  let done = 0;
  cases.forEach(({ f, seed }, k) => {
    const random = randomNumbers(seed ^ 0x5bd1e995);
    const args = Array.from(f.signature.params, (ty) => {
      const wide = (BigInt(random(2 ** 31)) << 33n) ^ BigInt(random(2 ** 31));
      return ty === TY.I32 || ty === TY.F32 ? wide & 0xffffffffn : wide;
    });
    for (let n = 0; n < MEMORY_BYTES; n++) memory[n] = modelMemory[n] = n * 7 + (n >> 5) + seed;
    for (let n = 0; n < GLOBALS * 16; n++) {
      instance.context.bytes[contextOffset + n] = modelContext[contextOffset + n] = n * 13 + 5;
    }
    const world: World = {
      contextAddress: 0,
      context: new DataView(modelContext.buffer),
      steps: 100000,
      memory0: () => new DataView(modelMemory.buffer),
      memoryLength: () => MEMORY_BYTES,
      resolve: () => undefined,
      call: (index, values) => interpret(all[index], values, world),
      callRecord: () => [],
      callImport: () => [],
      callBuiltin: () => [],
    };
    let expected: readonly bigint[] = [];
    let trap = 0;
    try {
      expected = interpret(f, args, world);
    } catch (error) {
      if (!(error instanceof TrapSignal)) throw error;
      trap = error.code;
    }
    const actual = instance.call(CALLEES.length + k, args);
    const where = `seed ${seed}`;
    if (trap !== 0) {
      equal(actual.status, STATUS.TRAP, where);
      // A fault reports no code; it is looked up by address.
      const code = actual.trap !== 0 ? actual.trap : faultCode(instance, process!);
      equal(code, trap, where);
    } else {
      equal(actual.status, STATUS.DONE, where);
      Array.from(f.signature.results).forEach((ty, n) => {
        const mask = ty === TY.I32 || ty === TY.F32 ? 0xffffffffn : 0xffffffffffffffffn;
        equal(
          actual.results[n],
          expected[n] & mask,
          `${where} result ${n} ${actual.results[n].toString(16)} ${expected[n].toString(16)}`,
        );
      });
    }
    equal(firstDifference(memory, modelMemory), -1, `${where}: memory differs`);
    const globals = instance.context.bytes.subarray(contextOffset, contextOffset + GLOBALS * 16);
    equal(
      firstDifference(globals, modelContext.subarray(contextOffset, contextOffset + GLOBALS * 16)),
      -1,
      `${where}: globals differ`,
    );
    done++;
  });
  return done;
}

function firstDifference(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return i;
  return -1;
}

function faultCode(instance: ReturnType<NativeProcess["instantiate"]>, native: NativeProcess): number {
  const pc = Number(native.thread.view.getBigUint64(THREAD.TRAP_PC, true) - instance.address);
  const { trapAt, trapCode } = codeTables(instance.code);
  return trapCode[trapAt.indexOf(pc)] ?? -1;
}

let offset = 0;
function compileOffset(settings: CompileSettings, shape: { globals: number }): number {
  if (offset === 0) offset = compileIr([], { ...settings, shape }).context.layout.globalsOffset;
  return offset;
}

/** The optimization keys that this backend obeys. */
const ALL_OFF = Object.fromEntries(
  ["affine-lea", "bmi2-rorx", "branch-fold", "commute-self-update", "frame-elide", "st-flags", "vex-float-mem"]
    .map((key) => [key, false]),
);

function range(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => from + i);
}

for (
  const [name, settings] of Object.entries<CompileSettings>({
    "guard pages, all CPU features": { cpu: MODERN },
    "guard pages, SSE4.1 only": { cpu: BASELINE },
    "explicit bounds": { cpu: MODERN, explicitBounds: true },
    "no branch folding, no stack fence": { cpu: MODERN, stackFence: false, optimizations: { "branch-fold": false } },
    "every switch off": { cpu: MODERN, optimizations: ALL_OFF },
  })
) {
  Deno.test({
    name: `random programs run as the interpreter says: ${name}`,
    ignore: !CAN_RUN,
    fn: () => {
      equal(runPrograms(settings, range(1, 60), 25), 60);
      equal(runPrograms(settings, range(1000, 20), 120), 20);
    },
  });
}
