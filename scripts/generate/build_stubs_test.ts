/** The stored stubs are those that the generators emit. */
import assert from "node:assert/strict";
import { toHex } from "../../engine/base/hex.ts";
import { CONTEXT, MEMORY } from "../../engine/abi/context_layout.ts";
import { FUNCTION_ALIGNMENT } from "../../engine/codegen/align_image.ts";
import { MachineCode, RELOC } from "../../engine/codegen/machine_code.ts";
import { FAULT_FRAME, paramLocations as armParams } from "../../engine/backend_arm64/abi.ts";
import { registerFile as armRegisters } from "../../engine/backend_arm64/registers.ts";
import { ARM64 } from "../../engine/backend_arm64/target.ts";
import { paramLocations as x64Params } from "../../engine/backend_x64/abi.ts";
import { registerFile as x64Registers } from "../../engine/backend_x64/registers.ts";
import { X64 } from "../../engine/backend_x64/target.ts";
import { CPU_FEATURES } from "../../engine/host/cpu.ts";
import { TY } from "../../engine/ir/types.ts";
import { assembleArm64 } from "./assembler/assemble_arm64.ts";
import { assembleX64 } from "./assembler/assemble_x64.ts";
import { FOLDER, generatedFiles, generatedStubs, GENERATORS, stubContext, stubVariants } from "./build_stubs.ts";
import { outOfDate } from "./generated_files.ts";

const FILLERS = { x64: X64.filler, arm64: ARM64.filler };

Deno.test("the stored stubs are up to date", () => {
  assert.deepEqual(outOfDate(FOLDER, generatedFiles()), [], "run `deno task build:stubs`");
});

/** Everything that stubs put into an image. */
function contents(code: MachineCode) {
  const { length, bytes, stubStart, relocAt, relocKind, relocTarget, callRows, trapRows, pollAt } = code;
  return {
    bytes: bytes.slice(0, length),
    stubStart,
    relocs: relocAt.map((at, k) => [at, relocKind[k], relocTarget[k]]),
    callRows,
    trapRows,
    pollAt,
  };
}

Deno.test("stored image stubs equal generated ones for all options, processors and layouts", () => {
  for (const { name, emitStubs } of GENERATORS) {
    const stored = name === "x64" ? X64.emitStubs : ARM64.emitStubs;
    const none = Object.fromEntries(Object.keys(stubContext({}).optimizations).map((key) => [key, false]));
    const optimizations = none as unknown as ReturnType<typeof stubContext>["optimizations"];
    // In a job of another processor, the list may be that of this one.
    const cpus = [[], ["avx"], CPU_FEATURES[name], ...CPU_FEATURES[name].map((feature) => [feature])];
    let variants = 0;
    for (const parts of stubVariants(cpus)) {
      for (const [tagsOffset, extra] of [[undefined, {}], [1 << 20, { optimizations, stackFence: true }]] as const) {
        const context = stubContext({ ...parts, ...extra }, tagsOffset);
        const code = new MachineCode(0, 0);
        stored(context, code);
        assert.deepEqual(contents(code), contents(generatedStubs(emitStubs, context)));
        variants++;
      }
    }
    assert.equal(variants, 2 ** 6 * cpus.length);
  }
});

/** The same with the addresses of thunks. */
function thunkContents(code: MachineCode) {
  return { ...contents(code), entry: code.entryThunk, host: code.hostThunk };
}

const TYPES = [TY.I32, TY.I64, TY.F32, TY.F64, TY.V128, TY.REF];

/** Lists of types: one type up to each count at which locations change, all pairs, and random ones up to the limit. */
function typeLists(): Uint8Array[] {
  const random = randomBelow(1);
  const lengths = [...Array.from({ length: 40 }, (_, k) => k), 100, 999, 1000];
  return [
    ...TYPES.flatMap((type) => Array.from({ length: 12 }, (_, count) => new Uint8Array(count).fill(type))),
    ...TYPES.flatMap((first) => TYPES.map((second) => Uint8Array.of(first, second))),
    ...lengths.flatMap((length) => [1, 2, 3].map(() => Uint8Array.from({ length }, () => TYPES[random(TYPES.length)]))),
  ];
}

/** A generator of numbers below `bound`, the same in every run. */
function randomBelow(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = Math.imul(state, 1_664_525) + 1_013_904_223 | 0;
    return (state >>> 8) % bound;
  };
}

Deno.test("thunks of stored parts equal generated ones for all lists of types, options and processors", () => {
  const lists = typeLists();
  const random = randomBelow(2);
  const signatures = lists.flatMap((list) => [
    { params: list, results: lists[random(lists.length)] },
    { params: lists[random(lists.length)], results: list },
    { params: list, results: new Uint8Array(0) },
  ]);
  for (const target of [X64, ARM64]) {
    const generator = GENERATORS.find(({ name }) => name === target.name)!;
    for (const kind of ["emitEntryThunk", "emitHostThunk"] as const) {
      for (const cpu of [[], ["avx"], CPU_FEATURES[target.name]]) {
        const explicitBounds = random(2) === 0, fuel = random(2) === 0;
        const context = stubContext({ explicitBounds, fuel, cpu: new Set(cpu), signatures });
        const [ours, theirs] = [0, 1].map(() => new MachineCode(0, signatures.length));
        for (const id of signatures.keys()) {
          target[kind](id, context, ours);
          generator[kind](id, context, theirs);
        }
        assert.deepEqual(thunkContents(ours), thunkContents(theirs), `${target.name} ${kind}`);
      }
    }
  }
});

Deno.test("stored process stubs equal generated ones; there are none of unknown systems", () => {
  for (const { name, systems, processStubs } of GENERATORS) {
    const target = name === "x64" ? X64 : ARM64;
    for (const os of systems) assert.deepEqual(target.processStubs(os), processStubs(os));
    assert.throws(() => target.processStubs("plan9"), /plan9/);
  }
});

/** The first parameter of the rest of a function, which is the address of the frame. */
const ADDRESS = Uint8Array.of(TY.I64);
const LENGTH = CONTEXT.SIZE + MEMORY.LENGTH;

/** The text of a loop entry for a frame of `bytes`, and the distance to its return address. */
const LOOP_ENTRIES = {
  x64: (bytes: number, explicitBounds: boolean) => ({
    distance: bytes,
    code: assembleX64([
      ...(explicitBounds ? [`mov r14, [r15 + ${LENGTH}]`] : []),
      `mov ${x64Registers(false).names[x64Params(ADDRESS)[0]]}, rsp`,
      "call next",
      "next:",
      ...(bytes === 0 ? [] : [`add rsp, ${bytes}`]),
      "ret",
    ].join("\n")).bytes,
  }),
  arm64: (bytes: number, explicitBounds: boolean) => {
    const released = bytes - FAULT_FRAME - 8;
    return {
      distance: bytes - FAULT_FRAME,
      code: assembleArm64([
        ...(explicitBounds ? [`ldr x27, [x28, #${LENGTH}]`] : []),
        `mov ${armRegisters(false).names[armParams(ADDRESS)[0]]}, sp`,
        "next:",
        "bl next",
        ...(released < 4096 ? [] : [`add sp, sp, #${Math.floor(released / 4096)}, lsl #12`]),
        ...(released >= 4096 && released % 4096 === 0 ? [] : [`add sp, sp, #${released % 4096}`]),
        "ldp xzr, x30, [sp], #16",
        "ret",
      ].join("\n")).bytes,
    };
  },
} as const;

Deno.test("stored entries of loops are those of an assembler, for frames of all sizes", () => {
  const sizes = {
    x64: [0, 8, 16, 120, 127, 128, 136, 4096, 70000, 1 << 24],
    // The distance to the return address, which is in the frame, and FAULT_FRAME.
    arm64: [8, 24, 4088, 4096, 4104, 4112, 8200, 70008, (1 << 24) - 8, 1 << 24].map((bytes) => bytes + FAULT_FRAME),
  };
  for (const { name, loopEntry } of [X64, ARM64]) {
    for (const bytes of sizes[name]) {
      for (const explicitBounds of [false, true]) {
        const code = new MachineCode(3, 0);
        code.length = 5;
        const start = loopEntry!.emit(stubContext({ explicitBounds }), code, 2, bytes);
        assert.equal(start, FUNCTION_ALIGNMENT);
        assert.ok(code.bytes.subarray(5, start).every((byte) => byte === FILLERS[name]));
        const { distance, code: expected } = LOOP_ENTRIES[name](bytes, explicitBounds);
        assert.equal(toHex(code.bytes.slice(start, code.length)), toHex(expected), `${name} ${bytes}`);
        const { relocs, callRows, trapRows } = contents(code);
        const returnsTo = start + 8 + (explicitBounds ? 4 : 0);
        assert.deepEqual(relocs, [[returnsTo - 4, RELOC.FUNCTION, 2]]);
        assert.deepEqual([...callRows, ...trapRows], [returnsTo, distance, 0, 0, -1, 0]);
      }
    }
  }
  for (const bytes of [0, 16, (1 << 24) + 32]) {
    const emit = () => ARM64.loopEntry!.emit(stubContext({}), new MachineCode(1, 0), 0, bytes);
    assert.throws(emit, /has no loop entry/);
  }
});
