/**
 * Exported interfaces as nested components: the types of an instance are named by its exports, which only an
 * instantiation can do. The nested component imports the functions and all types that occur in them, and exports the
 * functions in terms of the interface's own types. In: an interface, and the identifiers of the types around it. Out:
 * the fields of the component, and the types to instantiate it with.
 */
import { funcId, isResource, originOf, type WitInterface, type WitTypeDef } from "../wit/document.ts";
import {
  funcParts,
  type Identifiers,
  inDependencyOrder,
  namesIn,
  quoted,
  signatureText,
  typeDeclaration,
  TypeNames,
  typesUsedBy,
  typeText,
} from "./type_text.ts";

interface ExportedInterface {
  readonly text: string;
  /** The types to instantiate the component with. */
  readonly typeArgs: readonly { readonly name: string; readonly id: string }[];
}

/** Definitions of an interface's types around the component; `outer` gets their identifiers, and has the resources. */
export function interfaceTypes({ types }: WitInterface, outer: TypeNames, ids: Identifiers): string[] {
  return inDependencyOrder(types.values(), new Set(types.values()))
    .flatMap((def) => outer.has(def) ? [] : defineOutside(def, outer, ids));
}

/** Writes the component of `target`; `outer` has the identifiers of its types. */
export function exportedInterfaceText(target: WitInterface, outer: TypeNames, ids: Identifiers): ExportedInterface {
  const own = inDependencyOrder(target.types.values(), new Set(target.types.values()));
  const inner = new TypeNames();
  const lines: string[] = [];
  const typeArgs = closure(target).map((def, k) => {
    const name = `import-type-${k}`;
    lines.push(typeDeclaration(def, name, "import", inner, ids));
    return { name, id: outer.get(def) };
  });
  const funcs = [...target.funcs.values()].map((func, k) => {
    const id = ids.fresh("f");
    lines.push(`(import "import-func-${k}" (func ${id}${signatureText(func, inner)}))`);
    return { id, func };
  });
  const exported = new TypeNames(inner);
  for (const def of own) lines.push(exportType(def, inner, exported, ids));
  for (const { id, func } of funcs) {
    lines.push(`(export ${quoted(funcId(func))} (func ${id}) (func${signatureText(func, exported)}))`);
  }
  return { text: lines.join("\n"), typeArgs };
}

/** The types of the interface and of its functions, with all that they refer to, in order. */
function closure({ types, funcs }: WitInterface): WitTypeDef[] {
  const all = new Set<WitTypeDef>();
  const add = (def: WitTypeDef): void => {
    if (all.has(def)) return;
    all.add(def);
    typesUsedBy(def).forEach(add);
  };
  for (const def of types.values()) add(def);
  for (const func of funcs.values()) {
    const { params, result } = funcParts(func);
    for (const type of [...params.map((param) => param.type), ...(result === undefined ? [] : [result])]) {
      namesIn(type).forEach(add);
    }
  }
  return inDependencyOrder(all, all);
}

/** The type that another name of it refers to; undefined for a definition of its own. */
function targetOf(def: WitTypeDef): WitTypeDef | undefined {
  const { type } = def;
  if (type.kind === "use") return type.target;
  if (type.kind !== "alias") return undefined;
  if (isResource(def)) return originOf(def);
  return type.type.kind === "named" ? type.type.def : undefined;
}

function definitionText(def: WitTypeDef, names: TypeNames): string {
  const { type } = def;
  if (type.kind === "use" || type.kind === "resource") throw new Error(`the type ${def.name} has no definition`);
  return typeText(type.kind === "alias" ? type.type : type, names);
}

function defineOutside(def: WitTypeDef, outer: TypeNames, ids: Identifiers): string[] {
  const target = targetOf(def);
  if (target !== undefined) {
    outer.set(def, outer.get(target));
    return [];
  }
  const id = ids.fresh("d");
  const text = definitionText(def, outer);
  outer.set(def, id);
  return [`(type ${id} ${text})`];
}

function exportType(def: WitTypeDef, inner: TypeNames, exported: TypeNames, ids: Identifiers): string {
  const target = targetOf(def);
  const id = ids.fresh("y");
  const declare = (source: string) => {
    exported.set(def, id);
    return `(export ${id} ${quoted(def.name)} (type ${source}))`;
  };
  if (target !== undefined) return declare(exported.get(target));
  if (def.type.kind === "resource") return declare(inner.get(def));
  const source = ids.fresh("d");
  return `(type ${source} ${definitionText(def, exported)})\n${declare(source)}`;
}
