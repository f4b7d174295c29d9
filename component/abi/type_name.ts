/**
 * Types and signatures of functions in the notation of WIT, for messages. In: resolved types. Out: text on one line.
 */
import type { FuncType, ValType } from "../model/types.ts";

/** The signature of a function, such as `func(name: string) -> u32`. */
export function signature(type: FuncType): string {
  const params = type.params.map((param) => `${param.name}: ${typeName(param.type)}`).join(", ");
  const result = type.result === undefined ? "" : ` -> ${typeName(type.result)}`;
  return `${type.async ? "async " : ""}func(${params})${result}`;
}

/** The notation of an owned handle of a resource. */
type OwnName = (resource: string) => string;

/**
 * The part of a function type that its implementation relies on, such as `func(string) -> u32`. Unlike in messages, an
 * owned handle is marked as one: a component may call a resource `string`.
 */
export function functionShape(type: FuncType): string {
  const nameOf = (operand: ValType): string => typeName(operand, (name) => `own<${name}>`);
  const result = type.result === undefined ? "" : ` -> ${nameOf(type.result)}`;
  return `${type.async ? "async " : ""}func(${type.params.map((param) => nameOf(param.type)).join(", ")})${result}`;
}

/** The notation of a type; a resource has the name under which it was imported or exported. */
export function typeName(type: ValType, own: OwnName = (name) => name): string {
  const nameOf = (operand: ValType): string => typeName(operand, own);
  switch (type.kind) {
    case "list":
      return type.length === undefined
        ? `list<${nameOf(type.element)}>`
        : `list<${nameOf(type.element)}, ${type.length}>`;
    case "map":
      return `map<${nameOf(type.key)}, ${nameOf(type.value)}>`;
    case "record":
      return `record { ${type.fields.map((field) => `${field.name}: ${nameOf(field.type)}`).join(", ")} }`;
    case "tuple":
      return `tuple<${type.types.map(nameOf).join(", ")}>`;
    case "variant":
      return `variant { ${
        type.cases.map((c) => c.type === undefined ? c.name : `${c.name}(${nameOf(c.type)})`).join(", ")
      } }`;
    case "enum":
    case "flags":
      return `${type.kind} { ${type.names.join(", ")} }`;
    case "option":
      return `option<${nameOf(type.type)}>`;
    case "result":
      return resultName(type, nameOf);
    case "stream":
    case "future":
      return type.element === undefined ? type.kind : `${type.kind}<${nameOf(type.element)}>`;
    case "own":
    case "borrow": {
      const { id } = type.resource;
      const name = "name" in id ? String(id.name) : "resource";
      return type.kind === "own" ? own(name) : `borrow<${name}>`;
    }
    default:
      return type.kind;
  }
}

function resultName({ ok, err }: Extract<ValType, { kind: "result" }>, nameOf: (type: ValType) => string): string {
  if (ok === undefined && err === undefined) return "result";
  if (err === undefined) return `result<${nameOf(ok!)}>`;
  return `result<${ok === undefined ? "_" : nameOf(ok)}, ${nameOf(err)}>`;
}
