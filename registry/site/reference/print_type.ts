/**
 * TypeScript from the types of `deno doc --json`.
 *
 * In: a tree of types. Out: source text as an author would write it. A kind of type that is not known here is printed
 * as the text that deno doc gives for it.
 */
import type { FunctionDef, Member, Param, TsType, TypeParam } from "./doc_json.ts";

/** Prints a type. */
export function printType(type: TsType | undefined): string {
  if (type === undefined) return "unknown";
  const { value } = type;
  switch (type.kind) {
    case "keyword":
      return String(value);
    case "literal":
      return value.kind === "string" ? JSON.stringify(value.string) : String(value[value.kind] ?? type.repr);
    case "typeRef":
      return value.typeName + typeArguments(value.typeParams);
    case "union":
      return list(value, " | ");
    case "intersection":
      return list(value, " & ");
    case "array":
      return `${atom(value)}[]`;
    case "tuple":
      return `[${list(value, ", ")}]`;
    case "parenthesized":
      return `(${printType(value)})`;
    case "optional":
      return `${atom(value)}?`;
    case "rest":
      return `...${printType(value)}`;
    case "typeOperator":
      return `${value.operator} ${atom(value.tsType)}`;
    case "typeQuery":
      return `typeof ${value}`;
    case "indexedAccess":
      return `${atom(value.objType)}[${printType(value.indexType)}]`;
    case "fnOrConstructor":
      return `${value.constructor === true ? "new " : ""}${typeParameters(value.typeParams)}(${
        printParams(value.params)
      }) => ${printType(value.tsType)}`;
    case "typeLiteral":
      return printLiteral(value);
    case "mapped":
      return `{ [${value.typeParam.name} in ${printType(value.typeParam.constraint)}]${
        value.optional === true ? "?" : ""
      }: ${printType(value.tsType)} }`;
    case "conditional":
      return `${printType(value.checkType)} extends ${printType(value.extendsType)} ? ${printType(value.trueType)} : ${
        printType(value.falseType)
      }`;
    case "typePredicate":
      return `${value.asserts === true ? "asserts " : ""}${
        value.param?.type === "this" ? "this" : value.param?.name
      } is ${printType(value.type)}`;
    case "this":
      return "this";
    default:
      return type.repr ?? "unknown";
  }
}

function list(types: readonly TsType[], separator: string): string {
  return types.map((type) => type.kind === "fnOrConstructor" ? `(${printType(type)})` : printType(type)).join(
    separator,
  );
}

/** A type as an operand: in parentheses where the grammar needs them. */
function atom(type: TsType): string {
  const isCompound = ["union", "intersection", "fnOrConstructor", "conditional", "typeOperator"].includes(type.kind);
  return isCompound ? `(${printType(type)})` : printType(type);
}

function typeArguments(types: readonly TsType[] | undefined): string {
  return types === undefined || types.length === 0 ? "" : `<${types.map(printType).join(", ")}>`;
}

/** Prints type parameters with their angle brackets. */
export function typeParameters(params: readonly TypeParam[] | undefined): string {
  if (params === undefined || params.length === 0) return "";
  const one = (p: TypeParam): string =>
    p.name + (p.constraint === undefined ? "" : ` extends ${printType(p.constraint)}`) +
    (p.default === undefined ? "" : ` = ${printType(p.default)}`);
  return `<${params.map(one).join(", ")}>`;
}

function printLiteral(
  value: {
    readonly properties?: readonly Member[];
    readonly methods?: readonly Member[];
    readonly indexSignatures?: readonly {
      readonly params: readonly Param[];
      readonly tsType?: TsType;
      readonly readonly?: boolean;
    }[];
  },
): string {
  const members = [
    ...(value.indexSignatures ?? []).map((i) =>
      `${i.readonly === true ? "readonly " : ""}[${printParams(i.params)}]: ${printType(i.tsType)}`
    ),
    ...(value.properties ?? []).map(printProperty),
    ...(value.methods ?? []).map((m) => m.name + printFunction(m as FunctionDef)),
  ];
  return members.length === 0 ? "{}" : `{ ${members.join("; ")} }`;
}

/** Prints a property without its end. */
export function printProperty(p: Member): string {
  return `${p.isStatic === true ? "static " : ""}${p.readonly === true ? "readonly " : ""}${p.name}${
    p.optional === true ? "?" : ""
  }: ${printType(p.tsType)}`;
}

/** Prints parameters and result of a function. */
export function printFunction(f: FunctionDef): string {
  const result = f.returnType === undefined ? "" : `: ${printType(f.returnType)}`;
  return `${typeParameters(f.typeParams)}(${printParams(f.params)})${result}`;
}

/** Prints parameters. */
export function printParams(params: readonly Param[]): string {
  return params.map((p) => printParam(p, false)).join(", ");
}

function printParam(p: Param, hasDefault: boolean): string {
  if (p.kind === "assign") return printParam(p.left!, true);
  if (p.kind === "rest") return `...${printParam({ ...p.arg!, ...(p.tsType && { tsType: p.tsType }) }, false)}`;
  const name = p.name ?? (p.kind === "array" ? "values" : "options");
  const type = p.tsType === undefined ? "" : `: ${printType(p.tsType)}`;
  return `${name}${p.optional === true || hasDefault ? "?" : ""}${type}`;
}
