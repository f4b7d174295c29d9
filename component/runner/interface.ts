/**
 * The interface of a component as both sides of a runner see it. In: a component in binary form. Out: its imported and
 * exported functions with their types. Invariant: equal bytes give an equal interface, so a message needs no types.
 */
import { ALL_FEATURE_ROWS } from "@waft/engine/internal/features";
import { decodeComponent } from "../binary/decode.ts";
import { featuresOf } from "../link/component_features.ts";
import { lookUpName } from "../link/host_names.ts";
import type { Extern, FuncType, ResourceId } from "../model/types.ts";
import { validateComponent } from "../validate/validate_component.ts";

/** A function and the names that lead to it: of interfaces, and its own. */
export interface InterfaceFunction {
  readonly path: readonly string[];
  readonly type: FuncType;
}

/** The functions of a component. */
export interface ComponentInterface {
  readonly imports: readonly InterfaceFunction[];
  readonly exports: ReadonlyMap<string, Extern>;
  /** The resources of the host. */
  readonly hostResources: ReadonlySet<ResourceId>;
  readonly usesAsync: boolean;
}

const FEATURES = Object.fromEntries(ALL_FEATURE_ROWS.map(({ name }) => [name, true]));

/** The interface of a component. Function bodies are not validated: that is up to the compilation. */
export function interfaceOf(bytes: Uint8Array): ComponentInterface {
  const decoded = decodeComponent(bytes);
  const { type } = validateComponent(decoded, { features: FEATURES, bodies: false });
  return {
    imports: [...functionsIn(type.imports, [])],
    exports: type.exports,
    hostResources: new Set(type.imported.map(({ id }) => id)),
    usesAsync: featuresOf(decoded).usesAsync,
  };
}

function* functionsIn(externs: ReadonlyMap<string, Extern>, names: readonly string[]): Generator<InterfaceFunction> {
  for (const [name, extern] of externs) {
    const path = [...names, name];
    if (extern.kind === "func") yield { path, type: extern.type };
    else if (extern.kind === "instance") yield* functionsIn(extern.type.exports, path);
  }
}

/** The names of the exported functions, as calls take them. */
export function exportedNames({ exports }: ComponentInterface): string[] {
  return [...functionsIn(exports, [])].map(({ path }) => path.join("#"));
}

/** The exported function `name`, as calls take it; undefined if there is none. */
export function exportedFunction({ exports }: ComponentInterface, name: string): FuncType | undefined {
  const [first, second] = name.split("#");
  const extern = lookUpName(Object.fromEntries(exports), first) as Extern | undefined;
  const found = second === undefined
    ? extern
    : extern?.kind === "instance"
    ? extern.type.exports.get(second)
    : undefined;
  return found?.kind === "func" ? found.type : undefined;
}
