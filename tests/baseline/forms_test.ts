/** The kernel generates the same code as TypeScript, as WebAssembly and as machine code. */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { ARM64 } from "../../engine/backend_arm64/target.ts";
import { X64 } from "../../engine/backend_x64/target.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { compileBodies } from "../../engine/baseline/compile_bodies.ts";
import { OPCODE_TABLE } from "../../engine/baseline/generated/opcode_table.ts";
import { type Kernel, type SecondKernel, withKernel } from "../../engine/baseline/kernel_forms.ts";
import { sourceKernel } from "../../engine/baseline/source_kernel.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { MachineCode, STUB } from "../../engine/codegen/machine_code.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { encodeModule } from "../../engine/binary/encode.ts";
import { moduleInterface } from "../../engine/translate/module_interface.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import type { Module } from "../../engine/wasm/module.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { COMPILED_FEATURES } from "../fuzz/compare.ts";
import { generateModules } from "../fuzz/generate_module.ts";
import { stackProgram } from "../fuzz/stack_programs.ts";
import { hostArchitecture } from "../../engine/host/cpu.ts";
import { THREAD } from "../../engine/abi/context_layout.ts";
import { nativeKernels } from "../../engine/tiers/native_kernel.ts";
import { realmStore } from "../../engine/api/engine.ts";
import { nativeKernel } from "../../scripts/package/build_native_kernel.ts";
import { generatedStubs, GENERATORS, stubContext } from "../../scripts/generate/build_stubs.ts";

/** The complete output for a module; `linked`: with all references resolved. */
function output(kernel: Kernel, binary: Uint8Array, explicitBounds: boolean, second?: SecondKernel, linked = false) {
  return moduleOutput(kernel, decodeModule(binary), explicitBounds, second, linked);
}

function moduleOutput(
  kernel: Kernel,
  module: Module,
  explicitBounds: boolean,
  second?: SecondKernel,
  linked = false,
) {
  const features = featureSet({ "stack-switching": true });
  const valid = validateModule(module, features, { bodies: false });
  const { layout, signatures } = moduleInterface(valid);
  const code = new MachineCode(valid.funcs.length, signatures.length);
  const cpu = new Set(explicitBounds ? [] : ["popcnt", "bmi2", "lzcnt", "bmi1"]);
  const options = {
    ...codeSettings({
      explicitBounds,
      interruptible: explicitBounds,
      fuel: explicitBounds,
      deterministic: explicitBounds,
    }),
    stackFence: !explicitBounds,
    cpu,
    features,
    constants: 0,
  };
  const uncovered = compileBodies(kernel, valid, layout, options, code, { second });
  if (linked) resolveAll(code);
  const { bytes, length, functionStart, functionEnd, functionFrame, callRows, trapRows, relocAt, relocTarget } = code;
  const words = [functionStart, functionEnd, functionFrame, callRows, trapRows].map((column) => [...column]);
  return { uncovered, bytes: bytes.slice(0, length), words, relocAt, relocTarget, used: valid.usedFeatures };
}

/** Generated modules, and a program of stack switching. */
function modulesOf(seed: number): Uint8Array[] {
  return [...generateModules(seed, COMPILED_FEATURES), encodeModule(parseModule(stackProgram(seed)))];
}

/** Resolves the references of an image, which has no stubs here: those to stubs stay. */
function resolveAll(code: MachineCode): void {
  code.stubStart.fill(0);
  const target = hostArchitecture() === "arm64" ? ARM64 : X64;
  target.relocate(code);
  code.relocAt.length = code.relocKind.length = code.relocTarget.length = 0;
}

Deno.test("the kernel generates the same code as TypeScript and as WebAssembly", () => {
  const source = sourceKernel(fromBase64(OPCODE_TABLE));
  let codeBytes = 0;
  for (let seed = 0; seed < 150; seed++) {
    for (const binary of modulesOf(seed)) {
      const explicit = seed % 2 === 0;
      const expected = output(source, binary, explicit);
      assert.deepEqual(withKernel("x64", (kernel) => output(kernel, binary, explicit)), expected, `seed ${seed}`);
      codeBytes += expected.bytes.length;
    }
  }
  assert(codeBytes > 100_000, `only ${codeBytes} bytes of code`);
});

Deno.test("the kernel generates the same code as machine code", async () => {
  const arch = hostArchitecture();
  const make = nativeKernels(() => realmStore().thread);
  const native = await nativeKernel(arch);
  let kernel = make(native);
  for (let seed = 0; seed < 150; seed++) {
    if (seed % 50 === 49) {
      kernel?.release?.();
      kernel = make(native);
    }
    assert(kernel !== undefined);
    for (const binary of modulesOf(seed)) {
      const explicit = seed % 2 === 0;
      const expected = withKernel(arch, (each) => output(each, binary, explicit));
      assert.deepEqual(output(kernel, binary, explicit), expected, `seed ${seed}`);
    }
  }
  kernel?.release?.();
});

Deno.test("machine code of the kernel keeps the thread's slots, which may hold arguments of a builtin", async () => {
  const { thread } = realmStore();
  const kernel = nativeKernels(() => thread)(await nativeKernel(hostArchitecture()));
  assert(kernel !== undefined);
  const slots = new Uint32Array(thread.state.u32.buffer, thread.state.u32.byteOffset + THREAD.SLOTS, 64);
  const filled = Uint32Array.from(slots, (_, k) => 0x51075000 + k);
  slots.set(filled);
  output(kernel, manyFunctions(40), false);
  assert.deepEqual([...slots], [...filled]);
  kernel.release?.();
});

Deno.test("damaged machine code of the kernel is not used", async () => {
  const native = await nativeKernel(hostArchitecture());
  const make = (code: string) => nativeKernels(() => realmStore().thread)({ ...native, code });
  assert.equal(make(native.code.slice(0, -8)), undefined);
  const kernel = make(native.code);
  assert(kernel !== undefined);
  kernel.release?.();
});

/** The binary form of a module with `count` functions, each of which calls others; `bodies` replaces some. */
function manyFunctions(count: number, bodies: Readonly<Record<number, string>> = {}): Uint8Array {
  const usual = (k: number) =>
    `(if (result i32) (i32.eqz (local.get 0)) (then (i32.const ${k})) (else
      (i32.load (local.get 0)) (call ${(k * 7919) % count} (i32.sub (local.get 0) (i32.const 1)))
      (call ${(k + 1) % count} (i32.const 0)) i32.add i32.add))`;
  const functions = Array.from({ length: count }, (_, k) => `(func (param i32) (result i32) ${bodies[k] ?? usual(k)})`);
  return parseModule(`(module (memory 1) ${functions.join("\n")})`).bytes;
}

/** Compiles with two native kernels; counts the threads. */
async function withTwo<T>(action: (kernel: Kernel, second: SecondKernel) => T): Promise<{ value: T; threads: number }> {
  const native = await nativeKernel(hostArchitecture());
  const make = nativeKernels(() => realmStore().thread);
  const [kernel, other] = [make(native), make(native)];
  assert(kernel !== undefined && other !== undefined);
  let threads = 0;
  const { startBodies } = other;
  const counted = startBodies && ((first: number, count: number) => {
    threads++;
    return startBodies(first, count);
  });
  try {
    return { value: action(kernel, () => ({ ...other, ...(counted && { startBodies: counted }) })), threads };
  } finally {
    kernel.release?.();
    other.release?.();
  }
}

Deno.test("two kernels, one in a thread of its own, generate the code of one", async () => {
  const binary = manyFunctions(6000);
  for (const explicit of [false, true]) {
    const expected = withKernel(hostArchitecture(), (kernel) => output(kernel, binary, explicit));
    const { value, threads } = await withTwo((kernel, second) => output(kernel, binary, explicit, second));
    assert(isDeepStrictEqual(value, expected));
    assert.equal(threads, 1);
  }
});

/** The binary form of a module whose function `k` has a body padded with `size(k)` instructions `nop`. */
function padded(count: number, size: (k: number) => number): Uint8Array {
  const NOP = 0x01;
  const module = decodeModule(manyFunctions(count));
  module.funcs = module.funcs.map(({ typeIndex, body }, k) => {
    const bytes = new Uint8Array(body.bytes.length + size(k)).fill(NOP);
    bytes[0] = 0; // no locals
    bytes.set(body.bytes.subarray(1), size(k) + 1);
    return { typeIndex, body: { bytes, offset: body.offset } };
  });
  return encodeModule(module);
}

Deno.test("the kernel leaves the thread's buffer for arguments alone", async () => {
  const kernel = nativeKernels(() => realmStore().thread)(await nativeKernel(hostArchitecture()));
  assert(kernel !== undefined);
  const { state: { u8 } } = realmStore().thread;
  const buffer = u8.subarray(THREAD.OVERFLOW, THREAD.OVERFLOW + 4096);
  const before = buffer.slice();
  try {
    buffer.fill(0xa5);
    for (const explicit of [false, true]) {
      for (let seed = 0; seed < 20; seed++) {
        for (const binary of generateModules(seed, COMPILED_FEATURES)) output(kernel, binary, explicit);
      }
    }
    assert(buffer.every((byte) => byte === 0xa5));
  } finally {
    buffer.set(before);
    kernel.release?.();
  }
});

Deno.test("two kernels continue after a body that is larger than a round", async () => {
  const MB = 1 << 20;
  const cases = [
    { count: 600, size: (k: number) => k === 300 ? 3 * MB : 2000, threads: 1 },
    { count: 600, size: (k: number) => k === 0 ? 3 * MB : 2000, threads: 1 },
    { count: 600, size: (k: number) => k === 599 ? 3 * MB : 2000, threads: 0 },
    { count: 5, size: () => MB, threads: 2 },
    { count: 1, size: () => 3 * MB, threads: 0 },
  ];
  for (const { count, size, threads: expectedThreads } of cases) {
    const binary = padded(count, size);
    const expected = withKernel(hostArchitecture(), (kernel) => output(kernel, binary, false, undefined, true));
    const { value, threads } = await withTwo((kernel, second) => output(kernel, binary, false, second, true));
    assert(isDeepStrictEqual(value, expected), `${count}`);
    assert.equal(threads, expectedThreads, `${count}`);
  }
});

/** The module with bodies that are not views of one binary. */
function withSeparateBodies(module: Module): Module {
  return {
    ...module,
    funcs: module.funcs.map(({ typeIndex, body: { bytes, offset } }) => ({
      typeIndex,
      body: { bytes: bytes.slice(), offset },
    })),
  };
}

Deno.test("the code does not depend on whether the bodies are views of one binary", () => {
  const data = (text: string) => parseModule(text).bytes;
  const nothing = data(`(module (import "" "f" (func)))`);
  const empty = Uint8Array.from([...nothing, 10, 1, 0]);
  const binaries = [
    nothing,
    empty,
    data("(module (func))"),
    data("(module (func) (func (result i32) (i32.const 7)))"),
    data(`(module (memory 1) (func (param i32) (drop (i32.load (local.get 0)))) (data (i32.const 0) "after"))`),
    manyFunctions(500),
    withLongSizes(manyFunctions(500)),
  ];
  for (const binary of binaries) {
    for (const explicit of [false, true]) {
      const [views, copies] = [decodeModule(binary), withSeparateBodies(decodeModule(binary))].map((module) =>
        withKernel(hostArchitecture(), (kernel) => moduleOutput(kernel, module, explicit))
      );
      assert(isDeepStrictEqual(views, copies));
    }
  }
});

/** The same module with the body sizes in five bytes each; its code section is the last. */
function withLongSizes(binary: Uint8Array): Uint8Array {
  const { funcs } = decodeModule(binary);
  const long = (value: number) => [0, 7, 14, 21, 28].map((shift) => (value >>> shift) & 127 | (shift < 28 ? 128 : 0));
  const code = funcs.flatMap(({ body: { bytes } }) => [...long(bytes.length), ...bytes]);
  const content = [...long(funcs.length), ...code];
  const before = binary.subarray(0, sectionStart(binary, funcs[0].body.offset));
  return Uint8Array.from([...before, 10, ...long(content.length), ...content]);
}

/** The start of the section that contains offset `at`. */
function sectionStart(binary: Uint8Array, at: number): number {
  const HEADER = 8;
  for (let start = HEADER;;) {
    let size = 0;
    let end = start + 1;
    for (let shift = 0;; shift += 7) {
      size |= (binary[end] & 127) << shift;
      if (binary[end++] < 128) break;
    }
    if (end + size > at) return start;
    start = end + size;
  }
}

Deno.test("two kernels without space for all of their bodies generate the code of one", async () => {
  const binary = manyFunctions(6000);
  const expected = withKernel(hostArchitecture(), (kernel) => output(kernel, binary, false, undefined, true));
  // As if the output were full after half of the bodies.
  const narrow = (kernel: Kernel): Kernel => ({
    ...kernel,
    writeBodies: (first, count) => kernel.writeBodies(first, Math.ceil(count / 2)),
    ...(kernel.startBodies && { startBodies: (first, count) => kernel.startBodies!(first, Math.ceil(count / 2)) }),
  });
  for (const [first, other] of [[narrow, narrow], [narrow, identity], [identity, narrow]]) {
    const { value } = await withTwo((kernel, second) =>
      output(first(kernel), binary, false, () => other(second()!), true)
    );
    assert(isDeepStrictEqual(value, expected));
  }
});

function identity(kernel: Kernel): Kernel {
  return kernel;
}

Deno.test("two kernels report the first invalid body and the first use of a feature", async () => {
  const invalid = "(i32.const 1) (drop) (i64.const 1)";
  const vector = "(i32x4.extract_lane 0 (v128.const i32x4 1 2 3 4))";
  const cases: Readonly<Record<number, string>>[] = [{ 100: invalid, 5900: invalid }, { 5900: invalid }, {
    5900: vector,
  }, { 100: vector }];
  for (const bodies of cases) {
    const binary = manyFunctions(6000, bodies);
    const attempt = (kernel: Kernel, second?: SecondKernel) => {
      try {
        return output(kernel, binary, false, second);
      } catch (error) {
        return String(error);
      }
    };
    const expected = withKernel(hostArchitecture(), (kernel) => attempt(kernel));
    assert(isDeepStrictEqual((await withTwo(attempt)).value, expected), `${expected}`);
  }
});

Deno.test("one kernel compiles everything where the system gives no thread", async () => {
  const binary = manyFunctions(6000);
  const { value } = await withTwo((kernel, second) =>
    output(kernel, binary, false, () => ({
      ...second()!,
      startBodies() {
        throw new Error("no thread");
      },
    }))
  );
  assert(isDeepStrictEqual(value, withKernel(hostArchitecture(), (kernel) => output(kernel, binary, false))));
});

Deno.test("a trap or a fault of the kernel in a thread of its own is an error, and the thread ends", async () => {
  const arch = hostArchitecture();
  const native = await nativeKernel(arch);
  const { emitStubs } = GENERATORS.find(({ name }) => name === arch)!;
  const trap = generatedStubs(emitStubs, stubContext({})).stubStart[STUB.TRAP + 1];
  const { state } = realmStore().thread;
  const trapFields = state.u8.subarray(THREAD.TRAP_CODE, THREAD.CALL_CODE);
  const before = trapFields.slice();
  const { thunk } = native.writeBodies;
  const kernel = nativeKernels(() => realmStore().thread)({ ...native, writeBodies: { start: trap, thunk } });
  assert(kernel?.startBodies !== undefined && kernel.startValidation !== undefined);
  for (let round = 0; round < 3; round++) {
    assert.throws(kernel.startBodies(0, 1), /trapped in a thread/);
    // The row of this body is far outside of the memory.
    assert.throws(kernel.startValidation(0x3fff_0000, 1), /trapped in a thread/);
    assert.equal(kernel.compileBodies(0, 0), 0);
  }
  assert.deepEqual(trapFields, before, "the traps of this thread are its own");
  kernel.release?.();
});
