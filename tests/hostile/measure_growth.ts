/**
 * Measures how the cost of every stage grows with a count of a module. In: nothing, or the word `quadratic`. Out: a
 * line of JSON per family and stage, a `StageGrowth`; with `quadratic` only that of a stage whose cost is the square of
 * its count.
 *
 * The measure is the processor time of this process, which does nothing else and which other processes do not change.
 */
import process from "node:process";
import { decodeModule } from "../../engine/binary/decode.ts";
import { encodeModule } from "../../engine/binary/encode.ts";
import { Engine, host } from "../../engine/api/engine.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { printModule } from "../../engine/text/print.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { WebAssembly } from "../../engine/webassembly/mod.ts";
import { GROWTH, type Growth, growthBetween } from "../support/linear_growth.ts";
import { FAMILIES, type Family } from "./growing_modules.ts";

/** The growth of a stage in the count of a family. */
export interface StageGrowth extends Growth {
  readonly family: string;
  readonly count: number;
  readonly stage: string;
}

const FEATURES = featureSet();
const ENGINE = new Engine({ parallel: 0 });

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

/** The growth of a stage in the count of a family. `costOf` measures an action. */
export function growthOf(
  stageName: string,
  stage: Stage,
  { name, count, make }: Family,
  costOf: (action: () => unknown) => number = cost,
): StageGrowth {
  const few = stage(make(count) as Uint8Array<ArrayBuffer>);
  const many = stage(make(count * GROWTH) as Uint8Array<ArrayBuffer>);
  return { family: name, count, stage: stageName, ...growthBetween(() => costOf(few), () => costOf(many)) };
}

/** A stage whose cost is the square of its count. */
const QUADRATIC: Stage = ({ length }) => () => {
  let sum = 0;
  for (let k = 0; k < length * length; k++) sum = Math.imul(sum ^ k, 0x2c1b3c6d);
  return sum;
};

function report(growth: StageGrowth): void {
  console.log(JSON.stringify(growth));
}

/** Measures, and writes the lines. `kind` is the word on the command line. */
export function measure(kind: string | undefined): void {
  if (kind === "quadratic") {
    return report(growthOf(kind, QUADRATIC, { name: "bytes", count: 1000, make: (n) => new Uint8Array(n) }));
  }
  for (const family of FAMILIES) {
    for (const [name, stage] of Object.entries(STAGES)) report(growthOf(name, stage, family));
  }
}
