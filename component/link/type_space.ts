/**
 * Types of one instantiation. In: type expressions of a decoded component and its index spaces. Out: resolved types
 * whose resources are those of this instantiation. Types are resolved on first use. Invariant: a type without handles
 * is resolved once per component, so that all instantiations share its generated code.
 */
import type { Declaration, ResourceExpr, TypeExpr, ValTypeRef } from "../model/definitions.ts";
import {
  type FuncType,
  isPrimitive,
  mapFuncType,
  mapValueType,
  type ResourceType,
  type ValType,
  valueOperands,
} from "../model/types.ts";
import type { RuntimeResource } from "../async/entries.ts";

/** An entry of the index space of types. */
export type RuntimeType =
  | { readonly kind: "resource"; readonly id: RuntimeResource }
  | { readonly kind: "expr"; readonly expr: TypeExpr; readonly scope: TypeSpace };

const PLAIN = new WeakMap<TypeExpr, ValType | FuncType>();
const PRIMITIVE_TYPES = new Map<string, ValType>();

/** The index space of types of a component instance or of a type with declarations. */
export class TypeSpace {
  readonly #entries: RuntimeType[] = [];
  readonly #resolved: (ValType | FuncType | undefined)[] = [];
  readonly parent: TypeSpace | undefined;

  constructor(parent: TypeSpace | undefined) {
    this.parent = parent;
  }

  add(entry: RuntimeType): void {
    this.#entries.push(entry);
  }

  /** Adds a type definition other than that of a resource. */
  define(expr: Exclude<TypeExpr, ResourceExpr>): void {
    this.add({ kind: "expr", expr, scope: this });
  }

  get(index: number): RuntimeType {
    return this.#entries[index];
  }

  /** The scope `count` levels out. */
  outer(count: number): TypeSpace {
    return count === 0 ? this : this.parent!.outer(count - 1);
  }

  resource(index: number): RuntimeResource {
    const entry = this.#entries[index];
    if (entry.kind !== "resource") throw new TypeError(`Type ${index} is not a resource type`);
    return entry.id;
  }

  func(index: number): FuncType {
    return this.#resolve(index) as FuncType;
  }

  value(reference: ValTypeRef): ValType {
    if (typeof reference === "number") return this.#resolve(reference) as ValType;
    let type = PRIMITIVE_TYPES.get(reference);
    if (type === undefined && isPrimitive(reference)) PRIMITIVE_TYPES.set(reference, type = { kind: reference });
    return type!;
  }

  #resolve(index: number): ValType | FuncType {
    const known = this.#resolved[index];
    if (known !== undefined) return known;
    const entry = this.#entries[index];
    if (entry.kind !== "expr") throw new TypeError(`Type ${index} is not a value or function type`);
    const type = entry.scope === this ? this.#expand(entry.expr) : entry.scope.#resolveExpr(entry.expr);
    return this.#resolved[index] = type;
  }

  /** Resolves an expression of this space, which another space aliases. */
  #resolveExpr(expr: TypeExpr): ValType | FuncType {
    const index = this.#entries.findIndex((entry) => entry.kind === "expr" && entry.expr === expr);
    return index < 0 ? this.#expand(expr) : this.#resolve(index);
  }

  #expand(expr: TypeExpr): ValType | FuncType {
    const plain = PLAIN.get(expr);
    if (plain !== undefined) return plain;
    const type = this.#expandAnew(expr);
    if (!hasHandles(type)) PLAIN.set(expr, type);
    return type;
  }

  #expandAnew(expr: TypeExpr): ValType | FuncType {
    const value = (reference: ValTypeRef) => this.value(reference);
    switch (expr.kind) {
      case "func":
        return mapFuncType(expr, value);
      case "resource":
      case "instance":
      case "component":
        throw new TypeError(`A ${expr.kind} type is not a value type`);
      default:
        return mapValueType(expr, value, (index): ResourceType => ({ kind: "resource", id: this.resource(index) }));
    }
  }
}

function hasHandles(type: ValType | FuncType): boolean {
  if (type.kind === "func") {
    return type.params.some((p) => hasHandles(p.type)) || (type.result !== undefined && hasHandles(type.result));
  }
  return type.kind === "own" || type.kind === "borrow" || valueOperands<ValType, ResourceType>(type).some(hasHandles);
}

/** The exports that an instance type declares. */
export interface DeclaredExport {
  readonly name: string;
  readonly kind: Declaration["kind"] extends never ? never
    : "func" | "type" | "instance" | "value" | "module" | "component";
  /** The function type of a function; the resource of a type bound by `(sub resource)`. */
  readonly func?: FuncType;
  readonly type?: RuntimeType;
  readonly instance?: readonly DeclaredExport[];
}

/** The scope in which the declarations of an instance type are resolved for one instance. */
export function declaredExports(
  declarations: readonly Declaration[],
  outer: TypeSpace,
  makeResource: (name: string) => RuntimeResource,
): DeclaredExport[] {
  const space = new TypeSpace(outer);
  const exports: DeclaredExport[] = [];
  for (const declaration of declarations) {
    switch (declaration.kind) {
      case "type":
        if (declaration.type.kind !== "resource") space.define(declaration.type);
        break;
      case "alias": {
        const { alias } = declaration;
        if (alias.kind === "outer" && alias.sort === "type") space.add(space.outer(alias.count).get(alias.index));
        else if (alias.kind === "export" && alias.sort === "type") {
          const instance = exports.filter(({ kind }) => kind === "instance")[alias.instance];
          space.add(instance.instance!.find(({ name }) => name === alias.name)!.type!);
        }
        break;
      }
      case "export": {
        const { name, type } = declaration;
        if (type.kind === "func") exports.push({ name, kind: "func", func: space.func(type.type) });
        else if (type.kind === "type") {
          const entry: RuntimeType = type.eq === undefined
            ? { kind: "resource", id: makeResource(name) }
            : space.get(type.eq);
          space.add(entry);
          exports.push({ name, kind: "type", type: entry });
        } else if (type.kind === "instance") {
          const entry = space.get(type.type);
          const nested = entry.kind === "expr" && entry.expr.kind === "instance"
            ? declaredExports(entry.expr.declarations, entry.scope, makeResource)
            : [];
          exports.push({ name, kind: "instance", instance: nested });
        } else exports.push({ name, kind: type.kind });
        break;
      }
    }
  }
  return exports;
}
