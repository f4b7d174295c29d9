/**
 * The playground's compiler, a worker of the browser. In: modules in text form, and calls of exports of the last one.
 * Out: the stages of each function as `waft explore` shows them, and results of calls, which run on the browser's
 * engine. Invariant: a module reaches nothing but the list of its calls of imports, which an answer contains.
 */
import "./browser_process.ts";
import { type ExploredStage, exploreModule } from "@waft/engine/internal/explore";
import { featureSet } from "@waft/engine/internal/features";
import { parseModule } from "@waft/engine/internal/text/parse_module";
import type { Module } from "@waft/engine/internal/wasm/module";
import { type FuncType, funcTypeName, I64 } from "@waft/engine/internal/wasm/types";

/** A message of the page. */
type Request =
  | { readonly id: number; readonly text: string }
  | { readonly id: number; readonly call: string; readonly values: readonly string[] };

const MAX_FUNCTIONS = 100;
const MAX_CALLS = 100;

const scope = globalThis as unknown as {
  onmessage: (event: { readonly data: Request }) => void;
  postMessage(message: object): void;
};

/** An exported function. */
interface Exported {
  readonly name: string;
  readonly type: FuncType;
}

/** The last module that was valid. */
let last: { readonly bytes: Uint8Array<ArrayBuffer>; readonly exports: readonly Exported[] } | undefined;

scope.onmessage = async ({ data }) => {
  try {
    const answer = "text" in data ? await compile(data.text) : await call(data.call, data.values);
    scope.postMessage({ id: data.id, ...answer });
  } catch (error) {
    const { name, message, where = "" } = error as Error & { readonly where?: string };
    scope.postMessage({ id: data.id, error: `${name}: ${message}${where === "" ? "" : ` (${where})`}` });
  }
};

/** All stages of the functions of a module. */
async function compile(text: string): Promise<object> {
  const module = parseModule(text);
  const explorer = await exploreModule(module, { features: featureSet(), withoutHost: true });
  last = { bytes: new Uint8Array(module.bytes), exports: exportedFunctions(module) };
  const order = [...explorer.callOrder()].slice(0, MAX_FUNCTIONS);
  return {
    bytes: last.bytes.length,
    exports: last.exports.map(({ name, type }) => ({ name, type: funcTypeName(type) })),
    functions: order.map((k) => ({
      name: explorer.label(explorer.functions[k].index),
      stages: explorer.explore(k).map(({ group, name, lines }: ExploredStage) => ({
        group,
        name,
        text: lines.map((line) => line.text).join("\n"),
      })),
    })),
  };
}

function exportedFunctions({ imports, funcs, types, exports }: Module): Exported[] {
  const imported = imports.flatMap(({ desc }) => desc.kind === "func" ? [desc.typeIndex] : []);
  const typeIndices = [...imported, ...funcs.map(({ typeIndex }) => typeIndex)];
  return exports.filter(({ kind }) => kind === "func").map(({ name, index }) => ({
    name,
    type: types[typeIndices[index]].composite as FuncType,
  }));
}

/** Calls an export in a new instance, whose imported functions are noted and return nothing. */
async function call(name: string, values: readonly string[]): Promise<object> {
  const target = last?.exports.find((each) => each.name === name);
  if (last === undefined || target === undefined) throw new Error(`There is no exported function "${name}"`);
  const { params } = target.type;
  if (values.length !== params.length) {
    throw new Error(`"${name}" has ${params.length} parameters, not ${values.length}`);
  }
  const calls: string[] = [];
  const compiled = await WebAssembly.compile(last.bytes);
  const imports: Record<string, Record<string, WebAssembly.ImportValue>> = {};
  for (const { module, name, kind } of WebAssembly.Module.imports(compiled)) {
    if (kind !== "function") throw new Error(`The playground has no ${kind} to import as "${module}" "${name}"`);
    (imports[module] ??= {})[name] = (...given: unknown[]) => {
      if (calls.length < MAX_CALLS) calls.push(`${module}.${name}(${given.map(String).join(", ")})`);
    };
  }
  const { exports } = await WebAssembly.instantiate(compiled, imports);
  const given = values.map((value, k) => params[k] === I64 ? BigInt(value) : Number(value));
  const result = (exports[name] as (...values: readonly unknown[]) => unknown)(...given);
  return { calls, result: result === undefined ? undefined : [result].flat().map(String).join(", ") };
}
