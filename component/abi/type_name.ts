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

/** The notation of a type; a resource has the name under which it was imported or exported. */
export function typeName(type: ValType): string {
  switch (type.kind) {
    case "list":
      return type.length === undefined
        ? `list<${typeName(type.element)}>`
        : `list<${typeName(type.element)}, ${type.length}>`;
    case "map":
      return `map<${typeName(type.key)}, ${typeName(type.value)}>`;
    case "record":
      return `record { ${type.fields.map((field) => `${field.name}: ${typeName(field.type)}`).join(", ")} }`;
    case "tuple":
      return `tuple<${type.types.map(typeName).join(", ")}>`;
    case "variant":
      return `variant { ${
        type.cases.map((c) => c.type === undefined ? c.name : `${c.name}(${typeName(c.type)})`).join(", ")
      } }`;
    case "enum":
    case "flags":
      return `${type.kind} { ${type.names.join(", ")} }`;
    case "option":
      return `option<${typeName(type.type)}>`;
    case "result":
      return resultName(type);
    case "stream":
    case "future":
      return type.element === undefined ? type.kind : `${type.kind}<${typeName(type.element)}>`;
    case "own":
    case "borrow": {
      const { id } = type.resource;
      const name = "name" in id ? String(id.name) : "resource";
      return type.kind === "own" ? name : `borrow<${name}>`;
    }
    default:
      return type.kind;
  }
}

function resultName({ ok, err }: Extract<ValType, { kind: "result" }>): string {
  if (ok === undefined && err === undefined) return "result";
  if (err === undefined) return `result<${typeName(ok!)}>`;
  return `result<${ok === undefined ? "_" : typeName(ok)}, ${typeName(err)}>`;
}
