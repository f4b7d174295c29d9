/**
 * Properties of resolved types that validation asks for often: size as a tree, depth, contained handles and lists, and
 * the free resource types. Computed once per node from those of its operands.
 *
 * Relies on types being built bottom up: the operands of a node are within the limits before the node exists.
 */
import { type AnyType, type Extern, isValType, type ResourceId, type ValType, valueOperands } from "../model/types.ts";

/** Properties of a type. */
interface TypeFacts {
  /** Nodes of the type as a tree. */
  readonly nodes: number;
  readonly depth: number;
  /** Contains a `borrow`. */
  readonly borrows: boolean;
  /** Contains a list or string, whose values need memory beyond their flat form. */
  readonly needsMemory: boolean;
  /** Resource types that the type refers to and does not bind itself. */
  readonly resources: ReadonlySet<ResourceId>;
}

const NO_RESOURCES: ReadonlySet<ResourceId> = new Set();
const known = new WeakMap<AnyType, TypeFacts>();

/** The properties of `type`. */
export function factsOf(type: AnyType): TypeFacts {
  let facts = known.get(type);
  if (facts === undefined) known.set(type, facts = computeFacts(type));
  return facts;
}

function computeFacts(type: AnyType): TypeFacts {
  if (isValType(type)) return valueFacts(type);
  switch (type.kind) {
    case "resource":
      return { nodes: 1, depth: 1, borrows: false, needsMemory: false, resources: new Set([type.id]) };
    case "func": {
      const parts = type.params.map((param) => param.type);
      return combine(type.result === undefined ? parts : [...parts, type.result]);
    }
    case "instance":
      return without(externFacts(type.exports.values()), type.defined);
    case "component": {
      const bound = [...type.imported, ...type.defined].map(({ id }) => id);
      return without(externFacts([...type.imports.values(), ...type.exports.values()]), bound);
    }
  }
}

function valueFacts(type: ValType): TypeFacts {
  const facts = combine(valueOperands<ValType, unknown>(type));
  if (type.kind === "own" || type.kind === "borrow") {
    return { ...facts, resources: new Set([type.resource.id]), borrows: type.kind === "borrow" };
  }
  const list = type.kind === "string" || type.kind === "map" || (type.kind === "list" && type.length === undefined);
  // A stream or future transfers its elements later, by a memory of its own.
  const channel = type.kind === "stream" || type.kind === "future";
  return { ...facts, needsMemory: list || (facts.needsMemory && !channel) };
}

function combine(parts: readonly AnyType[]): TypeFacts {
  let nodes = 1;
  let depth = 0;
  let borrows = false;
  let needsMemory = false;
  let resources = NO_RESOURCES;
  for (const part of parts) {
    const facts = factsOf(part);
    nodes += facts.nodes;
    depth = Math.max(depth, facts.depth);
    borrows ||= facts.borrows;
    needsMemory ||= facts.needsMemory;
    resources = union(resources, facts.resources);
  }
  return { nodes, depth: depth + 1, borrows, needsMemory, resources };
}

function union(a: ReadonlySet<ResourceId>, b: ReadonlySet<ResourceId>): ReadonlySet<ResourceId> {
  if (b.size === 0 || a === b) return a;
  if (a.size === 0) return b;
  return new Set([...a, ...b]);
}

function externFacts(externs: Iterable<Extern>): TypeFacts {
  const parts: AnyType[] = [];
  let modules = 0;
  for (const extern of externs) {
    if (extern.kind === "module") modules += 1 + extern.type.imports.length + extern.type.exports.size;
    else parts.push(extern.type);
  }
  const facts = combine(parts);
  return { ...facts, nodes: facts.nodes + modules };
}

function without(facts: TypeFacts, bound: readonly ResourceId[]): TypeFacts {
  if (bound.length === 0 || facts.resources.size === 0) return facts;
  const resources = new Set(facts.resources);
  for (const id of bound) resources.delete(id);
  return { ...facts, resources };
}
