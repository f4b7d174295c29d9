/**
 * The cost of every stage grows linearly with every count of a module: decoding, encoding, validation, printing and
 * parsing text, compilation, instantiation, artifacts, and the drop-in `WebAssembly` namespace.
 *
 * The measure is the processor time of this process for a module and for one with GROWTH times the count, which does
 * not depend on other load. A quadratic stage costs GROWTH² = 256 times as much; the bound is three times the linear
 * cost.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { decodeModule } from "../../engine/binary/decode.ts";
import { encodeModule } from "../../engine/binary/encode.ts";
import { Engine, host } from "../../engine/engine.ts";
import { featureSet } from "../../engine/features.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { printModule } from "../../engine/text/print.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { WebAssembly } from "../../engine/webassembly/mod.ts";
import { FAMILIES, type Family, GROWTH } from "./growing_modules.ts";

const FEATURES = featureSet();
const ENGINE = new Engine({ parallel: 0 });
/**
 * Allowance per stage beside its linear cost, in milliseconds: garbage collection and compilation of the engine itself.
 */
const SLACK_MS = 100;
/**
 * Measurements of a stage before its growth counts as faulty: noise only adds time, and other files that run in this
 * process make noise for seconds.
 */
const ROUNDS = 32;

type Imports = ConstructorParameters<typeof WebAssembly.Instance>[1];

interface NamedImport {
  module: string;
  name: string;
  kind: string;
}

/** An import object with a new value for every import. */
function importObject(imports: readonly NamedImport[], make: Readonly<Record<string, () => unknown>>) {
  const object: Record<string, Record<string, unknown>> = {};
  for (const { module, name, kind } of imports) (object[module] ??= {})[name] ??= make[kind]();
  return object;
}

/** TypeScript's declaration of the namespace has no Tag yet. */
const { Tag } = WebAssembly as unknown as { Tag: new (type: { parameters: string[] }) => object };

const HOST_TAG = host.tag();
const ENGINE_VALUES = {
  func: () => () => {},
  global: () => 1,
  table: () => host.table("funcref", 0),
  tag: () => HOST_TAG,
};
const NAMESPACE_VALUES = {
  function: () => () => {},
  global: () => 1,
  table: () => new WebAssembly.Table({ element: "anyfunc", initial: 0 }),
  tag: () => new Tag({ parameters: [] }),
};

/** Prepares a stage for a module, untimed; returns the timed action. */
type Stage = (bytes: Uint8Array<ArrayBuffer>) => () => unknown;

const STAGES: Readonly<Record<string, Stage>> = {
  decode: (bytes) => () => decodeModule(bytes),
  encode: (bytes) => {
    const module = decodeModule(bytes);
    return () => encodeModule(module);
  },
  validate: (bytes) => {
    const module = decodeModule(bytes);
    return () => validateModule(module, FEATURES);
  },
  print: (bytes) => {
    const module = decodeModule(bytes);
    return () => printModule(module);
  },
  "parse text": (bytes) => {
    const text = printModule(decodeModule(bytes));
    return () => parseModule(text);
  },
  compile: (bytes) => () => ENGINE.compile(bytes),
  "list imports and exports": (bytes) => {
    const module = ENGINE.compile(bytes);
    return () => [module.imports, module.exports.map(({ name }) => module.functionType(name))];
  },
  instantiate: (bytes) => {
    const module = ENGINE.compile(bytes);
    const imports = importObject(module.imports, ENGINE_VALUES);
    return () => module.instantiate({}, imports).exports;
  },
  "serialize and load": (bytes) => {
    const module = ENGINE.compile(bytes);
    return () => ENGINE.load(module.serialize());
  },
  "WebAssembly.Module": (bytes) => () => {
    const module = new WebAssembly.Module(bytes);
    return [WebAssembly.Module.imports(module), WebAssembly.Module.exports(module)];
  },
  "WebAssembly.Instance": (bytes) => {
    const module = new WebAssembly.Module(bytes);
    const imports = importObject(WebAssembly.Module.imports(module), NAMESPACE_VALUES);
    return () => Object.values(new WebAssembly.Instance(module, imports as Imports).exports);
  },
};

/** Processor time that `action` takes in this process, in milliseconds. */
function cost(action: () => unknown): number {
  const before = process.cpuUsage();
  action();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/**
 * Costs of a stage for the two sizes of a family, in the first round within the bound, else in the last one. `costOf`
 * measures an action.
 */
function growth(
  stage: Stage,
  { make, count }: Family,
  costOf: (action: () => unknown) => number = cost,
): { small: number; large: number; linear: boolean } {
  const few = stage(make(count) as Uint8Array<ArrayBuffer>);
  const many = stage(make(count * GROWTH) as Uint8Array<ArrayBuffer>);
  let small = Infinity;
  let large = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    small = Math.min(costOf(few), costOf(few));
    large = Math.min(large, costOf(many));
    if (large <= 3 * GROWTH * small + SLACK_MS) return { small, large, linear: true };
  }
  return { small, large, linear: false };
}

for (const family of FAMILIES) {
  Deno.test(`${family.name}: every stage takes linear time`, () => {
    for (const [name, stage] of Object.entries(STAGES)) {
      const { small, large, linear } = growth(stage, family);
      const { count } = family;
      assert.ok(linear, `${name}: ${small} ms for ${count}, ${large} ms for ${count * GROWTH}`);
    }
  });
}

Deno.test("the measurement distinguishes a quadratic stage from a linear one", () => {
  // Counted, because the host's compiler can make the larger run faster per step than the smaller one.
  const counted = (action: () => unknown): number => action() as number;
  const family: Family = { name: "bytes", count: 2500, make: (n) => new Uint8Array(n) };
  assert.equal(growth((bytes) => () => bytes.length ** 2, family, counted).linear, false);
  assert.equal(growth((bytes) => () => bytes.length * Math.log2(bytes.length), family, counted).linear, true);
  // The clock advances with the work.
  const spin = (steps: number) => () => {
    let sum = 0;
    for (let k = 0; k < steps; k++) sum = Math.imul(sum ^ k, 0x2c1b3c6d);
    return sum;
  };
  assert.ok(cost(spin(100_000_000)) > cost(spin(1000)));
});
