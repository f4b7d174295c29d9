/**
 * The plan of a module and of its functions, from which bodies are generated. In: the decisions of generate_module.ts.
 * Out: types shared by all parts of the generator.
 */
import type { Random } from "../random.ts";
import type { Definition, Signature, TypeName } from "../value_types.ts";

export interface PlannedFunction {
  readonly index: number;
  readonly signature: Signature;
  /** The definition of its type; undefined if the type is the plain one of its signature. */
  readonly definition: number | undefined;
  /** Whether it may be in a table; it then makes no indirect calls. */
  readonly tabled: boolean;
  /**
   * "plain"; "falling": recurses on its first parameter; "ring": tail-calls ring functions with a decreasing first
   * parameter; "pair": one of two small functions that call each other with a decreasing first parameter; "endless":
   * recurses until the stack is exhausted.
   */
  readonly style: "plain" | "falling" | "ring" | "pair" | "endless";
  /** Maximum steps of one call; undefined until the body is generated. */
  cost: number | undefined;
  /** Features that its body is guaranteed to use first. */
  readonly forced?: readonly string[];
}

export interface PlannedMemory {
  readonly min: number;
  readonly max: number;
  readonly is64: boolean;
  readonly shared: boolean;
  /** Pages of one byte; the standard form has pages of 64 KiB. */
  readonly bytePages?: boolean;
}

export interface PlannedTable {
  readonly type: TypeName;
  readonly min: number;
  readonly max: number;
  readonly is64: boolean;
}

export interface ModulePlan {
  readonly random: Random;
  readonly features: ReadonlySet<string>;
  readonly definitions: readonly Definition[];
  /** The type index of the first definition. */
  readonly shift: number;
  readonly functions: readonly PlannedFunction[];
  readonly globals: readonly { type: TypeName; mutable: boolean }[];
  readonly memories: readonly PlannedMemory[];
  readonly tables: readonly PlannedTable[];
  readonly tags: readonly { params: readonly TypeName[] }[];
  /** V8 accepts only one form of exceptions per module. */
  readonly legacy: boolean;
  readonly dataLengths: readonly number[];
  readonly elems: readonly { type: TypeName; length: number }[];
  /** Functions that ref.func may name. */
  readonly referable: readonly number[];
  /** A read-only table of the functions of style "ring"; undefined if there are none. */
  readonly ringTable: number | undefined;
  /** The global whose bits record the features whose instructions were executed. */
  readonly marks: number | undefined;
  /** Maximum steps of another module's functions in tables. */
  readonly foreignCost: number;
  /** The form without proposals. */
  readonly standard: boolean;
  /** Index of the first function of WIDE_OPS (wide.ts), which the standard form has. */
  readonly wideFunctions: number;
  /** Types for locals; more likely ones occur several times. */
  readonly types: readonly TypeName[];
  typeIndex(signature: Signature): number;
}

/** The marked features, by bit of the marks. */
export const MARKED = [
  "simd",
  "exception-handling",
  "typed-function-references",
  "tail-call",
  "memory64",
  "table64",
  "multi-memory",
  "gc",
  "threads",
  "extended-const-expressions",
  "legacy-exceptions",
  "wide-arithmetic",
  "acquire-release-atomics",
  "custom-page-sizes",
  "compact-import-section",
] as const;

/** Maximum steps of a function. */
export const COST_LIMIT = 30_000;
/** Maximum depth of "falling" recursion. */
export const FALL = 40;
/** Maximum rounds of "ring" functions, and the assumed cost of a call. */
export const ROUNDS = 150;
export const RING_COST = 20_000;
/** Maximum depth of "pair" recursion, the weight of its code, and the assumed cost of a call. */
export const PAIR_DEPTH = 6;
export const PAIR_WEIGHT = 1000;
export const PAIR_COST = 10_000;
