/**
 * The parts of `deno doc --json` (version 2) that the API reference uses.
 *
 * In: JSON of one module. Out: its symbols. Symbols and members with the tag `@internal` are left out.
 */

/** A documentation comment. */
export interface JsDoc {
  readonly doc?: string;
  readonly tags?: readonly { readonly kind: string; readonly doc?: string; readonly name?: string }[];
}

/** A type; `value` depends on the kind (print_type.ts). */
export interface TsType {
  readonly kind: string;
  readonly repr?: string;
  // deno-lint-ignore no-explicit-any -- a tree of some twenty shapes, each read in one place
  readonly value?: any;
}

/** A parameter. */
export interface Param {
  readonly kind: "identifier" | "assign" | "object" | "array" | "rest";
  readonly name?: string;
  readonly optional?: boolean;
  readonly tsType?: TsType;
  readonly left?: Param;
  readonly arg?: Param;
}

/** The signature of a function. */
export interface FunctionDef {
  readonly params: readonly Param[];
  readonly returnType?: TsType;
  readonly typeParams?: readonly TypeParam[];
}

/** A type parameter. */
export interface TypeParam {
  readonly name: string;
  readonly constraint?: TsType;
  readonly default?: TsType;
}

/** A property, method or accessor of a class or an interface. */
export interface Member extends Partial<FunctionDef> {
  readonly name: string;
  readonly kind?: "method" | "getter" | "setter";
  readonly jsDoc?: JsDoc;
  readonly tsType?: TsType;
  readonly optional?: boolean;
  readonly readonly?: boolean;
  readonly isStatic?: boolean;
  readonly accessibility?: "public" | "protected" | "private";
  readonly functionDef?: FunctionDef;
}

/** The definition of a declaration; the fields depend on its kind. */
export interface Definition extends Partial<FunctionDef> {
  readonly tsType?: TsType;
  readonly kind?: string;
  readonly extends?: string | readonly TsType[];
  readonly implements?: readonly TsType[];
  readonly constructors?: readonly Member[];
  readonly properties?: readonly Member[];
  readonly methods?: readonly Member[];
  readonly typeParams?: readonly TypeParam[];
}

/** Where a declaration is: an address of a file, and a line counted from 0. */
interface Location {
  readonly filename: string;
  readonly line: number;
}

/** A declaration of a symbol. */
export interface Declaration {
  readonly location?: Location;
  readonly kind: "function" | "class" | "interface" | "typeAlias" | "variable" | "enum" | "namespace";
  readonly jsDoc?: JsDoc;
  readonly def?: Definition;
}

/** An exported symbol; overloads have several declarations. */
export interface DocSymbol {
  readonly name: string;
  readonly declarations: readonly Declaration[];
}

/** A module. */
export interface DocModule {
  readonly doc: string;
  readonly symbols: readonly DocSymbol[];
}

/** True for parts that are not of the public interface. */
export function isInternal(jsDoc: JsDoc | undefined): boolean {
  return jsDoc?.tags?.some((tag) => tag.kind === "internal") === true;
}

/** The module of the output of `deno doc --json FILE`. */
export function readDocJson(text: string): DocModule {
  const { nodes } = JSON.parse(text) as {
    readonly nodes: {
      readonly [file: string]: { readonly module_doc?: JsDoc; readonly symbols: readonly DocSymbol[] };
    };
  };
  const [module] = Object.values(nodes);
  if (module === undefined) throw new Error("deno doc found no module");
  const symbols = module.symbols
    .map(({ name, declarations }) => ({ name, declarations: declarations.filter((d) => !isInternal(d.jsDoc)) }))
    .filter((symbol) => symbol.declarations.length > 0);
  return { doc: [module.module_doc?.doc ?? "", ...examplesOf(module.module_doc)].join("\n\n").trim(), symbols };
}

/** The examples of a comment. */
export function examplesOf(jsDoc: JsDoc | undefined): string[] {
  return (jsDoc?.tags ?? []).filter((tag) => tag.kind === "example").map((tag) => tag.doc ?? "");
}
