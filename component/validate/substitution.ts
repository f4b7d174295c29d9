/**
 * Substitution of resource types in resolved types: instantiation replaces the abstract resource types of imports by
 * those of the arguments and those of exports by fresh ones. In: a map of resource ids. Out: types with the ids
 * replaced.
 *
 * Invariant: parts without replaced ids keep their identity, and a node that occurs several times is replaced by one
 * node, so that names of types (validate/visibility.ts) survive.
 */
import {
  type AnyType,
  type ExportPath,
  type Extern,
  type InstanceType,
  isValType,
  mapFuncType,
  mapValueType,
  type ResourceId,
  type ResourceType,
  type ValType,
  valueOperands,
} from "../model/types.ts";
import { factsOf } from "./type_facts.ts";

/** A map of resource types, and of nodes that an instantiation replaces, applied to types. */
export class Substitution {
  readonly #ids: ReadonlyMap<ResourceId, ResourceId>;
  readonly #done: Map<AnyType, AnyType>;
  /** Types without replaced resources may contain replaced nodes. */
  readonly #everywhere: boolean;

  constructor(ids: ReadonlyMap<ResourceId, ResourceId>, nodes: ReadonlyMap<AnyType, AnyType> = new Map()) {
    this.#ids = ids;
    this.#done = new Map(nodes);
    this.#everywhere = nodes.size > 0;
  }

  /** The replacement of a resource type. */
  id(id: ResourceId): ResourceId {
    return this.#ids.get(id) ?? id;
  }

  #touches(type: AnyType): boolean {
    if (this.#everywhere) return true;
    if (this.#ids.size === 0) return false;
    for (const id of factsOf(type).resources) if (this.#ids.has(id)) return true;
    return false;
  }

  /** `type` with its parts replaced. */
  type<T extends AnyType>(type: T): T {
    const done = this.#done.get(type);
    if (done !== undefined) return done as T;
    if (!this.#touches(type)) return type;
    const replaced = this.#replace(type);
    this.#done.set(type, replaced);
    return replaced as T;
  }

  #replace(type: AnyType): AnyType {
    if (isValType(type)) {
      const operands = type.kind === "own" || type.kind === "borrow"
        ? [type.resource]
        : valueOperands<ValType, ResourceType>(type);
      if (operands.every((operand) => this.type(operand) === operand)) return type;
      return mapValueType(type, (part: ValType) => this.type(part), (part: ResourceType) => this.type(part)) as ValType;
    }
    switch (type.kind) {
      case "resource": {
        const id = this.id(type.id);
        return id === type.id ? type : { kind: "resource", id };
      }
      case "func": {
        const replaced = mapFuncType(type, (part) => this.type(part));
        const same = replaced.result === type.result &&
          replaced.params.every((row, i) => row.type === type.params[i].type);
        return same ? type : replaced;
      }
      case "instance": {
        const exports = this.externs(type.exports);
        return exports === type.exports ? type : { ...type, exports, paths: this.paths(type.paths) };
      }
      case "component": {
        const imports = this.externs(type.imports);
        const exports = this.externs(type.exports);
        if (imports === type.imports && exports === type.exports) return type;
        return { ...type, imports, exports, paths: this.paths(type.paths) };
      }
    }
  }

  /** Paths with the resource types replaced. */
  paths(paths: ReadonlyMap<ResourceId, ExportPath>): Map<ResourceId, ExportPath> {
    return new Map([...paths].map(([id, path]) => [this.id(id), path]));
  }

  /** Imports or exports with the parts of their types replaced; the same map if nothing is replaced. */
  externs(externs: ReadonlyMap<string, Extern>): ReadonlyMap<string, Extern> {
    let changed = false;
    const replaced = [...externs].map(([name, extern]): [string, Extern] => {
      const next = this.extern(extern);
      changed ||= next !== extern;
      return [name, next];
    });
    return changed ? new Map(replaced) : externs;
  }

  /** The type of an import or export with its parts replaced. */
  extern(extern: Extern): Extern {
    if (extern.kind === "module") return extern;
    if (extern.kind === "type") {
      const type = this.type(extern.type);
      const referenced = this.type(extern.referenced);
      return type === extern.type && referenced === extern.referenced ? extern : { ...extern, type, referenced };
    }
    const type = this.type<AnyType>(extern.type);
    return type === extern.type ? extern : { ...extern, type } as Extern;
  }
}

/** Binds the resource types that every instance of `type` has of its own to those that `fresh` returns. */
export function openInstance(type: InstanceType, fresh: (id: ResourceId) => ResourceId): InstanceType {
  if (type.defined.length === 0) return type;
  const substitution = new Substitution(new Map(type.defined.map((id) => [id, fresh(id)])));
  const { kind, exports, paths } = type;
  return { kind, exports: substitution.externs(exports), defined: [], paths: substitution.paths(paths) };
}
