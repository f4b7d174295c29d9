/**
 * Subtyping of resolved types (Explainer, "Type Checking"): value and function types are equal by structure, resource
 * types by identity; instances and components may export more and import less. In: an actual and an expected type. Out:
 * the reason for which they do not match, outermost first, or undefined.
 *
 * Pairs of types that have matched are remembered, since types share parts.
 */
import {
  type AnyType,
  type ComponentType,
  type Extern,
  type FuncType,
  type InstanceType,
  isPrimitive,
  isValType,
  type Labelled,
  type ResourceId,
  type ResourcePath,
  type ValType,
} from "../model/types.ts";
import { moduleMismatch } from "./core_subtype.ts";
import { Substitution } from "./substitution.ts";

/** The reason of a mismatch; undefined if the types match. */
type Mismatch = string | undefined;

const KIND_NAMES: Readonly<Record<Extern["kind"], string>> = {
  module: "module",
  func: "func",
  value: "value",
  type: "type",
  component: "component",
  instance: "instance",
};

/** Comparison of types. Remembers the pairs that match. */
export class Subtyping {
  readonly #matched = new Map<AnyType, Set<AnyType>>();

  /** The reason why an import or export of type `actual` cannot be used as `expected`. */
  extern(actual: Extern, expected: Extern): Mismatch {
    if (actual.kind !== expected.kind) {
      return `expected ${KIND_NAMES[expected.kind]}, found ${KIND_NAMES[actual.kind]}`;
    }
    if (actual.kind === "module") return expected.kind === "module" ? moduleMismatch(actual.type, expected.type) : "";
    if (actual.kind === "type" && expected.kind === "type") return this.type(actual.referenced, expected.referenced);
    return this.type(actual.type as AnyType, expected.type as AnyType);
  }

  /** The reason why `actual` is not a subtype of `expected`. */
  type(actual: AnyType, expected: AnyType): Mismatch {
    if (actual === expected || this.#matched.get(actual)?.has(expected)) return undefined;
    const mismatch = this.#compare(actual, expected);
    if (mismatch === undefined) {
      const known = this.#matched.get(actual) ?? new Set();
      this.#matched.set(actual, known.add(expected));
    }
    return mismatch;
  }

  #compare(actual: AnyType, expected: AnyType): Mismatch {
    if (isValType(actual) && isValType(expected)) return this.#value(actual, expected);
    if (actual.kind === "resource" && expected.kind === "resource") {
      return actual.id === expected.id ? undefined : "resource types are not the same";
    }
    if (actual.kind === "func" && expected.kind === "func") return this.#func(actual, expected);
    if (actual.kind === "instance" && expected.kind === "instance") return this.#instance(actual, expected);
    if (actual.kind === "component" && expected.kind === "component") return this.#component(actual, expected);
    return `expected ${typeClass(expected)}, found ${typeClass(actual)}`;
  }

  #value(actual: ValType, expected: ValType): Mismatch {
    if (actual.kind !== expected.kind) {
      if (isPrimitive(actual.kind) && isPrimitive(expected.kind)) {
        return `expected primitive \`${expected.kind}\` found primitive \`${actual.kind}\``;
      }
      return `expected ${
        isPrimitive(expected.kind) ? `primitive, found ${actual.kind}: expected ` : ""
      }${expected.kind}, found ${actual.kind}`;
    }
    return this.#sameKind(actual, expected);
  }

  #sameKind(actual: ValType, expected: ValType): Mismatch {
    switch (actual.kind) {
      case "list": {
        const other = expected as typeof actual;
        if (actual.length !== other.length) {
          return `expected ${lengthText(other.length)}, found ${lengthText(actual.length)}`;
        }
        return within("type mismatch in list element", this.type(actual.element, other.element));
      }
      case "record":
        return this.#fields(actual.fields, (expected as typeof actual).fields);
      case "variant":
        return this.#variant(actual, expected as typeof actual);
      case "tuple": {
        const { types } = expected as typeof actual;
        if (actual.types.length !== types.length) return `expected ${types.length} types, found ${actual.types.length}`;
        return first(types, (type, i) => within(`type mismatch in tuple field ${i}`, this.type(actual.types[i], type)));
      }
      case "flags":
      case "enum":
        return sameNames(actual.names, (expected as typeof actual).names)
          ? undefined
          : `mismatch in ${actual.kind} elements`;
      case "option":
        return within("type mismatch in option", this.type(actual.type, (expected as typeof actual).type));
      case "result": {
        const other = expected as typeof actual;
        return this.#optional("ok", actual.ok, other.ok) ?? this.#optional("err", actual.err, other.err);
      }
      case "map": {
        const other = expected as typeof actual;
        return within("type mismatch in map key", this.type(actual.key, other.key)) ??
          within("type mismatch in map value", this.type(actual.value, other.value));
      }
      case "stream":
      case "future":
        return this.#optional(actual.kind, actual.element, (expected as typeof actual).element);
      case "own":
      case "borrow":
        return this.type(actual.resource, (expected as typeof actual).resource);
      default:
        return undefined;
    }
  }

  #fields(actual: readonly Labelled<ValType>[], expected: readonly Labelled<ValType>[]): Mismatch {
    if (actual.length !== expected.length) return `expected ${expected.length} fields, found ${actual.length}`;
    return first(
      expected,
      ({ name, type }, i) =>
        actual[i].name === name
          ? within(`type mismatch in record field \`${name}\``, this.type(actual[i].type, type))
          : `expected field name \`${name}\`, found \`${actual[i].name}\``,
    );
  }

  #variant(actual: Extract<ValType, { kind: "variant" }>, expected: Extract<ValType, { kind: "variant" }>): Mismatch {
    if (actual.cases.length !== expected.cases.length) {
      return `expected ${expected.cases.length} cases, found ${actual.cases.length}`;
    }
    return first(expected.cases, ({ name, type }, i) => {
      const found = actual.cases[i];
      if (found.name !== name) return `expected case named \`${name}\`, found \`${found.name}\``;
      if (type === undefined) return found.type === undefined ? undefined : `expected case \`${name}\` to have no type`;
      if (found.type === undefined) return `expected case \`${name}\` to have a type, found none`;
      return within(`type mismatch in variant case \`${name}\``, this.type(found.type, type));
    });
  }

  #optional(what: string, actual: ValType | undefined, expected: ValType | undefined): Mismatch {
    if (expected === undefined) return actual === undefined ? undefined : `expected ${what} type to not be present`;
    if (actual === undefined) return `expected ${what} type, but found none`;
    return within(`type mismatch in ${what} variant`, this.type(actual, expected));
  }

  #func(actual: FuncType, expected: FuncType): Mismatch {
    if (actual.async !== expected.async) {
      return `expected ${expected.async ? "async" : "sync"} function, found ${
        actual.async ? "async" : "sync"
      } function`;
    }
    if (actual.params.length !== expected.params.length) {
      return `expected ${expected.params.length} parameters, found ${actual.params.length}`;
    }
    const params = first(
      expected.params,
      ({ name, type }, i) =>
        actual.params[i].name === name
          ? within(`type mismatch in function parameter \`${name}\``, this.type(actual.params[i].type, type))
          : `expected parameter named \`${name}\`, found \`${actual.params[i].name}\``,
    );
    return params ?? this.#result(actual.result, expected.result);
  }

  #result(actual: ValType | undefined, expected: ValType | undefined): Mismatch {
    if (actual === undefined && expected === undefined) return undefined;
    if (actual === undefined) return "expected a result, found none";
    if (expected === undefined) {
      return "expected a result, found none: the function has a result where none is expected";
    }
    return within("type mismatch with result type", this.type(actual, expected));
  }

  #instance(actual: InstanceType, expected: InstanceType): Mismatch {
    const open = expected.defined.length === 0
      ? expected.exports
      : bindResources(pathsOf(expected), expected.exports, actual.exports).externs(expected.exports);
    return first([...open], ([name, type]) => {
      const found = actual.exports.get(name);
      if (found === undefined) return `missing expected export \`${name}\``;
      return within(`type mismatch in instance export \`${name}\``, this.extern(found, type));
    });
  }

  /** A component may import less and export more than expected; its imports must be supertypes. */
  #component(actual: ComponentType, expected: ComponentType): Mismatch {
    const bound = bindResources(actual.imported, actual.imports, expected.imports);
    const imports = first([...bound.externs(actual.imports)], ([name, type]) => {
      const offered = expected.imports.get(name);
      if (offered === undefined) return `missing expected import \`${name}\``;
      return within(`type mismatch in import \`${name}\``, this.extern(offered, type));
    });
    if (imports !== undefined) return imports;
    const exports = bound.externs(actual.exports);
    const wanted = bindResources(expected.defined, expected.exports, exports).externs(expected.exports);
    return first([...wanted], ([name, type]) => {
      const found = exports.get(name);
      if (found === undefined) return `missing expected export \`${name}\``;
      return within(`type mismatch in export \`${name}\``, this.extern(found, type));
    });
  }
}

function pathsOf(type: InstanceType): ResourcePath[] {
  return type.defined.flatMap((id) => {
    const path = type.paths.get(id);
    return path === undefined ? [] : [{ id, path }];
  });
}

/**
 * The substitution of abstract resource types, found in `declared` at their paths, by those that `given` has at the
 * same paths. A path that `given` lacks, or where it has no resource type, is left out: the comparison of the types
 * reports it.
 */
export function bindResources(
  resources: readonly ResourcePath[],
  declared: ReadonlyMap<string, Extern>,
  given: ReadonlyMap<string, Extern>,
): Substitution {
  const ids = new Map<ResourceId, ResourceId>();
  for (const { id, path } of resources) {
    const found = resourceAt(given, path);
    if (found !== undefined && resourceAt(declared, path) !== undefined) ids.set(id, found);
  }
  return new Substitution(ids);
}

/** The resource type that the item at `path` is; undefined if there is none. */
function resourceAt(externs: ReadonlyMap<string, Extern>, path: readonly string[]): ResourceId | undefined {
  let at: ReadonlyMap<string, Extern> = externs;
  for (const name of path.slice(0, -1)) {
    const extern = at.get(name);
    if (extern?.kind !== "instance") return undefined;
    at = extern.type.exports;
  }
  const last = at.get(path[path.length - 1]);
  return last?.kind === "type" && last.type.kind === "resource" ? last.type.id : undefined;
}

/** The class of a type, for messages. */
function typeClass(type: AnyType): string {
  return isValType(type) ? "defined type" : type.kind;
}

function lengthText(length: number | undefined): string {
  return length === undefined ? "a list of any length" : `a list of length ${length}`;
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, i) => name === b[i]);
}

/** The first mismatch that `check` finds. */
function first<T>(items: readonly T[], check: (item: T, index: number) => Mismatch): Mismatch {
  for (let i = 0; i < items.length; i++) {
    const mismatch = check(items[i], i);
    if (mismatch !== undefined) return mismatch;
  }
  return undefined;
}

function within(where: string, mismatch: Mismatch): Mismatch {
  return mismatch === undefined ? undefined : `${where}: ${mismatch}`;
}
