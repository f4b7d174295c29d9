/**
 * The syntax of WIT files before names are resolved (WIT, "Top-level items").
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

/** A place in a file: the offset of a token. */
export interface Name {
  readonly text: string;
  readonly at: number;
}

/** The name of a package. */
export interface PackageName {
  readonly namespace: string;
  readonly name: string;
  readonly version?: string;
}

/** A path to an interface or world: of this package if it names no other. */
export interface UsePath {
  readonly package?: PackageName;
  readonly name: Name;
}

/** Annotations of an item. */
export interface Annotations {
  readonly docs: string;
  readonly since?: string;
  readonly unstable?: string;
  readonly deprecated?: string;
  readonly externalId?: string;
}

/** A type as written; an identifier names a type of the scope. */
export type TypeSyntax =
  | { readonly kind: "named"; readonly name: Name }
  | PrimitiveType
  | ListType<TypeSyntax>
  | RecordType<TypeSyntax>
  | VariantType<TypeSyntax>
  | TupleType<TypeSyntax>
  | FlagsType
  | EnumType
  | OptionType<TypeSyntax>
  | ResultType<TypeSyntax>
  | MapType<TypeSyntax>
  | ChannelType<TypeSyntax>
  | HandleType<Name>;

export interface FuncSyntax {
  readonly async: boolean;
  readonly params: readonly { readonly name: string; readonly type: TypeSyntax }[];
  readonly result?: TypeSyntax;
}

export type FuncKind = "free" | "method" | "static" | "constructor";

export interface FuncItem extends Annotations {
  readonly kind: "func";
  readonly name: Name;
  readonly funcKind: FuncKind;
  readonly type: FuncSyntax;
}

/** A definition of a type. */
export interface TypeItem extends Annotations {
  readonly kind: "type";
  readonly name: Name;
  /** Documentation of fields, cases and flags by name. */
  readonly labelDocs?: ReadonlyMap<string, string>;
  readonly type:
    | { readonly kind: "alias"; readonly type: TypeSyntax }
    | { readonly kind: "resource"; readonly funcs: readonly FuncItem[] }
    | Extract<ValueType<TypeSyntax, Name>, { kind: "record" | "variant" | "flags" | "enum" }>;
}

export interface UseItem extends Annotations {
  readonly kind: "use";
  readonly path: UsePath;
  readonly names: readonly { readonly name: Name; readonly as: Name }[];
}

export type InterfaceItem = FuncItem | TypeItem | UseItem;

export interface InterfaceSyntax extends Annotations {
  readonly kind: "interface";
  readonly name: Name;
  readonly items: readonly InterfaceItem[];
}

/** An import or export of a world. */
export interface ExternItem extends Annotations {
  readonly kind: "import" | "export";
  /** The plain name, if the item has one. */
  readonly name?: Name;
  readonly type:
    | { readonly kind: "func"; readonly type: FuncSyntax }
    | { readonly kind: "inline"; readonly items: readonly InterfaceItem[] }
    | { readonly kind: "path"; readonly path: UsePath };
}

export interface IncludeItem extends Annotations {
  readonly kind: "include";
  readonly path: UsePath;
  readonly names: readonly { readonly name: Name; readonly as: Name }[];
}

export interface WorldSyntax extends Annotations {
  readonly kind: "world";
  readonly name: Name;
  readonly items: readonly (ExternItem | TypeItem | UseItem | IncludeItem)[];
}

export interface TopLevelUse extends Annotations {
  readonly kind: "use";
  readonly path: UsePath;
  readonly as: Name;
}

/** The items of one package in one file. */
export interface PackageSyntax {
  readonly name?: PackageName;
  readonly docs: string;
  readonly items: readonly (InterfaceSyntax | WorldSyntax | TopLevelUse)[];
}

/** A parsed file: its own package first, then the packages nested in it. */
export interface FileSyntax {
  readonly source: { readonly file: string; readonly text: string };
  readonly root: PackageSyntax;
  readonly nested: readonly PackageSyntax[];
}
