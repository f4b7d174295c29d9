/**
 * The verifier of machine code: proves the code of programs, names the unproven accesses, and catches every mutant of
 * proven code.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { OPTIMIZING_ARM64 as ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 as X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { type CompiledCode, compileModule, stubContext } from "../../engine/compile/compile.ts";
import type { CompileOptions } from "../../engine/compile/compile_options.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { REASON } from "../../engine/verify/analysis.ts";
import { ARM64_MUTANT_KINDS, ARM64_PATCHES, arm64MutantsOf } from "../../engine/verify/testing/arm64_mutants.ts";
import { reasonOf } from "../../engine/verify/testing/mutant_reasons.ts";
import { MUTANT_KINDS, mutantsOf, X64_PATCHES } from "../../engine/verify/testing/mutants.ts";
import { functionVerifier } from "../../engine/verify/verify_code.ts";
import { X64_MACHINE } from "../../engine/verify/x64_machine.ts";
import { machineModuleOf, machineOf, verifyCompiled } from "../../engine/compile/verify_module.ts";
import type { Finding } from "../../engine/verify/verify_code.ts";
import type { MachineModule } from "../../engine/verify/machine_module.ts";
import { STUB } from "../../engine/codegen/machine_code.ts";
import { TRAP } from "../../engine/base/traps.ts";
import { prepareRandom, verifyRandom } from "./random_code.ts";

await prepareRandom();

const OPTIONS: CompileOptions = {
  target: X64,
  features: featureSet(),
  optimizations: optimizationSet(),
  settings: codeSettings(),
  cpu: new Set(["avx", "bmi1", "bmi2", "lzcnt", "popcnt", "sse41", "sse42"]),
};

const ARM64_OPTIONS: CompileOptions = { ...OPTIONS, target: ARM64, cpu: new Set(["lse"]) };
/** Both architectures, and arm64 without its atomic instructions. */
const ARCHITECTURES = [OPTIONS, ARM64_OPTIONS, { ...ARM64_OPTIONS, cpu: new Set<string>() }];

function compiled(source: string | Uint8Array, options = OPTIONS): CompiledCode {
  return compileModule(NewEngine().parse(source), options);
}

function viewOf(code: CompiledCode, options = OPTIONS): MachineModule {
  return machineModuleOf(code, options, stubContext(code.valid, options));
}

function findingsOf(code: CompiledCode, options = OPTIONS): Finding[] {
  return verifyCompiled(code, options, stubContext(code.valid, options));
}

function program(name: string): Uint8Array {
  return readFileSync(new URL(`../../${name}`, import.meta.url));
}

const PROGRAMS = [
  "bench/wasm/hash_table.wasm",
  "bench/wasm/json.wasm",
  "bench/wasm/threaded_vm.wasm",
  "bench/wasm/virtual_calls.wasm",
  "bench/wasm/exceptions_rare.wasm",
  "bench/wasm/tail_vm.wasm",
  "examples/wasi/lisp.wasm",
  "examples/wasi/words.wasm",
  "bench/wasm/gc_shapes.wasm",
  "bench/wasm/gc_trees.wasm",
  "bench/wasm/refs_dispatch.wasm",
];

Deno.test("optimized code of programs is proven", () => {
  for (const options of ARCHITECTURES) {
    for (const name of PROGRAMS) deepEqual(findingsOf(compiled(program(name), options), options), [], name);
  }
});

Deno.test("code of recordings and of their replays is proven", () => {
  for (const stack of ["native", "logged"] as const) {
    for (const architecture of [OPTIONS, ARM64_OPTIONS]) {
      const options: CompileOptions = {
        ...architecture,
        settings: codeSettings({ deterministic: true, nans: "x64", stack }),
      };
      for (const name of PROGRAMS) deepEqual(findingsOf(compiled(program(name), options), options), [], name);
    }
  }
});

Deno.test("baseline code of programs is proven, with guard pages and with explicit bounds", () => {
  for (const explicitBounds of [false, true]) {
    for (const architecture of [OPTIONS, ARM64_OPTIONS]) {
      const options: CompileOptions = {
        ...architecture,
        tier: "baseline",
        settings: codeSettings({ explicitBounds }),
      };
      for (const name of PROGRAMS) deepEqual(findingsOf(compiled(program(name), options), options), [], name);
    }
  }
});

Deno.test("code of random modules is proven", () => {
  let functions = 0;
  for (let seed = 1; seed <= 12; seed++) {
    const result = verifyRandom(seed);
    deepEqual(result.unproven, []);
    functions += result.functions;
  }
  ok(functions > 500);
});

const FILLED = [
  "(array.new $n (local.get 2) (local.get 1))",
  "(array.new $n (local.get 2) (i32.const 9))",
  "(array.fill $n (local.get 0) (local.get 1) (local.get 2) (i32.const 9)) (local.get 0)",
  "(array.fill $n (local.get 0) (local.get 1) (local.get 2) (local.get 3)) (local.get 0)",
];

/** A module with array type $n and a function that leaves an array. */
function fillOf(body: string): string {
  return `(module (type $n (array (mut i32))) (func (param (ref null $n) i32 i32 i32) (result (ref null $n)) ${body}))`;
}

Deno.test("fills of arrays are proven, and not beyond their ends", () => {
  for (const body of FILLED) {
    for (const tier of ["optimizing", "baseline"] as const) {
      for (const architecture of ARCHITECTURES) {
        const options: CompileOptions = { ...architecture, tier };
        deepEqual(findingsOf(compiled(fillOf(body), options), options), [], `${body} ${tier} ${options.target.name}`);
      }
      const code = compiled(fillOf(body), { ...OPTIONS, tier });
      const bytes = code.bytes.slice();
      const start = code.tables.functionStart[0];
      // The loop ends where both addresses are equal: ja, jae -> jne, je; the end may have been passed.
      const isLoopEnd = (_: number, at: number) =>
        at > start && (bytes[at] & 0xfb) === 0x73 && isCompare(bytes, at - 3);
      const at = bytes.findLastIndex(isLoopEnd);
      ok(at > start, body);
      bytes[at] = bytes[at] === 0x73 ? 0x74 : 0x75;
      const reason = functionVerifier(X64_MACHINE, { ...viewOf(code), bytes }).verify(0)?.reason;
      equal(reason, REASON.OBJECT, `${body} ${tier}`);
    }
  }
});

/** Whether the instruction at `at` is CMP of two registers of 64 bits. */
function isCompare(bytes: Uint8Array, at: number): boolean {
  return (bytes[at] & 0xf8) === 0x48 && (bytes[at + 1] === 0x39 || bytes[at + 1] === 0x3b) && bytes[at + 2] >= 0xc0;
}

Deno.test("a range that begins at an index is not taken for one that begins at the first element", () => {
  // Both numbers are below the length of the array, but their sum is not compared with it.
  const code = compiled(
    `(module (type $n (array (mut i32))) (func (param (ref $n) i32 i32)
      (drop (array.get $n (local.get 0) (local.get 1))) (drop (array.get $n (local.get 0) (local.get 2)))
      (array.copy $n $n (local.get 0) (local.get 1) (local.get 0) (i32.const 0) (local.get 2))))`,
    { ...OPTIONS, tier: "baseline" },
  );
  const bytes = code.bytes.slice();
  const verify = () => functionVerifier(X64_MACHINE, { ...viewOf(code), bytes }).verify(0)?.reason;
  equal(verify(), undefined);
  // lea r11, [rdx + rax]; cmp r11, length; ja: the first range's sum, now compared with itself.
  const start = code.tables.functionStart[0];
  const isSum = (_: number, at: number) => at > start && bytes[at] === 0x4c && bytes[at + 2] === 0x1c;
  const at = bytes.findIndex(isSum);
  ok(at > start);
  bytes.set([0x4d, 0x39, 0xdb], at + 4); // cmp r11, r11
  equal(verify(), REASON.BULK);
});

/** Programs with loops whose bounds are checked once, in front of them, for a constant number of turns. */
const VERSIONED = ["bench/wasm/brainfuck.wasm", "bench/wasm/crc32.wasm", "bench/wasm/binary_trees.wasm"];

Deno.test("loops are proven whose bounds are checked in front of them, for a constant number of turns", () => {
  for (const architecture of [OPTIONS, ARM64_OPTIONS]) {
    const options: CompileOptions = { ...architecture, settings: codeSettings({ explicitBounds: true }) };
    for (const name of VERSIONED) deepEqual(findingsOf(compiled(program(name), options), options), [], name);
  }
});

Deno.test("a loop with more turns than its memory allows, or that steps over its last value, is not proven", () => {
  const options: CompileOptions = { ...OPTIONS, settings: codeSettings({ explicitBounds: true }) };
  const code = compiled(program("bench/wasm/crc32.wasm"), options);
  const verify = (from: readonly number[], to: readonly number[]) => {
    const bytes = code.bytes.slice();
    const start = code.tables.functionStart[0];
    const at = bytes.findIndex((_, at) => at >= start && from.every((byte, k) => bytes[at + k] === byte));
    ok(at >= 0);
    bytes.set(to, at);
    return functionVerifier(X64_MACHINE, { ...viewOf(code, options), bytes }).verify(0)?.reason;
  };
  equal(verify([], []), undefined);
  // add edx, 4; cmp edx, 65536. The memory has three pages at least.
  equal(verify([0x81, 0xfa, 0, 0, 1, 0], [0x81, 0xfa, 0, 0, 4, 0]), REASON.MEMORY);
  equal(verify([0x81, 0xfa, 0, 0, 1, 0], [0x81, 0xfa, 1, 0, 1, 0]), REASON.MEMORY);
  equal(verify([0x83, 0xc2, 4], [0x83, 0xc2, 12]), REASON.MEMORY);
});

Deno.test("a compare is forgotten when an instruction changes the flags", () => {
  const code = compiled(`(module (memory 1) (func (param i32) (result i32) (i32.load (local.get 0))))`);
  const module = viewOf({ ...code, bytes: code.bytes.slice() }, OPTIONS);
  const explicit = { ...module, code: { ...module.code, settings: codeSettings({ explicitBounds: true }) } };
  const start = module.tables.functionStart[0];
  // lea r11, [rax + 4]; cmp r11, r14; X; ja to a trap; mov eax, [rbx + rax]; ret
  const trap = module.stubs.start[STUB.TRAP + TRAP.MEMORY_OUT_OF_BOUNDS];
  const verify = (between: readonly number[]) => {
    const bytes = [0x4c, 0x8d, 0x58, 4, 0x4d, 0x39, 0xf3, ...between, 0x77, 4, 0x8b, 4, 3, 0xc3, 0xe8];
    const call = start + bytes.length + 4;
    const code = Uint8Array.of(...bytes, ...new Uint8Array(Int32Array.of(trap - call).buffer));
    const image = new Uint8Array(start + 64);
    image.set(module.bytes.subarray(0, start));
    image.set(code, start);
    const functionEnd = Int32Array.of(call);
    const trapAt = Int32Array.of(call);
    return functionVerifier(X64_MACHINE, {
      ...explicit,
      bytes: image,
      tables: { ...module.tables, functionEnd, trapAt },
    }).verify(0)
      ?.reason;
  };
  equal(verify([]), undefined);
  equal(verify([0x41, 0x83, 0x47, 0x60, 1]), REASON.CONTEXT); // add [r15 + 96], 1: no global
  equal(verify([0x83, 0xc1, 1]), REASON.MEMORY); // add ecx, 1
  equal(verify([0x48, 0x81, 0xc4, 0, 0, 0, 0]), REASON.MEMORY); // add rsp, 0
  equal(verify([0x89, 0xc9]), undefined); // mov ecx, ecx
});

Deno.test("the largest frame without a stack check of its own has room for a call into another instance", () => {
  for (const count of [61, 62, 63, 64]) {
    const locals = Array.from({ length: count }, (_, k) => k);
    const loads = locals.map((k) => `(local.set ${k} (i64.load offset=${k * 8} (i32.const 0)))`).join(" ");
    const values = locals.map((k) => `(local.get ${k})`).join(" ");
    const source = `(module (import "" "f" (func $f)) (memory 1) (func (result i64) (local ${"i64 ".repeat(count)})
      ${loads} (call $f) ${values} ${"i64.add ".repeat(count - 1)}))`;
    for (const options of ARCHITECTURES) {
      deepEqual(findingsOf(compiled(source, options), options), [], `${count} values`);
    }
  }
});

Deno.test("code without AVX and BMI is proven, too", () => {
  const options = { ...OPTIONS, cpu: new Set<string>() };
  for (const name of PROGRAMS.slice(0, 2)) deepEqual(findingsOf(compiled(program(name), options), options), []);
});

/** Programs that have places for every kind of mutant. */
const MUTATED = [
  "bench/wasm/threaded_vm.wasm",
  "examples/wasi/lisp.wasm",
  "examples/wasi/words.wasm",
  "bench/wasm/gc_shapes.wasm",
  "bench/wasm/gc_trees.wasm",
  "bench/wasm/gc_sort.wasm",
  "bench/wasm/virtual_calls.wasm",
];
/** Mutants of one kind in one module. */
const MAX_MUTANTS = 25;

/** The accepted mutants, which stay in their sandbox. */
const ACCEPTED: Readonly<Record<string, readonly string[]>> = {
  x64: [],
  arm64: [
    "bench/wasm/threaded_vm.wasm: function 0: memory of another base: ends",
    "examples/wasi/words.wasm: function 1: jump outside: never fails",
  ],
};

/** Breaks the proven functions of a program, and returns the mutants that the verifier does not find, with reasons. */
function missedMutants(
  name: string,
  options: CompileOptions,
  mutants: typeof mutantsOf | typeof arm64MutantsOf,
  seen: Set<string>,
): string[] {
  const code = compiled(program(name), options);
  const module = viewOf({ ...code, bytes: code.bytes.slice() }, options);
  const machine = machineOf(options.target);
  const verifier = functionVerifier(machine, module);
  const patches = options.target === ARM64 ? ARM64_PATCHES : X64_PATCHES;
  const made = new Map<string, number>();
  const missed: string[] = [];
  for (let index = 0; index < module.tables.functionStart.length; index++) {
    // Unproven code may be broken without a difference.
    if (verifier.verify(index) !== undefined) continue;
    // Code that control never reaches may be anything.
    for (const mutant of [...mutants(module, index)].filter(({ at }) => verifier.isReached(at))) {
      const { kind, at, bytes } = mutant;
      const count = (made.get(kind) ?? 0) + 1;
      if (count > MAX_MUTANTS) continue;
      made.set(kind, count);
      const original = module.bytes.slice(at, at + bytes.length);
      module.bytes.set(bytes, at);
      const isCaught = verifier.verify(index) !== undefined;
      module.bytes.set(original, at);
      const proves = (index: number) => verifier.verify(index) === undefined;
      const reason = isCaught ? "" : reasonOf(machine, patches, module, mutant, proves) ?? "not explained";
      if (!isCaught) missed.push(`${name}: function ${index}: ${kind}: ${reason}`);
      seen.add(kind);
    }
  }
  return missed;
}

for (
  const [options, mutants, kinds] of [[OPTIONS, mutantsOf, MUTANT_KINDS], [
    ARM64_OPTIONS,
    arm64MutantsOf,
    ARM64_MUTANT_KINDS,
  ]] as const
) {
  const { name } = options.target;
  Deno.test(`every mutant of proven code for ${name} is caught`, () => {
    const seen = new Set<string>();
    const missed = MUTATED.flatMap((file) => missedMutants(file, options, mutants, seen));
    deepEqual(missed, ACCEPTED[name]);
    deepEqual(kinds.filter((kind) => !seen.has(kind)), []);
  });
}

Deno.test("a trap needs the instance in the context's register", () => {
  // cbz x0, to the trap; mov x28, 0 in front of it.
  const code = compiled(
    `(module (table 1 funcref) (func (param i32) (result funcref) (table.get (local.get 0))))`,
    ARM64_OPTIONS,
  );
  const module = viewOf({ ...code, bytes: code.bytes.slice() }, ARM64_OPTIONS);
  const verify = (bytes: Uint8Array) => functionVerifier(machineOf(ARM64), { ...module, bytes }).verify(0)?.reason;
  equal(verify(module.bytes), undefined);
  const start = module.tables.functionStart[0];
  const trapCall = module.tables.trapAt.find((at) => at > start) ?? -1;
  ok(trapCall > start);
  // The push in front of the call becomes mov x28, xzr, and the function ends behind the call.
  const bytes = module.bytes.slice();
  bytes.set(Uint8Array.of(0xfc, 0x03, 0x1f, 0xaa), trapCall - 8);
  equal(verify(bytes), REASON.CONTEXT_LOST);
});

Deno.test("objects are accessed by their types", () => {
  const types = `(type $a (sub (struct (field (mut i32)))))
    (type $b (sub $a (struct (field (mut i32)) (field (mut (ref null $a))))))
    (type $n (array (mut i32))) (type $r (array (mut (ref null $a))))`;
  const bodies = [
    `(func (param (ref null $b)) (result i32) (struct.get $a 0 (local.get 0)))`,
    `(func (param anyref) (result i32) (struct.get $b 0 (ref.cast (ref $b) (local.get 0))))`,
    `(func (param anyref) (result i32) (ref.test (ref $n) (local.get 0)))`,
    `(func (param (ref $r) i32 (ref $b)) (array.set $r (local.get 0) (local.get 1) (local.get 2)))`,
    `(func (param (ref $n) i32) (result i32) (array.get $n (local.get 0) (local.get 1)))`,
    `(func (param i32) (result (ref $n)) (array.new_default $n (local.get 0)))`,
    `(func (param i32) (result (ref $b)) (struct.new $b (local.get 0) (ref.null $a)))`,
    `(func (param i32) (result i31ref) (ref.i31 (local.get 0)))`,
    `(func (param (ref $r) (ref $r) i32) (array.copy $r $r (local.get 0) (i32.const 0) (local.get 1) (i32.const 1)
      (local.get 2)))`,
  ];
  for (const tier of ["optimizing", "baseline"] as const) {
    const options: CompileOptions = { ...OPTIONS, tier };
    for (const body of bodies) deepEqual(findingsOf(compiled(`(module ${types} ${body})`, options), options), [], body);
  }
  // The same code with parameters of other types.
  const refused: readonly (readonly [string, string, string])[] = [
    [bodies[0], "(ref null $n)", REASON.OBJECT],
    [bodies[0], "anyref", REASON.OBJECT],
    [bodies[3].replace("(ref $b)", "(ref $a)"), "(ref $n) i32 (ref $a)", REASON.ADDRESS],
    [bodies[3].replace("(ref $b)", "(ref $a)"), "(ref $r) i32 (ref $n)", REASON.REFERENCE],
    [bodies[4], "(ref $a) i32", REASON.OBJECT],
  ];
  for (const [body, params, reason] of refused) {
    const code = compiled(`(module ${types} ${body})`);
    const { functionSignature } = viewOf(compiled(`(module ${types} (func (param ${params}) unreachable))`));
    const [{ results, type }] = viewOf(code).functionSignature;
    const changed = [{
      ...functionSignature[0],
      results,
      type: { ...functionSignature[0].type, results: type.results },
    }];
    equal(
      functionVerifier(X64_MACHINE, { ...viewOf(code), functionSignature: changed }).verify(0)?.reason,
      reason,
      `${body}: ${params}`,
    );
  }
});

Deno.test("a tail call returns what its caller returns", () => {
  const code = compiled(`(module (type $a (struct)) (type $b (array i32))
    (func (result (ref null $a)) (return_call $g))
    (func $g (result (ref null $a)) unreachable)
    (func (result (ref null $b)) unreachable)
    (func (result (ref $a)) unreachable))`);
  const module = viewOf(code);
  const reasonWith = (callee: number) => {
    const functionSignature = module.functionSignature.with(1, module.functionSignature[callee]);
    return functionVerifier(X64_MACHINE, { ...module, functionSignature }).verify(0)?.reason;
  };
  equal(reasonWith(1), undefined);
  equal(reasonWith(2), REASON.CALL_TARGET);
  equal(reasonWith(3), undefined);
});

Deno.test("tables, segments and arrays that the runtime copies between have elements of one type", () => {
  const code = compiled(`(module (table $a 2 funcref) (table 2 externref) (elem $s func 0) (elem externref)
    (type $r (array (mut funcref))) (type $c (array funcref)) (type $n (array (mut i32))) (data $d "")
    (func (table.copy $a $a (i32.const 0) (i32.const 1) (i32.const 1)))
    (func (table.init $a $s (i32.const 0) (i32.const 0) (i32.const 1)))
    (func (param i32) (result (ref $r)) (array.new_elem $r $s (local.get 0) (local.get 0)))
    (func (param (ref $r) i32)
      (array.init_elem $r $s (local.get 0) (local.get 1) (local.get 1) (local.get 1)))
    (func (param (ref $n) i32)
      (array.init_data $n $d (local.get 0) (local.get 1) (local.get 1) (local.get 1))))`);
  const module = viewOf(code);
  const reasonOf = (index: number, changed: Partial<MachineModule>) =>
    functionVerifier(X64_MACHINE, { ...module, ...changed }).verify(index)?.reason;
  for (let index = 0; index < 5; index++) equal(reasonOf(index, {}), undefined);
  const [, external] = module.tableElement;
  const [references, constants, numbers] = module.typeId;
  const segments = { segmentElement: module.segmentElement.with(0, external) };
  equal(reasonOf(0, { tableElement: [] }), REASON.REFERENCE);
  for (let index = 1; index < 4; index++) equal(reasonOf(index, segments), REASON.REFERENCE);
  const types = (...ids: number[]) => ({ typeId: Int32Array.from([...ids, ...module.typeId.slice(ids.length)]) });
  equal(reasonOf(2, types(numbers)), REASON.REFERENCE);
  equal(reasonOf(3, types(constants)), REASON.REFERENCE);
  equal(reasonOf(4, types(references, constants, references)), REASON.REFERENCE);
});

Deno.test("the operands of a compare with a constant have names of their own", () => {
  // If they shared one, a bound of the loaded value would make the branch impossible, and the access stay unseen.
  const code = compiled(program("bench/wasm/refs_dispatch.wasm"));
  const module = viewOf({ ...code, bytes: code.bytes.slice() });
  const verifier = functionVerifier(X64_MACHINE, module);
  const foreign = [...mutantsOf(module, 5)].filter(({ kind }) => kind === "foreign byte");
  ok(foreign.length > 2);
  for (const { at, bytes } of foreign) {
    const original = module.bytes.slice(at, at + bytes.length);
    module.bytes.set(bytes, at);
    ok(verifier.verify(5) !== undefined, `at ${at}`);
    module.bytes.set(original, at);
  }
});

Deno.test("a table of call sites with a wrong frame is found", () => {
  const code = compiled(program("bench/wasm/threaded_vm.wasm"));
  const module = viewOf(code, OPTIONS);
  const callFrame = module.tables.callFrame.slice();
  const first = Math.min(...module.tables.functionStart);
  const row = module.tables.callReturn.findIndex((at) => at > first);
  callFrame[row] += 8;
  const findings = findingsOf({ ...code, tables: { ...code.tables, callFrame } }, OPTIONS);
  ok(findings.some(({ reason }) => reason === REASON.CALL_SITE));
});

Deno.test("changed stubs are found", () => {
  const code = compiled(program("bench/wasm/hash_table.wasm"));
  const bytes = code.bytes.slice();
  bytes[200] ^= 1;
  equal(findingsOf({ ...code, bytes }, OPTIONS)[0].index, -1);
  const tables = { ...code.tables, pollAt: Int32Array.of(200) };
  equal(findingsOf({ ...code, tables }, OPTIONS)[0].index, -1, "the place of a poll");
});

Deno.test("a table that the code writes is not taken to be constant", () => {
  const calls = (more: string) =>
    `(module
    (type $t (func (result i32)))
    (table 2 funcref)
    (elem (i32.const 0) func $f $g)
    (func $f (type $t) (i32.const 1))
    (func $g (type $t) (i32.const 2))
    (func (export "call") (param i32) (result i32) (call_indirect (type $t) (local.get 0)))
    ${more})`;
  deepEqual(findingsOf(compiled(calls("")), OPTIONS), []);
  // The same code with the facts of a module that writes the table.
  const code = compiled(calls(""));
  const writer = compiled(calls(`(func (export "set") (table.set (i32.const 0) (ref.null func)))`));
  deepEqual(findingsOf(writer, OPTIONS), []);
  const module = viewOf(code, OPTIONS);
  const isPrivate = module.tableIsPrivate.map(() => false);
  const finding = functionVerifier(X64_MACHINE, { ...module, tableIsPrivate: isPrivate }).verify(2);
  equal(finding?.reason, REASON.CALL_TARGET);
});

Deno.test("a branch after the compare of a register with itself is taken", () => {
  const options: CompileOptions = { ...OPTIONS, tier: "baseline" };
  const code = compiled(`(module (func (param f32) (result i32) (i32.trunc_f32_u (local.get 0))))`, options);
  deepEqual(findingsOf(code, options), []);
});

Deno.test("an index of 64 bits is not taken for one of 32", () => {
  // The load is proven because its address is an i32; with the type of its parameter changed, nothing bounds it.
  const code = compiled(`(module (memory 1) (func (param i32) (result i32) (i32.load (local.get 0))))`);
  const module = viewOf(code, OPTIONS);
  equal(functionVerifier(X64_MACHINE, module).verify(0), undefined);
  const [signature] = module.functionSignature;
  const wide = [{ ...signature, params: Uint8Array.of(2) }];
  equal(functionVerifier(X64_MACHINE, { ...module, functionSignature: wide }).verify(0)?.reason, REASON.MEMORY);
});

Deno.test("the upper half of a register that a compare-and-exchange of 32 bits leaves is unknown", () => {
  // The function wraps the result; with each extension (mov r32, r32) turned into no-ops, nothing bounds the address.
  const code = compiled(`(module (memory 1 1 shared) (func (param i64) (result i32)
    (i32.load (i32.wrap_i64 (i64.atomic.rmw32.cmpxchg_u (i32.const 8) (local.get 0) (i64.const 1))))))`);
  const module = viewOf(code, OPTIONS);
  equal(functionVerifier(X64_MACHINE, module).verify(0), undefined);
  const changed = module.bytes.slice();
  const exchange = changed.findIndex((byte, at) => byte === 0x0f && changed[at + 1] === 0xb1);
  for (let at = exchange + 3; at < changed.length; at++) {
    if (changed[at] === 0x8b && changed[at + 1] >= 0xc0) changed.fill(0x90, at, at + 2);
  }
  equal(functionVerifier(X64_MACHINE, { ...module, bytes: changed }).verify(0)?.reason, REASON.MEMORY);
});

Deno.test("a poll is a load into a register other than the stack pointer", () => {
  const options: CompileOptions = { ...OPTIONS, settings: codeSettings({ interruptible: true }) };
  const code = compiled(`(module (func (param i32) (loop (br_if 0 (local.get 0)))))`, options);
  const module = viewOf({ ...code, bytes: code.bytes.slice() }, options);
  const verify = (bytes: Uint8Array) => functionVerifier(machineOf(X64), { ...module, bytes }).verify(0)?.reason;
  equal(verify(module.bytes), undefined);
  const [start, end] = [module.tables.functionStart[0], module.tables.functionEnd[0]];
  const poll = [...module.tables.pollAt].find((at) => at > start && at < end)!;
  ok(module.bytes[poll - 2] === 0x8b, "mov reg, [poll]");
  const changed = (change: (bytes: Uint8Array) => void) => {
    const bytes = module.bytes.slice();
    change(bytes);
    return verify(bytes);
  };
  ok(changed((bytes) => bytes[poll - 2] = 0x89) !== undefined, "mov [poll], reg");
  const toStackPointer = changed((bytes) => {
    if ((bytes[poll - 3] & 0xf0) === 0x40) bytes[poll - 3] &= ~4;
    bytes[poll - 1] = bytes[poll - 1] & 0xc7 | 0x20;
  });
  equal(toStackPointer, REASON.STACK_POINTER, "mov esp, [poll]");
});

Deno.test("functions with the code of the other tier are called, and call, by those of their module", () => {
  const source = `(module (func $f (export "f") (param i32) (result i32) (if (result i32) (local.get 0)
      (then (call $g (i32.sub (local.get 0) (i32.const 1)))) (else (i32.const 7))))
    (func $g (param i32) (result i32) (call $f (local.get 0))))`;
  for (const architecture of [OPTIONS, ARM64_OPTIONS]) {
    for (const tier of ["optimizing", "baseline"] as const) {
      for (const index of [0, 1]) {
        const options: CompileOptions = { ...architecture, tier, otherTier: new Set([index]) };
        const code = compiled(source, options);
        deepEqual(findingsOf(code, options), []);
        const isBaseline = [0, 1].map((k) => (k === index) === (tier === "optimizing") ? 1 : 0);
        deepEqual([...code.replaceable ?? []], isBaseline);
      }
    }
  }
});
