/**
 * Calls of every kind, run: overflow parameters and results, records of this and another instance, imports that park,
 * nested entries, builtins, tail calls, traps with their sites and frames, stack exhaustion.
 */
import { codeTables } from "../link/image.ts";
import { deepEqual, equal, notEqual } from "node:assert/strict";
import { RECORD, STATUS, THREAD } from "../abi/context_layout.ts";
import { TRAP } from "../base/traps.ts";
import { compileIr, type CompileSettings } from "./testing/compile_ir.ts";
import { CAN_RUN, MEMORY_BYTES, NativeProcess } from "./testing/native_process.ts";

const process = CAN_RUN ? new NativeProcess() : undefined;

function test(name: string, fn: (p: NativeProcess) => void): void {
  Deno.test({ name, ignore: !CAN_RUN, fn: () => fn(process!) });
}

function place(p: NativeProcess, functions: string[], settings: CompileSettings = {}) {
  const { code, context } = compileIr(functions, settings);
  return p.instantiate(code, context);
}

const MIXED = "i32 i64 f32 f64";
const MANY = Array.from({ length: 28 }, (_, i) => MIXED.split(" ")[i % 4]);

/** Takes 28 parameters and returns them in reverse order. */
function reversing(name: number): string {
  const params = MANY.map((ty, i) => `v${i + 1}:${ty}`).join(" ");
  const results = MANY.toReversed();
  return `func ${name} (${MANY.join(" ")}) -> (${results.join(" ")})
b0(${params}):
  RETURN (${MANY.map((_, i) => `v${28 - i}`).join(" ")})
`;
}

/** Calls function 0 with its own parameters reversed twice. */
function callingReversed(): string {
  const head = reversing(1).split("\n");
  const results = MANY.toReversed();
  const sig = `sig 0 (${MANY.join(" ")}) -> (${results.join(" ")})`;
  const call = `  v30:none = CALL f0(${MANY.map((_, i) => `v${i + 1}`).join(" ")}) sig0`;
  const named = results.map((ty, i) => `  v${31 + i}:${ty} = RESULT v30 ${i}`).join("\n");
  const again = `  v60:none = CALL f0(${results.map((_, i) => `v${58 - i}`).join(" ")}) sig0`;
  const last = results.map((ty, i) => `  v${61 + i}:${ty} = RESULT v60 ${i}`).join("\n");
  return [
    head[0],
    sig,
    head[1],
    call,
    named,
    again,
    last,
    `  RETURN (${results.map((_, i) => `v${61 + i}`).join(" ")})`,
    "",
  ].join("\n");
}

test("parameters and results beyond the registers travel through the overflow buffer", (p) => {
  const instance = place(p, [reversing(0), callingReversed()]);
  const args = MANY.map((ty, i) => BigInt(i * 1000 + 7) * (ty === "i32" || ty === "f32" ? 1n : 0x100000001n));
  deepEqual(instance.call(0, args).results, args.toReversed());
  // Reversed, passed back in the original order, reversed.
  deepEqual(instance.call(1, args).results, args.toReversed());
});

const FIBONACCI = `func 0 (i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CONST 2
  v3:i32 = LT_S v1 v2
  BRANCH v3 b1() b2()
b1():
  RETURN (v1)
b2():
  v4:i32 = CONST 1
  v5:i32 = SUB v1 v4
  v6:i32 = CALL f0(v5) sig0 @0x10
  v7:i32 = SUB v1 v2
  v8:i32 = CALL f0(v7) sig0 @0x20
  v9:i32 = ADD v6 v8
  RETURN (v9)
`;

test("recursive calls keep their values", (p) => {
  const instance = place(p, [FIBONACCI]);
  deepEqual(instance.call(0, [20n]), { status: STATUS.DONE, trap: 0, results: [6765n] });
});

const IMPORTER = `func 0 (i32 i64 f64) -> (i64)
sig 0 (i32 i64 f64) -> (i64)
b0(v1:i32 v2:i64 v3:f64):
  v4:i64 = CALL_IMPORT f0(v1 v2 v3) sig0 @0x10
  v5:i64 = CALL_IMPORT f0(v1 v4 v3) sig0 @0x20
  v6:i64 = ADD v4 v5
  v7:i64 = ADD v6 v2
  RETURN (v7)
`;

test("host functions are called by parking, and may enter the guest again", (p) => {
  const instance = place(p, [
    IMPORTER,
    FIBONACCI.replaceAll("f0(", "f1(").replace("sig 0", "sig 1").replaceAll("sig0", "sig1"),
  ]);
  const { layout } = instance.codegen;
  const seen: bigint[][] = [];
  p.hosts[1] = (args) => {
    seen.push(args.slice(0, 3));
    equal(p.thread.view.getBigUint64(THREAD.PARK_CONTEXT, true), instance.context.address);
    // A nested activation on the same stack, below the parked one.
    deepEqual(instance.call(1, [10n]).results, [55n]);
    return [args[1] * 10n];
  };
  instance.record(layout.importsOffset, instance.hostThunk(0), instance.context.address, 1, 1);
  const outcome = instance.call(0, [3n, 5n, 0x4000000000000000n]);
  deepEqual(outcome.results, [50n + 500n + 5n]);
  deepEqual(seen.map((args) => args.map(String)), [["3", "5", String(0x4000000000000000n)], [
    "3",
    "50",
    String(0x4000000000000000n),
  ]]);
});

const GLOBAL_READER = `func 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = LOAD context.9[OFFSET]
  v3:i32 = ADD v1 v2
  RETURN (v3)
`;

const RECORD_CALLER = `func 1 (ref i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:ref v2:i32):
  v3:i32 = CALL_RECORD (v1 v2) sig0 NULL_FUNCTION @0x33
  v4:i32 = LOAD context.9[OFFSET]
  v5:i32 = ADD v3 v4
  RETURN (v5)
`;

function globalsOffset(): number {
  return compileIr(["func 0 () -> ()\nb0():\n  RETURN ()\n"]).context.layout.globalsOffset;
}

test("a record's code runs in the record's own instance", (p) => {
  const offset = String(globalsOffset());
  const texts = [GLOBAL_READER, RECORD_CALLER].map((text) => text.replace("OFFSET", offset));
  const [one, two] = [place(p, texts.slice(0, 2)), place(p, texts.slice(0, 2), { explicitBounds: true })];
  // The functions' contexts differ in size by their record count only, and globals precede it.
  one.context.view.setInt32(Number(offset), 100, true);
  two.context.view.setInt32(Number(offset), 2000, true);
  const { layout } = one.codegen;
  const own = one.record(layout.functionsOffset, one.functionAddress(0), one.context.address, 1, 0);
  const other = two.record(two.codegen.layout.functionsOffset, two.functionAddress(0), two.context.address, 1, 0);
  deepEqual(one.call(1, [own, 7n]).results, [207n]);
  deepEqual(one.call(1, [other, 7n]).results, [2107n]);
  deepEqual(two.call(1, [own, 7n]).results, [2107n]);
  // A null record faults at the place that its trap site names.
  const outcome = one.call(1, [0n, 7n]);
  equal(outcome.status, STATUS.TRAP);
  const pc = Number(p.thread.view.getBigUint64(THREAD.TRAP_PC, true) - one.address);
  const { trapAt, trapCode, trapPos } = codeTables(one.code);
  const site = trapAt.indexOf(pc);
  deepEqual([trapCode[site], trapPos[site]], [TRAP.NULL_FUNCTION, 0x33]);
  deepEqual(one.call(1, [own, 8n]).results, [208n], "the instance goes on after a trap");
});

test("an import may be another instance's function", (p) => {
  const offset = String(globalsOffset());
  const callee = place(p, [GLOBAL_READER.replace("OFFSET", offset)]);
  const caller = place(p, [`func 0 (i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CALL_IMPORT f1(v1) sig0
  v3:i32 = LOAD context.9[${offset}]
  v4:i32 = SUB v2 v3
  RETURN (v4)
`]);
  callee.context.view.setInt32(Number(offset), 5000, true);
  caller.context.view.setInt32(Number(offset), 1, true);
  caller.record(
    caller.codegen.layout.importsOffset + RECORD.SIZE,
    callee.functionAddress(0),
    callee.context.address,
    1,
    0,
  );
  deepEqual(caller.call(0, [10n]).results, [5009n]);
});

const MOVER = `func 0 (i64 i64 i64) -> ()
sig 0 (i64 i64 i64) -> ()
b0(v1:i64 v2:i64 v3:i64):
  CALL_BUILTIN memory_move(v1 v2 v3) sig0
  RETURN ()
`;
const SETTER = `func 1 (i64 i32 i64) -> ()
sig 1 (i64 i32 i64) -> ()
b0(v1:i64 v2:i32 v3:i64):
  CALL_BUILTIN memory_set(v1 v2 v3) sig1
  RETURN ()
`;

test("memory_move and memory_set agree with copyWithin and fill", (p) => {
  const sizes = [...Array.from({ length: 140 }, (_, i) => i), 191, 192, 193, 256, 1000, 4095, 4096, 4097, 9000];
  for (const cpu of [undefined, new Set<string>()]) {
    const instance = place(p, [MOVER, SETTER], { cpu });
    const model = new Uint8Array(MEMORY_BYTES);
    for (const size of sizes) {
      for (const distance of [-9001, -65, -64, -17, -8, -1, 0, 1, 3, 16, 63, 64, 4096, 9001]) {
        const from = 20000 + (size & 7);
        for (let n = 0; n < 40000; n++) model[n] = n * 31 + (n >> 8) + size;
        p.memory.set(model);
        const base = p.memoryBase;
        instance.call(0, [base + BigInt(from + distance), base + BigInt(from), BigInt(size)]);
        model.copyWithin(from + distance, from, from + size);
        equal(differs(p.memory, model), -1, `move of ${size} by ${distance}`);
      }
      instance.call(1, [p.memoryBase + 777n, BigInt(0x1200 | (size & 0xff)), BigInt(size)]);
      model.fill(size & 0xff, 777, 777 + size);
      equal(differs(p.memory, model), -1, `set of ${size}`);
    }
  }
});

function differs(a: Uint8Array, b: Uint8Array): number {
  const x = new Float64Array(a.buffer, a.byteOffset, 5000);
  const y = new Float64Array(b.buffer, b.byteOffset, 5000);
  // Compared by words if possible; NaNs differ from themselves and are compared by bytes.
  for (let i = 0; i < 5000; i++) {
    if (x[i] === y[i]) continue;
    for (let k = 8 * i; k < 8 * i + 8; k++) if (a[k] !== b[k]) return k;
  }
  return -1;
}

test("a builtin without machine code parks with its number and arguments", (p) => {
  const instance = place(p, [`func 0 (i64) -> (i64)
sig 0 (i32 i64) -> (i64)
b0(v1:i64):
  v2:i32 = CONST 3
  v3:i64 = CALL_BUILTIN memory_grow(v2 v1) sig0
  v4:i64 = ADD v3 v1
  RETURN (v4)
`]);
  p.builtins.memory_grow = (args) => {
    deepEqual(args, [3n, 1000n]);
    return [77n];
  };
  deepEqual(instance.call(0, [1000n]).results, [1077n]);
});

const COUNTDOWN = `func 0 (i32 i64) -> (i64)
sig 0 (i32 i64) -> (i64)
b0(v1:i32 v2:i64):
  v3:i32 = CONST 0
  v4:i32 = EQ v1 v3
  BRANCH v4 b1() b2()
b1():
  RETURN (v2)
b2():
  v5:i32 = CONST 1
  v6:i32 = SUB v1 v5
  v7:i64 = EXTEND_U v1
  v8:i64 = ADD v2 v7
  TAIL_CALL f0(v6 v8) sig0
`;

test("tail calls need no stack", (p) => {
  const instance = place(p, [COUNTDOWN]);
  deepEqual(instance.call(0, [1000000n, 0n]).results, [500000500000n]);
});

test("a tail call through a record comes back to the right instance", (p) => {
  const offset = globalsOffset();
  const tail = `func 0 (ref i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:ref v2:i32):
  TAIL_CALL_RECORD (v1 v2) sig0 NULL_FUNCTION
`;
  const caller = `func 1 (ref i32) -> (i32)
sig 1 (ref i32) -> (i32)
b0(v1:ref v2:i32):
  v3:i32 = CALL f0(v1 v2) sig1
  v4:i32 = LOAD context.9[${offset}]
  v5:i32 = ADD v3 v4
  RETURN (v5)
`;
  const one = place(p, [tail, caller, GLOBAL_READER.replace("OFFSET", String(offset))]);
  const two = place(p, [GLOBAL_READER.replace("OFFSET", String(offset))]);
  one.context.view.setInt32(offset, 10, true);
  two.context.view.setInt32(offset, 300, true);
  const own = one.record(one.codegen.layout.functionsOffset, one.functionAddress(2), one.context.address, 1, 0);
  const other = two.record(two.codegen.layout.functionsOffset, two.functionAddress(0), two.context.address, 1, 0);
  deepEqual(one.call(1, [own, 1n]).results, [21n]);
  deepEqual(one.call(1, [other, 1n]).results, [311n]);
});

test("call sites and frame sizes lead from a trap to the entry", (p) => {
  const spilling = Array.from({ length: 20 }, (_, i) => i);
  const text = `func 1 (i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:i32):
${spilling.map((i) => `  v${i + 2}:i32 = LOAD memory0[v1+${i * 4}]`).join("\n")}
  v30:i32 = CALL f0(v1) sig0 @0x77
${spilling.map((i) => `  v${i + 31}:i32 = ADD v${i + 30} v${i + 2}`).join("\n")}
  RETURN (v50)
`;
  const leaf = `func 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CONST 1
  TRAP_IF v2 UNREACHABLE @0x55
  RETURN (v1)
`;
  const instance = place(p, [leaf, text]);
  const { code } = instance;
  const outcome = instance.call(1, [0n]);
  deepEqual([outcome.status, outcome.trap], [STATUS.TRAP, TRAP.UNREACHABLE]);
  const offset = (address: bigint) => Number(address - instance.address);
  const stackWord = (at: bigint) => p.stack.view.getBigUint64(Number(at - p.stack.address), true);
  const tables = codeTables(code);
  const site = tables.trapAt.indexOf(offset(p.thread.view.getBigUint64(THREAD.TRAP_PC, true)));
  equal(tables.trapPos[site], 0x55);
  let sp = p.thread.view.getBigUint64(THREAD.TRAP_SP, true) + BigInt(tables.trapFrame[site]);
  const caller = tables.callReturn.indexOf(offset(stackWord(sp)));
  equal(tables.callPos[caller], 0x77);
  notEqual(tables.callFrame[caller], 0, "values live across the call are in the frame");
  sp += 8n + BigInt(tables.callFrame[caller]);
  // The entry thunk's call has a site too, and above it is the return address into the process stubs.
  const entry = tables.callReturn.indexOf(offset(stackWord(sp)));
  equal(tables.callFrame[entry], 0);
  equal(sp + 16n, p.thread.view.getBigUint64(THREAD.GUEST_SP, true));
});

const ENDLESS = `func 0 (i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CALL f0(v1) sig0
  v3:i32 = ADD v2 v1
  RETURN (v3)
`;

test("endless recursion exhausts the stack and the thread lives on", (p) => {
  const fenced = place(p, [ENDLESS, FIBONACCI.replaceAll("f0(", "f1(")]);
  for (let k = 0; k < 3; k++) {
    const outcome = fenced.call(0, [1n]);
    deepEqual([outcome.status, outcome.trap], [STATUS.TRAP, TRAP.STACK_EXHAUSTED]);
  }
  deepEqual(fenced.call(1, [10n]).results, [55n]);
  const open = place(p, [ENDLESS], { stackFence: false });
  const outcome = open.call(0, [1n]);
  equal(outcome.status, STATUS.TRAP);
  const fault = p.thread.view.getBigUint64(THREAD.FAULT_ADDRESS, true);
  equal(fault >= p.stack.address && fault < p.stack.address + 4096n, true, "the guard page below the stack faulted");
  deepEqual(fenced.call(1, [10n]).results, [55n]);
});

test("a fault far outside memory is a trap with the access's position", (p) => {
  const instance = place(p, [`func 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = LOAD memory0[v1+4294967292] @0x99
  RETURN (v2)
`]);
  for (const address of [0n, 0x7fffffffn, 0xffffffffn]) {
    equal(instance.call(0, [address]).status, STATUS.TRAP);
    const pc = Number(p.thread.view.getBigUint64(THREAD.TRAP_PC, true) - instance.address);
    const { trapAt, trapCode, trapPos } = codeTables(instance.code);
    const site = trapAt.indexOf(pc);
    deepEqual([trapCode[site], trapPos[site]], [TRAP.MEMORY_OUT_OF_BOUNDS, 0x99]);
    equal(p.thread.view.getBigUint64(THREAD.FAULT_ADDRESS, true), p.memoryBase + address + 4294967292n);
  }
});

test("a switch takes the right edge for every index", (p) => {
  for (const n of [1, 2, 3, 5, 6, 40]) {
    const edges = Array.from({ length: n }, (_, i) => i % 3 === 0 ? `b${1 + (i % 2)}(v${2 + (i % 2)})` : `b${3 + i}()`);
    const blocks = edges.map((edge, i) =>
      edge.endsWith("()") ? `b${3 + i}():\n  v${100 + i}:i32 = CONST ${1000 + i}\n  RETURN (v${100 + i})\n` : ""
    ).join("");
    const used = (k: number) => edges.some((edge) => edge.startsWith(`b${k}(`));
    const text = `func 0 (i32 i32 i32) -> (i32)
b0(v1:i32 v2:i32 v3:i32):
  SWITCH v1 ${edges.join(" ")}
${used(1) ? "b1(v10:i32):\n  RETURN (v10)\n" : ""}${
      used(2) ? "b2(v11:i32):\n  v12:i32 = ADD v11 v1\n  RETURN (v12)\n" : ""
    }${blocks}`;
    const instance = place(p, [renumber(text)]);
    for (const index of [...Array(n + 2).keys(), 0x7fffffff, 0xffffffff]) {
      const taken = Math.min(index, n - 1);
      const expected = taken % 3 !== 0 ? 1000 + taken : taken % 2 === 0 ? 55 : 66 + index;
      deepEqual(instance.call(0, [BigInt(index), 55n, 66n]).results, [BigInt(expected >>> 0)], `${index} of ${n}`);
    }
  }
});

/** Numbers blocks in the order of their appearance, as the text form requires. */
function renumber(text: string): string {
  const order = [...text.matchAll(/^b(\d+)\(/gm)].map((match) => match[1]);
  return text.replace(/\bb(\d+)\(/g, (_, k) => `b${order.indexOf(k)}(`);
}
