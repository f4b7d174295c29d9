/**
 * Resolved WIT: packages with interfaces and worlds, whose names are references.
 *
 * Invariants: types are acyclic; items are in the order of the source, but functions of resources precede others; a
 * world contains every interface that its items use, before the item that uses it.
 */
import type {
  ChannelType,
  EnumType,
  FlagsType,
  HandleType,
  ListType,
  MapType,
  OptionType,
  PrimitiveType,
  RecordType,
  ResultType,
  TupleType,
  ValueType,
  VariantType,
} from "../model/types.ts";
import type { Annotations, FuncKind, PackageName } from "./syntax.ts";

export type { Annotations, FuncKind, PackageName };

/** A package. */
export interface WitPackage {
  readonly name: PackageName;
  docs: string;
  readonly interfaces: Map<string, WitInterface>;
  readonly worlds: Map<string, WitWorld>;
}

/** An interface, or the inline interface of an import or export, which has no package. */
export interface WitInterface extends Annotations {
  readonly name: string;
  readonly package?: WitPackage;
  readonly types: Map<string, WitTypeDef>;
  /** Functions by their full names, such as `[method]blob.read`. */
  readonly funcs: Map<string, WitFunc>;
}

/** A named type. `owner` is the interface or world in which it is defined. */
export interface WitTypeDef extends Annotations {
  readonly name: string;
  readonly owner: WitInterface | WitWorld;
  /** Documentation of fields, cases and flags by name. */
  labelDocs?: ReadonlyMap<string, string>;
  type:
    | { readonly kind: "alias"; readonly type: WitType }
    | { readonly kind: "use"; readonly target: WitTypeDef }
    | { readonly kind: "resource" }
    | Extract<ValueType<WitType, WitTypeDef>, { kind: "record" | "variant" | "flags" | "enum" }>;
}

/** A type in a signature or definition; handles refer to the definitions of resources. */
export type WitType =
  | { readonly kind: "named"; readonly def: WitTypeDef }
  | PrimitiveType
  | ListType<WitType>
  | RecordType<WitType>
  | VariantType<WitType>
  | TupleType<WitType>
  | FlagsType
  | EnumType
  | OptionType<WitType>
  | ResultType<WitType>
  | MapType<WitType>
  | ChannelType<WitType>
  | HandleType<WitTypeDef>;

export interface WitFunc extends Annotations {
  /** The name without annotation, such as `read`. */
  readonly name: string;
  readonly kind: FuncKind;
  /** The resource of a method, static function or constructor. */
  readonly resource?: WitTypeDef;
  readonly async: boolean;
  /** Parameters without `self`. */
  readonly params: readonly { readonly name: string; readonly type: WitType }[];
  /** The result; of a constructor only if it is fallible. */
  readonly result?: WitType;
}

/** An import or export of a world. */
export type WorldItem =
  & Annotations
  & (
    | {
      readonly kind: "interface";
      readonly interface: WitInterface;
      /** The plain name, of an inline interface or of one with a name of its own. */
      readonly label?: string;
    }
    | { readonly kind: "func"; readonly func: WitFunc }
    | { readonly kind: "type"; readonly def: WitTypeDef }
  );

/** A world; the keys of its items are the names of imports and exports. */
export interface WitWorld extends Annotations {
  readonly name: string;
  readonly package: WitPackage;
  readonly imports: Map<string, WorldItem>;
  readonly exports: Map<string, WorldItem>;
}

/** `namespace:package@version`. */
export function packageId({ namespace, name, version }: PackageName): string {
  return `${namespace}:${name}${version === undefined ? "" : `@${version}`}`;
}

/** `namespace:package/interface@version`; the plain name of an inline interface. */
export function interfaceId(item: { readonly name: string; readonly package?: WitPackage }): string {
  if (item.package === undefined) return item.name;
  const { namespace, name, version } = item.package.name;
  return `${namespace}:${name}/${item.name}${version === undefined ? "" : `@${version}`}`;
}

/** The full name of a function, such as `[method]blob.read`. */
export function funcId({ kind, name, resource }: Pick<WitFunc, "kind" | "name" | "resource">): string {
  if (resource === undefined || kind === "free") return name;
  return kind === "constructor" ? `[constructor]${resource.name}` : `[${kind}]${resource.name}.${name}`;
}

/** The definition behind uses and plain aliases. */
export function originOf(def: WitTypeDef): WitTypeDef {
  let at = def;
  for (;;) {
    if (at.type.kind === "use") at = at.type.target;
    else if (at.type.kind === "alias" && at.type.type.kind === "named") at = at.type.type.def;
    else if (at.type.kind === "alias" && at.type.type.kind === "own") at = at.type.type.resource;
    else return at;
  }
}

/** Whether `def` is a resource, directly or by use or alias. */
export function isResource(def: WitTypeDef): boolean {
  return originOf(def).type.kind === "resource";
}
