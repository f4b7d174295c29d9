/**
 * Wide arithmetic (`i64.add128`, `i64.sub128`, `i64.mul_wide_s`, `i64.mul_wide_u`): equal to arithmetic on BigInt, with
 * operands from parameters and with constants, in every tier and bounds mode.
 */
import assert from "node:assert/strict";
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { prepareBodyCompiler } from "../../engine/compile/compile.ts";
import { compileVerified } from "../../engine/compile/compile_proven.ts";
import { Engine, NewEngine, OPTIMIZATION_ROWS } from "../../engine/mod.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { printModule } from "../../engine/text/print.ts";

const OFF = { features: { "wide-arithmetic": false } } as const;

interface Operation {
  readonly name: string;
  /** Number of i64 operands. */
  readonly count: 2 | 4;
  /** The 128-bit result, before it wraps. */
  readonly model: (x: readonly bigint[]) => bigint;
}

const join = (low: bigint, high: bigint) => BigInt.asUintN(64, low) | (high << 64n);
const unsigned = (x: bigint) => BigInt.asUintN(64, x);

const OPERATIONS: readonly Operation[] = [
  { name: "i64.add128", count: 4, model: ([a, b, c, d]) => join(a, b) + join(c, d) },
  { name: "i64.sub128", count: 4, model: ([a, b, c, d]) => join(a, b) - join(c, d) },
  { name: "i64.mul_wide_s", count: 2, model: ([a, b]) => a * b },
  { name: "i64.mul_wide_u", count: 2, model: ([a, b]) => unsigned(a) * unsigned(b) },
];

/** The halves of a 128-bit number as signed i64, the low one first. */
function halves(value: bigint): [bigint, bigint] {
  return [BigInt.asIntN(64, value), BigInt.asIntN(64, value >> 64n)];
}

const EDGES = [0n, 1n, -1n, 2n, 0xffffffffn, 1n << 32n, (1n << 63n) - 1n, -(1n << 63n), 0x123456789abcdefn, -12345n];

function* operandLists(count: number): Generator<bigint[]> {
  if (count === 2) { for (const a of EDGES) for (const b of EDGES) yield [a, b]; }
  let seed = 88172645463325252n;
  const next = () => {
    seed = unsigned(seed ^ (seed << 13n));
    seed ^= seed >> 7n;
    seed = unsigned(seed ^ (seed << 17n));
    return seed % 5n === 0n ? EDGES[Number(seed % 10n)] : BigInt.asIntN(64, seed);
  };
  for (let round = 0; round < 300; round++) yield Array.from({ length: count }, next);
}

const PARAMS = { 2: "i64 i64", 4: "i64 i64 i64 i64" };

function moduleText(): string {
  const functions = OPERATIONS.map(({ name, count }) => {
    const operands = Array.from({ length: count }, (_, k) => `(local.get ${k})`).join(" ");
    return `(func (export "${name}") (param ${PARAMS[count]}) (result i64 i64) (${name} ${operands}))`;
  });
  return `(module ${functions.join("\n")}
    (func (export "square") (param i64) (result i64 i64) (i64.mul_wide_u (local.get 0) (local.get 0)))
    (func (export "powers") (param $x i64) (param $n i32) (result i64 i64) (local $low i64) (local $high i64)
      (local.set $low (i64.const 1))
      (loop $l
        (i64.mul_wide_u (local.get $low) (local.get $x)) (local.set $high) (local.set $low)
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $low) (local.get $high)))`;
}

const SETTINGS = [
  {},
  { bounds: "explicit" },
  { tier: "baseline" },
  { optimizations: Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, false])) },
  { deterministic: true },
  { fuel: true },
] as const;

for (const settings of SETTINGS) {
  Deno.test(`wide arithmetic of parameters: ${JSON.stringify(settings).slice(0, 40)}`, () => {
    const instance = new Engine({ ...settings, verify: true }).compile(moduleText()).instantiate();
    for (const { name, count, model } of OPERATIONS) {
      for (const operands of operandLists(count)) {
        assert.deepEqual(instance.call({}, name, ...operands), halves(model(operands)), `${name} ${operands}`);
      }
    }
    for (const x of EDGES) assert.deepEqual(instance.call({}, "square", x), halves(unsigned(x) * unsigned(x)), `${x}²`);
    assert.deepEqual(instance.call({}, "powers", 1000003n, 4), halves(1000003n ** 4n));
    assert.deepEqual(instance.call({}, "powers", (1n << 40n) + 5n, 2), halves(((1n << 40n) + 5n) ** 2n));
  });
}

Deno.test("wide arithmetic of constants, and of one constant and a parameter", () => {
  for (const { name, count, model } of OPERATIONS) {
    const lists = [...operandLists(count)].slice(0, 60);
    const functions = lists.map((operands, k) => {
      const constants = operands.map((x) => `(i64.const ${x})`).join(" ");
      const mixed = operands.map((x, i) => i === 0 ? "(local.get 0)" : `(i64.const ${x})`).join(" ");
      return `(func (export "c${k}") (result i64 i64) (${name} ${constants}))
        (func (export "m${k}") (param i64) (result i64 i64) (${name} ${mixed}))`;
    });
    const instance = NewEngine({ verify: true }).compile(`(module ${functions.join("\n")})`).instantiate();
    lists.forEach((operands, k) => {
      const wanted = halves(model(operands));
      assert.deepEqual(instance.call({}, `c${k}`), wanted, `${name} ${operands}`);
      assert.deepEqual(instance.call({}, `m${k}`, operands[0]), wanted, `${name} ${operands}, the first a parameter`);
    });
  }
});

Deno.test("wide arithmetic can be switched off, and the error names the feature", () => {
  for (const { name, count } of OPERATIONS) {
    const operands = "(i64.const 1) ".repeat(count);
    const text = `(module (func (result i64 i64) (${name} ${operands})))`;
    assert.throws(() => NewEngine(OFF).compile(text), { name: "UnsupportedError", message: /wide-arithmetic/ });
    assert.throws(() => NewEngine(OFF).validate(text), { name: "UnsupportedError", message: /wide-arithmetic/ });
    NewEngine().validate(text);
  }
});

Deno.test("wide arithmetic: operands and results have types", () => {
  const engine = NewEngine();
  const wrong = [
    "(func (result i64) (i64.mul_wide_s (i64.const 1) (i64.const 2)))",
    "(func (result i64 i64) (i64.mul_wide_u (i32.const 1) (i64.const 2)))",
    "(func (result i64 i64) (i64.add128 (i64.const 1) (i64.const 2) (i64.const 3)))",
    "(func (result i64 i64) (i64.sub128 (i64.const 1) (i64.const 2) (i64.const 3) (f64.const 4)))",
    "(global i64 (i64.mul_wide_u (i64.const 1) (i64.const 2)))",
  ];
  for (const field of wrong) assert.throws(() => engine.validate(`(module ${field})`), { name: "InvalidError" }, field);
  engine.validate("(module (func (unreachable) (i64.add128) (drop) (drop)))");
});

Deno.test("wide arithmetic has its binary codes, and its text survives a round trip", () => {
  const module = parseModule(
    "(module (func (param i64 i64) (result i64 i64) local.get 0 local.get 1 i64.mul_wide_u))",
  );
  assert.deepEqual([...module.funcs[0].body.bytes], [0, 0x20, 0, 0x20, 1, 0xfc, 0x16, 0x0b]);
  const again = parseModule(printModule(decodeModule(parseModule(moduleText()).bytes)));
  assert.deepEqual(again.bytes, parseModule(moduleText()).bytes);
});

for (const target of [OPTIMIZING_X64, OPTIMIZING_ARM64]) {
  for (const tier of ["baseline", "optimizing"] as const) {
    Deno.test(`the verifier proves wide arithmetic of the tier ${tier} for ${target.name} without another attempt`, async () => {
      await prepareBodyCompiler(target.name);
      for (const explicitBounds of [false, true]) {
        const options = {
          target,
          tier,
          features: featureSet(),
          optimizations: optimizationSet(),
          settings: codeSettings({ explicitBounds }),
          cpu: new Set<string>(),
        };
        assert.deepEqual(compileVerified(parseModule(moduleText()), options).first.unproven, []);
      }
    });
  }
}
