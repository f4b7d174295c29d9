/**
 * Type expressions → resolved types (Binary, "Type Definitions"), with the rules of each constructor. Declarations of
 * component and instance types are validated in a scope of their own.
 */
import type { Declaration, TypeExpr, ValTypeRef } from "../model/definitions.ts";
import { layoutOf } from "../abi/layout.ts";
import { canonicalName, checkLabel } from "../model/names.ts";
import {
  type AnyType,
  type CoreFuncType,
  type FuncShape,
  isValType,
  mapFuncType,
  mapValueType,
  type Primitive,
  PRIMITIVES,
  type PrimitiveType,
  type ResourceId,
  type ValType,
  type ValueType,
} from "../model/types.ts";
import { I32, I64 } from "@waft/engine/internal/wasm/types";
import { addAlias } from "./aliases.ts";
import { defineCoreType } from "./core_types.ts";
import { addExtern, finishComponent, finishInstance, resolveExternDesc } from "./externs.ts";
import { MAX_FLAGS, MAX_TYPE_DEPTH, MAX_TYPE_NODES, MAX_VALUE_BYTES } from "./limits.ts";
import { Scope } from "./scope.ts";
import { factsOf } from "./type_facts.ts";

const PRIMITIVE_TYPES = new Map(
  (Object.keys(PRIMITIVES) as Primitive[]).map((kind): [Primitive, PrimitiveType] => [kind, { kind }]),
);

/** The value type that a reference names. */
export function resolveRef(scope: Scope, ref: ValTypeRef): ValType {
  if (typeof ref === "string") return PRIMITIVE_TYPES.get(ref) ?? scope.fail(`unknown primitive type ${ref}`);
  const type = scope.at("types", ref);
  return isValType(type) ? type : scope.fail(`type index ${ref} is not a defined type`);
}

/** Appends the type that an expression describes to the index space of types. */
export function defineType(scope: Scope, expr: TypeExpr): void {
  const type = resolveType(scope, expr);
  checkSize(scope, type);
  scope.spaces.types.push(type);
}

function resolveType(scope: Scope, expr: TypeExpr): AnyType {
  switch (expr.kind) {
    case "func":
      return resolveFunc(scope, expr);
    case "resource":
      return resolveResource(scope, expr.rep, expr.dtor);
    case "instance":
      return finishInstance(declare(scope, "instance type", expr.declarations));
    case "component":
      return finishComponent(declare(scope, "component type", expr.declarations));
    default:
      return resolveValueType(scope, expr);
  }
}

/** Rejects types that are too large to work with. */
export function checkSize(scope: Scope, type: AnyType): void {
  const { nodes, depth } = factsOf(type);
  if (nodes > MAX_TYPE_NODES) scope.fail(`effective type size exceeds the limit of ${MAX_TYPE_NODES}`);
  if (depth > MAX_TYPE_DEPTH) scope.fail(`type nesting is too deep: at most ${MAX_TYPE_DEPTH} levels are possible`);
  if (isValType(type) && layoutOf(type, "i64").size >= MAX_VALUE_BYTES) {
    scope.fail(`type exceeds maximum byte size of ${MAX_VALUE_BYTES - 1}`);
  }
}

function resolveFunc(scope: Scope, expr: FuncShape<ValTypeRef>): AnyType {
  checkLabels(scope, expr.params.map((param) => param.name), "function parameter name", "parameter name");
  const type = mapFuncType(expr, (ref) => resolveRef(scope, ref));
  if (type.result !== undefined && factsOf(type.result).borrows) {
    scope.fail("function result cannot contain a `borrow` type");
  }
  return type;
}

function resolveResource(scope: Scope, rep: number, dtor: number | undefined): AnyType {
  if (scope.kind !== "component") scope.fail("resources can only be defined within a concrete component");
  if (rep !== I32 && rep !== I64) scope.fail("resources can only be represented by `i32` or `i64`");
  if (dtor !== undefined) checkDestructor(scope, scope.at("coreFuncs", dtor).type, rep);
  const id: ResourceId = { origin: "defined", rep };
  scope.defined.add(id);
  scope.local.add(id);
  return { kind: "resource", id };
}

function checkDestructor(scope: Scope, { params, results }: CoreFuncType, rep: number): void {
  if (params.length !== 1 || params[0] !== rep || results.length > 0) {
    scope.fail("wrong signature for a destructor: it takes the representation and returns nothing");
  }
}

/** The names of each constructor's labels in messages. */
const LABEL_TITLES = {
  record: ["record field name", "field name", "record type must have at least one field"],
  variant: ["variant case name", "case name", "variant type must have at least one case"],
  flags: ["flag name", "flag name", "flags must have at least one entry"],
  enum: ["enum tag name", "tag name", "enum type must have at least one variant"],
} as const;

const KEY_KINDS: ReadonlySet<string> = new Set(
  ["bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "char", "string"] satisfies Primitive[],
);

function resolveValueType(scope: Scope, expr: ValueType<ValTypeRef, number>): ValType {
  const type = mapValueType(expr, (ref) => resolveRef(scope, ref), (index) => scope.resourceAt(index)) as ValType;
  switch (type.kind) {
    case "record":
    case "variant":
    case "flags":
    case "enum":
      checkLabelled(scope, type);
      break;
    case "tuple":
      if (type.types.length === 0) scope.fail("tuple type must have at least one type");
      break;
    case "list":
      if (type.length === 0) scope.fail("a fixed-length list must have at least one element");
      break;
    case "map":
      if (!KEY_KINDS.has(type.key.kind)) scope.fail(`\`${type.key.kind}\` is not valid as the key of a map`);
      break;
    case "stream":
    case "future":
      checkElement(scope, type.kind, type.element);
      break;
  }
  return type;
}

function checkElement(scope: Scope, kind: string, element: ValType | undefined): void {
  if (element === undefined) return;
  if (factsOf(element).borrows) scope.fail(`\`${kind}\` cannot contain a \`borrow\` type`);
  if (kind === "stream" && element.kind === "char") scope.fail("`stream<char>` is not valid at this time");
}

function checkLabelled(scope: Scope, type: Extract<ValType, { kind: keyof typeof LABEL_TITLES }>): void {
  const [title, short, empty] = LABEL_TITLES[type.kind];
  const labels = type.kind === "record"
    ? type.fields.map((field) => field.name)
    : type.kind === "variant"
    ? type.cases.map((row) => row.name)
    : type.names;
  if (labels.length === 0) scope.fail(empty);
  if (type.kind === "flags" && labels.length > MAX_FLAGS) scope.fail(`cannot have more than ${MAX_FLAGS} flags`);
  checkLabels(scope, labels, title, short);
}

function checkLabels(scope: Scope, labels: readonly string[], title: string, short: string): void {
  const seen = new Map<string, string>();
  for (const label of labels) {
    checkLabel(label, title, scope.session.offset);
    const canonical = canonicalName(label);
    const previous = seen.get(canonical);
    if (previous !== undefined) scope.fail(`${title} \`${label}\` conflicts with previous ${short} \`${previous}\``);
    seen.set(canonical, label);
  }
}

/** Validates the declarations of a component or instance type in a new scope. */
function declare(parent: Scope, kind: "component type" | "instance type", declarations: readonly Declaration[]): Scope {
  const { session } = parent;
  const scope = new Scope(kind, session, parent);
  for (const declaration of declarations) {
    session.offset = declaration.offset;
    switch (declaration.kind) {
      case "core type":
        defineCoreType(scope, declaration.type);
        break;
      case "type":
        defineType(scope, declaration.type);
        break;
      case "alias":
        addAlias(scope, declaration.alias);
        break;
      default: {
        const { kind: direction, name, type, attributes } = declaration;
        addExtern(scope, direction, name, resolveExternDesc(scope, type, direction), attributes);
      }
    }
  }
  return scope;
}
