/**
 * The table of WASI's functions (component/wasi/wasi_functions.ts) as the specification's WIT gives it. In: the
 * releases of the suite. Out: the text of the file.
 */
import { functionShape } from "../../component/abi/type_name.ts";
import { mapValueType, type ResourceType, type ValType } from "../../component/model/types.ts";
import {
  funcId,
  interfaceId,
  originOf,
  type WitFunc,
  type WitType,
  type WitTypeDef,
} from "../../component/wit/document.ts";
import { loadProposal, proposalsOf, WASI_RELEASES } from "./wasi_wit.ts";

const HEAD = `/**
 * The functions of WASI 0.2 and 0.3: the shape (abi/type_name.ts) of every function, by interface and name. \`$n\`
 * stands for a type of TYPES. Written by tests/component/wasi_shapes_test.ts from the specification's WIT; WAFT_BLESS=1
 * renews it.
 */
`;
/** Not in the text below, where the search for unused exports would find it. */
const DECLARED = "export const";
/** Types of at least this length have a row of their own. */
const SHORTEST_TYPE = 40;

function resourceOf(def: WitTypeDef): ResourceType {
  return { id: { origin: "imported", name: originOf(def).name } } as unknown as ResourceType;
}

function valueType(type: WitType): ValType {
  if (type.kind !== "named") return mapValueType(type, valueType, resourceOf) as ValType;
  const def = originOf(type.def);
  if (def.type.kind === "resource") return { kind: "own", resource: resourceOf(def) };
  if (def.type.kind === "use") throw new Error(`${def.name} has no origin`);
  return def.type.kind === "alias"
    ? valueType(def.type.type)
    : mapValueType(def.type, valueType, resourceOf) as ValType;
}

function shapeOf(func: WitFunc): string {
  const { kind, resource, async, params } = func;
  const self = kind === "method"
    ? [{ name: "self", type: { kind: "borrow", resource: resourceOf(resource!) } as ValType }]
    : [];
  const result = func.result ?? (kind === "constructor" ? { kind: "named", def: resource! } as const : undefined);
  return functionShape({
    kind: "func",
    async,
    params: [...self, ...params.map(({ name, type }) => ({ name, type: valueType(type) }))],
    ...(result === undefined ? {} : { result: valueType(result) }),
  });
}

/** The key of an interface: versions 0.2 are one. */
function keyOf(id: string): string {
  return id.replace(/@0\.2\..*$/, "@0.2");
}

/** The table: types that several functions have, and the functions of each interface, one per line. */
export function wasiFunctions(): { types: string[]; functions: Record<string, string> } {
  const types: string[] = [];
  const functions: [string, string][] = [];
  for (const release of WASI_RELEASES) {
    for (const proposal of proposalsOf(release)) {
      const { root } = loadProposal(release, proposal, { allFeatures: true });
      for (const item of root.interfaces.values()) {
        const lines = [...item.funcs.values()].map((func) => `${funcId(func)} ${withNumbers(shapeOf(func), types)}`);
        if (lines.length > 0) functions.push([keyOf(interfaceId(item)), `\n${lines.join("\n")}\n`]);
      }
    }
  }
  return { types, functions: Object.fromEntries(functions.sort(([a], [b]) => a < b ? -1 : 1)) };
}

/** A shape with the numbers of its long types, which are added to `types`. */
function withNumbers(shape: string, types: string[]): string {
  const next = shape.replace(/(?:record|variant|enum|flags) \{ [^{}]* \}/g, (type) => {
    if (type.length < SHORTEST_TYPE) return type;
    if (!types.includes(type)) types.push(type);
    return `$${types.indexOf(type)}`;
  });
  return next === shape ? shape : withNumbers(next, types);
}

/** The table as the text of its file, before it is formatted. */
export function wasiFunctionsText(): string {
  const { types, functions } = wasiFunctions();
  const rows = Object.entries(functions).map(([name, lines]) => `  ${JSON.stringify(name)}: \`${lines}\`,\n`);
  return `${HEAD}
/** Types that several functions have. */
${DECLARED} TYPES: readonly string[] = [
${types.map((type) => `  ${JSON.stringify(type)},\n`).join("")}];

/** By interface: a line for each function, its name and its shape. */
${DECLARED} FUNCTIONS: Readonly<Record<string, string>> = {
${rows.join("")}};
`;
}
