/**
 * What bodies are generated from: the plan of a module and of its functions. In: the decisions of generate_module.ts. Out: types that
 * all parts of the generator share.
 */
import type { Random } from "../random.ts";
import type { Definition, Signature, TypeName } from "../value_types.ts";

export interface PlannedFunction {
  readonly index: number;
  readonly signature: Signature;
  /** The definition that is its type; undefined when its type is the plain one of its signature. */
  readonly definition: number | undefined;
  /** May lie in a table, so makes no indirect calls. */
  readonly tabled: boolean;
  /**
   * "plain"; "falling": recurses on its first parameter; "ring": calls itself and its like in tail position with a falling first
   * parameter; "endless": recurses until the stack is used up.
   */
  readonly style: "plain" | "falling" | "ring" | "endless";
  /** Most steps that one call takes; undefined until the body exists. */
  cost: number | undefined;
  /** Features that its body begins with, used for certain. */
  readonly forced?: readonly string[];
}

export interface PlannedMemory {
  readonly min: number;
  readonly max: number;
  readonly is64: boolean;
  readonly shared: boolean;
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
  /** V8 takes only one form of exceptions in a module. */
  readonly legacy: boolean;
  readonly dataLengths: readonly number[];
  readonly elems: readonly { type: TypeName; length: number }[];
  /** Functions that ref.func may name. */
  readonly referable: readonly number[];
  /** A table of the functions of style "ring" that nothing writes; undefined when there are none. */
  readonly ringTable: number | undefined;
  /** The global in which bits say which features' instructions were reached. */
  readonly marks: number | undefined;
  /** Most steps of a tabled function of another module. */
  readonly foreignCost: number;
  /** Types for locals, more likely ones more often. */
  readonly types: readonly TypeName[];
  typeIndex(signature: Signature): number;
}

/** The features that are marked, by bit of the marks. */
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
] as const;

/** Most steps a function may take. */
export const COST_LIMIT = 30_000;
/** Most calls deep that "falling" recursion goes. */
export const FALL = 40;
/** Most rounds of "ring" functions, and what a call of one is taken to cost. */
export const ROUNDS = 150;
export const RING_COST = 20_000;
