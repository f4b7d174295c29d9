/**
 * Acquire-release atomics: orderings of atomic accesses and fences in both formats, and `pause`. Code is sequentially
 * consistent whatever the ordering, so every instruction must behave as without one, in every tier and bounds mode.
 */
import assert from "node:assert/strict";
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { compileModule, stubContext } from "../../engine/compile/compile.ts";
import type { CompileOptions } from "../../engine/compile/compile_options.ts";
import { verifyCompiled } from "../../engine/compile/verify_module.ts";
import { Engine, NewEngine, OPTIMIZATION_ROWS } from "../../engine/mod.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { printModule } from "../../engine/text/print.ts";
import { OPCODES } from "../../engine/wasm/opcodes.ts";

const ON = { features: { "acquire-release-atomics": true } } as const;

/** The atomic accesses that take an ordering. */
const ACCESSES = OPCODES.filter(({ immediates }) => immediates[0] === "atomicarg" || immediates[0] === "rmwarg");
const TYPE_NAMES: Readonly<Record<string, string>> = { i: "i32", I: "i64", a: "i32" };
const ORDERINGS = ["", "seqcst", "acqrel"] as const;

/** A function for each access with `ordering`, which takes the operands. */
function moduleText(ordering: string): string {
  const functions = ACCESSES.map(({ mnemonic, params, results }) => {
    const types = [...params ?? ""].map((letter) => TYPE_NAMES[letter]);
    const result = results === "" ? "" : `(result ${TYPE_NAMES[results ?? ""]})`;
    const operands = types.map((_, k) => `(local.get ${k})`).join(" ");
    return `(func (export "${mnemonic}") (param ${types.join(" ")}) ${result} (${mnemonic} ${ordering} ${operands}))`;
  });
  return `(module (memory (export "memory") 1 1 shared)
    ${functions.join("\n")}
    (func (export "spin") (param $n i32) (result i32)
      (loop $again
        (pause)
        (atomic.fence ${ordering})
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (i32.atomic.load ${ordering} (local.get $n))))`;
}

const SETTINGS = [
  {},
  { bounds: "explicit" },
  { tier: "baseline" },
  { tier: "baseline", bounds: "explicit" },
  { optimizations: Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, false])) },
  { fuel: true },
  { verify: "code" },
  { verify: "code", tier: "baseline" },
] as const;

/** The results of a sequence of accesses of all kinds, and of the cells that they leave. */
function results(settings: (typeof SETTINGS)[number], ordering: string): unknown[] {
  const instance = new Engine({ verify: true, ...settings, ...ON }).compile(moduleText(ordering)).instantiate();
  const seen: unknown[] = [];
  ACCESSES.forEach(({ mnemonic, params }, k) => {
    const operands = [...params ?? ""].map((letter, n) => {
      if (letter === "a") return (k % 3) * 8;
      const value = k * 0x01234567 + n * 0x0fedcba9;
      return letter === "I" ? BigInt(value) * 0x10001n : value | 0;
    });
    seen.push(instance.call({}, mnemonic, ...operands));
  });
  for (let cell = 0; cell < 24; cell += 8) seen.push(instance.call({}, "i64.atomic.load", cell));
  seen.push(instance.call({}, "spin", 5));
  return seen;
}

for (const settings of SETTINGS) {
  Deno.test(`accesses with an ordering are those without one: ${JSON.stringify(settings).slice(0, 60)}`, () => {
    const wanted = results(settings, "");
    assert.equal(new Set(wanted.map(String)).size > 20, true, "the accesses have different results");
    for (const ordering of ORDERINGS) assert.deepEqual(results(settings, ordering), wanted, ordering);
  });
}

Deno.test("code of accesses with an ordering is proven on both processors and in both tiers", () => {
  const module = NewEngine(ON).parse(moduleText("acqrel"));
  for (const tier of ["optimizing", "baseline"] as const) {
    for (const [target, cpu] of [[OPTIMIZING_X64, []], [OPTIMIZING_ARM64, ["lse"]], [OPTIMIZING_ARM64, []]] as const) {
      const options: CompileOptions = {
        target,
        tier,
        features: featureSet(ON.features),
        optimizations: optimizationSet(),
        settings: codeSettings(),
        cpu: new Set<string>(cpu),
      };
      const code = compileModule(module, options);
      assert.deepEqual(verifyCompiled(code, options, stubContext(code.valid, options)), []);
    }
  }
});

Deno.test("accesses with an ordering trap as those without one", () => {
  for (const tier of ["optimizing", "baseline"] as const) {
    const instance = new Engine({ tier, ...ON }).compile(moduleText("acqrel")).instantiate();
    assert.throws(() => instance.call({}, "i32.atomic.load", 2), { name: "TrapError", message: /unaligned/ });
    assert.throws(() => instance.call({}, "i64.atomic.rmw.add", 65536, 1n), { message: /out of bounds/ });
  }
});

Deno.test("orderings are an immediate between memory index and offset, before or after the offset in text", () => {
  const bytesOf = (code: string) => [...parseModule(`(module (func ${code}))`).funcs[0].body.bytes].slice(1, -1);
  const load = [0xfe, 0x10];
  assert.deepEqual(bytesOf("i32.atomic.load"), [...load, 2, 0]);
  assert.deepEqual(bytesOf("i32.atomic.load seqcst"), [...load, 2 | 0x10, 0, 0]);
  assert.deepEqual(bytesOf("i32.atomic.load acqrel"), [...load, 2 | 0x10, 1, 0]);
  assert.deepEqual(bytesOf("i32.atomic.load 1 acqrel offset=8"), [...load, 2 | 0x50, 1, 1, 8]);
  assert.deepEqual(bytesOf("i32.atomic.load 1 offset=8 align=4 acqrel"), [...load, 2 | 0x50, 1, 1, 8]);
  assert.deepEqual(bytesOf("i64.atomic.store32 acqrel"), [0xfe, 0x1d, 2 | 0x10, 1, 0]);
  assert.deepEqual(bytesOf("i64.atomic.rmw.xchg acqrel"), [0xfe, 0x42, 3 | 0x10, 0x11, 0]);
  assert.deepEqual(bytesOf("i32.atomic.rmw8.cmpxchg_u seqcst"), [0xfe, 0x4a, 0x10, 0, 0]);
  assert.deepEqual(bytesOf("atomic.fence"), [0xfe, 0x03, 0]);
  assert.deepEqual(bytesOf("atomic.fence seqcst"), [0xfe, 0x03, 0]);
  assert.deepEqual(bytesOf("atomic.fence acqrel"), [0xfe, 0x03, 1]);
  assert.deepEqual(bytesOf("pause"), [0xfe, 0x04]);
});

Deno.test("orderings and pause survive a round trip through the text form", () => {
  for (const ordering of ORDERINGS) {
    const { bytes } = parseModule(moduleText(ordering));
    const text = printModule(decodeModule(bytes));
    assert.deepEqual(parseModule(text).bytes, bytes);
    if (ordering !== "") assert.match(text, new RegExp(`i32\\.atomic\\.load ${ordering}`));
  }
});

Deno.test("orderings and pause name their feature where it is off", () => {
  const engines = [NewEngine(), NewEngine({ tier: "baseline" })];
  const uses = ["(drop (i32.atomic.load acqrel (i32.const 0)))", "(atomic.fence acqrel)", "(pause)"];
  for (const ordering of ["acqrel", "seqcst"]) {
    uses.push(`(i64.atomic.store8 ${ordering} (i32.const 0) (i64.const 0))`);
    uses.push(`(drop (i32.atomic.rmw.add ${ordering} (i32.const 0) (i32.const 0)))`);
  }
  for (const use of uses) {
    const text = `(module (memory 1 1 shared) (func ${use}))`;
    for (const engine of engines) {
      const refusal = { name: "UnsupportedError", message: /acquire-release-atomics/ };
      assert.throws(() => engine.compile(text), refusal, use);
      assert.throws(() => engine.validate(text), refusal, use);
    }
    NewEngine(ON).validate(text);
  }
  engines[0].validate("(module (memory 1 1 shared) (func (atomic.fence seqcst)))");
});

Deno.test("orderings that do not exist, or that belong to other instructions, are errors in both tiers", () => {
  const rejected = (code: string, patch: readonly [number[], number[]], message: RegExp) => {
    const bytes = parseModule(`(module (memory 1 1 shared) (func ${code}))`).bytes.slice();
    const [from, to] = patch;
    const at = bytes.findIndex((_, k) => from.every((byte, n) => bytes[k + n] === byte));
    assert.notEqual(at, -1);
    bytes.set(to, at);
    for (const tier of ["optimizing", "baseline"] as const) {
      assert.throws(() => NewEngine({ tier, ...ON }).compile(bytes), { message }, code);
    }
  };
  const load = "(drop (i32.atomic.load acqrel (i32.const 0)))";
  rejected(load, [[0xfe, 0x10, 0x12, 1], [0xfe, 0x10, 0x12, 2]], /malformed memory ordering 2/);
  rejected(load, [[0xfe, 0x10, 0x12, 1], [0xfe, 0x10, 0x12, 0x11]], /malformed memory ordering 17/);
  const add = "(drop (i32.atomic.rmw.add acqrel (i32.const 0) (i32.const 0)))";
  rejected(add, [[0xfe, 0x1e, 0x12, 0x11], [0xfe, 0x1e, 0x12, 0x01]], /malformed memory ordering 1/);
  rejected("(atomic.fence acqrel)", [[0xfe, 0x03, 1], [0xfe, 0x03, 2]], /malformed memory ordering 2/);
  // Other instructions have no such flag: it is part of their alignment.
  const notify = "(drop (memory.atomic.notify (i32.const 0) (i32.const 0)))";
  rejected(notify, [[0xfe, 0x00, 2], [0xfe, 0x00, 0x12]], /alignment must not be larger than natural/);
  rejected("(drop (i32.load (i32.const 0)))", [[0x28, 2], [0x28, 0x12]], /alignment must not be larger than natural/);
  for (
    const text of ["i32.load acqrel", "memory.atomic.notify acqrel", "i32.atomic.load acqrel seqcst", "pause acqrel"]
  ) {
    assert.throws(() => parseModule(`(module (memory 1) (func ${text}))`), { name: "MalformedError" }, text);
  }
});
