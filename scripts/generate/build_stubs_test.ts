/** The stored stubs are those that the generators emit. */
import assert from "node:assert/strict";
import { toHex } from "../../engine/base/hex.ts";
import { CONTEXT, MEMORY } from "../../engine/abi/context_layout.ts";
import { FUNCTION_ALIGNMENT } from "../../engine/codegen/align_image.ts";
import { MachineCode, RELOC } from "../../engine/codegen/machine_code.ts";
import { StubStore } from "../../engine/codegen/stored_stubs.ts";
import { STUBS as ARM64_STUBS } from "../../engine/backend_arm64/generated_stubs.ts";
import { STUBS as X64_STUBS } from "../../engine/backend_x64/generated_stubs.ts";
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
const TEXTS = { x64: X64_STUBS, arm64: ARM64_STUBS };

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
    const { emitStubs: stored } = new StubStore(TEXTS[name], FILLERS[name]);
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

Deno.test("stored thunks equal generated ones for all options, processors and places; others are generated", () => {
  const signature = (params: readonly number[], results: readonly number[]) => ({
    params: Uint8Array.from(params),
    results: Uint8Array.from(results),
  });
  for (const { name, thunks } of GENERATORS) {
    for (const kind of ["entry", "host"] as const) {
      let generated = 0;
      const stored = new StubStore(TEXTS[name], FILLERS[name]).thunk(kind, (...args) => {
        generated++;
        thunks[kind](...args);
      });
      const ints = Array.from({ length: 11 }, () => TY.I32);
      for (const params of [[], [TY.I32], ints.slice(0, 7), ints, [TY.I32, TY.I64], [TY.I32, TY.F64]]) {
        for (const flag of [false, true]) {
          for (const cpu of [[], CPU_FEATURES[name]]) {
            const before = generated;
            const signatures = [signature(params, [TY.I32]), signature(params, [TY.I32])];
            const context = stubContext({ explicitBounds: flag, fuel: flag, cpu: new Set(cpu), signatures });
            const [ours, theirs] = [new MachineCode(0, 2), new MachineCode(0, 2)];
            for (const id of [0, 1]) {
              stored(id, context, ours);
              thunks[kind](id, context, theirs);
            }
            assert.deepEqual(thunkContents(ours), thunkContents(theirs), `${name} ${kind} ${params}`);
            // On x64, thunks with vector registers are stored for processors with AVX only.
            if (cpu.length > 0) assert.equal(generated, before, `${name} ${kind} ${params}`);
          }
        }
      }
      if (name === "arm64") assert.equal(generated, 0);
      const before = generated;
      stored(0, stubContext({ signatures: [signature([TY.F32, TY.F64], [])] }), new MachineCode(0, 1));
      assert.equal(generated, before + 1);
    }
  }
});

Deno.test("stored process stubs equal generated ones; unknown systems go to the generator", () => {
  for (const { name, processStubs } of GENERATORS) {
    const stored = new StubStore(TEXTS[name], FILLERS[name]).process(processStubs);
    for (const os of ["linux", "darwin"]) assert.deepEqual(stored(os), processStubs(os));
    assert.throws(() => stored("plan9"), /plan9/);
  }
});

Deno.test("references are passed as 64-bit integers are: both have one stored thunk", () => {
  for (const { name, thunks } of GENERATORS) {
    for (const kind of ["entry", "host"] as const) {
      const [references, integers] = [TY.REF, TY.I64].map((type) => {
        const signature = { params: Uint8Array.of(TY.I32, type, type), results: Uint8Array.of(type) };
        const code = new MachineCode(0, 1);
        thunks[kind](0, stubContext({ signatures: [signature] }), code);
        return thunkContents(code);
      });
      assert.deepEqual(references, integers, `${kind} thunks of ${name}`);
    }
    const { hasEntryThunk } = new StubStore(TEXTS[name], FILLERS[name]);
    const signature = (...params: number[]) => ({ params: Uint8Array.from(params), results: Uint8Array.of() });
    const signatures = [signature(TY.I32, TY.REF), signature(TY.F32, TY.I64, TY.F64, TY.V128)];
    assert.deepEqual([0, 1].map((id) => hasEntryThunk(id, stubContext({ signatures }))), [true, false]);
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
