/** The stored stubs are those that the generators emit. */
import assert from "node:assert/strict";
import { MachineCode } from "../../engine/codegen/machine_code.ts";
import { StubStore } from "../../engine/codegen/stored_stubs.ts";
import { STUBS as ARM64_STUBS } from "../../engine/backend_arm64/generated_stubs.ts";
import { STUBS as X64_STUBS } from "../../engine/backend_x64/generated_stubs.ts";
import { ARM64 } from "../../engine/backend_arm64/target.ts";
import { X64 } from "../../engine/backend_x64/target.ts";
import { CPU_FEATURES } from "../../engine/host/cpu.ts";
import { TY } from "../../engine/ir/types.ts";
import { FOLDER, generatedFiles, generatedStubs, GENERATORS, stubContext } from "./build_stubs.ts";
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
    const stored = new StubStore(TEXTS[name], FILLERS[name]).emitter(() => assert.fail("a variant is not stored"));
    const none = Object.fromEntries(Object.keys(stubContext({}).optimizations).map((key) => [key, false]));
    const optimizations = none as unknown as ReturnType<typeof stubContext>["optimizations"];
    for (const explicitBounds of [false, true]) {
      for (const fuel of [false, true]) {
        for (const cpu of [[], CPU_FEATURES[name], ...CPU_FEATURES[name].map((feature) => [feature])]) {
          for (
            const [tagsOffset, extra] of [[undefined, {}], [1 << 20, { optimizations, stackFence: true }]] as const
          ) {
            const context = stubContext({ explicitBounds, fuel, cpu: new Set(cpu), ...extra }, tagsOffset);
            const code = new MachineCode(0, 0);
            stored(context, code);
            assert.deepEqual(contents(code), contents(generatedStubs(emitStubs, context)));
          }
        }
      }
    }
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
