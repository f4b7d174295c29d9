/**
 * The state shared by the parsers of one module: the cursor, the index spaces with their identifiers, the module so
 * far, and the function types that inline type uses add (specification, 6.1.3 and 6.4.9).
 *
 * Invariant: every explicit type definition is in `module.types` before the first type use is parsed, so that a type
 * use without `(type …)` finds the smallest index that fits, or appends a type.
 */
import { emptyModule, type Names } from "../wasm/module.ts";
import { type FuncType, funcTypeName, type SubType, type ValType } from "../wasm/types.ts";
import { INTEGER } from "./number_text.ts";
import { Scope } from "./scopes.ts";
import { NO_SYMBOL } from "./symbols.ts";
import type { TextPlaces } from "./text_places.ts";
import type { TokenCursor } from "./token_cursor.ts";
import { ID, NAT } from "./tokens.ts";

/** A branch hint: body offset of the instruction, and 1 for a likely branch. */
export interface BranchHint {
  offset: number;
  likely: number;
}

export class ModuleContext {
  readonly cursor: TokenCursor;
  readonly module: ReturnType<typeof emptyModule> = emptyModule();
  readonly types: Scope = new Scope("type");
  readonly funcs: Scope = new Scope("func", "function");
  readonly tables: Scope = new Scope("table");
  readonly memories: Scope = new Scope("memory");
  readonly globals: Scope = new Scope("global");
  readonly tags: Scope = new Scope("tag");
  readonly elems: Scope = new Scope("elem", "elem segment");
  readonly datas: Scope = new Scope("data", "data segment");
  /** Fields of structure types by type index and symbol. */
  readonly fields: Map<number, Map<number, number>> = new Map();
  /** Branch hints by function index, in order. */
  readonly hints: Map<number, BranchHint[]> = new Map();
  /** Whether an instruction names a data segment, so that the binary needs a data count section. */
  usesData = false;
  /** The smallest index of a function type by its parameters and results. */
  readonly #funcTypes: Map<string, number> = new Map();

  /** Records places in the text, if requested. */
  readonly places: TextPlaces | undefined;

  constructor(cursor: TokenCursor, places?: TextPlaces) {
    this.cursor = cursor;
    this.places = places;
  }

  /** Parses an index of `scope`: a number, or an identifier bound in it. */
  index(scope: Scope): number {
    const cursor = this.cursor;
    if (cursor.kind !== ID) return cursor.u32();
    const index = scope.find(cursor.values[cursor.at]);
    if (index < 0) return cursor.fail(`unknown ${scope.noun} ${cursor.tokens.textOf(cursor.at)}`);
    cursor.at++;
    return index;
  }

  /** True at an index. */
  hasIndex(): boolean {
    const kind = this.cursor.kind;
    return kind === ID || kind === NAT;
  }

  /** Parses a field of structure type `type`: a number or an identifier. */
  fieldIndex(type: number): number {
    const cursor = this.cursor;
    if (cursor.kind !== ID) return cursor.u32();
    const index = this.fields.get(type)?.get(cursor.values[cursor.at]);
    if (index === undefined) return cursor.fail(`unknown field ${cursor.tokens.textOf(cursor.at)}`);
    cursor.at++;
    return index;
  }

  /** Parses the identifier and the name annotation of a definition, and binds them in `scope`. */
  bind(scope: Scope, names?: Map<number, string>): void {
    const cursor = this.cursor;
    const token = cursor.at;
    const symbol = cursor.takeId();
    const index = scope.count;
    if (!scope.declare(symbol)) cursor.fail(`duplicate ${scope.word} ${cursor.tokens.textOf(token)}`, token);
    const name = cursor.takeNameAnnotation() ?? this.textOf(symbol);
    if (name !== undefined) names?.set(index, name);
  }

  /** Skips a binder that {@linkcode bind} parsed earlier. */
  skipBinder(): void {
    this.cursor.takeId();
    this.cursor.takeNameAnnotation();
  }

  /** The text of an identifier, or undefined for NO_SYMBOL. */
  textOf(symbol: number): string | undefined {
    return symbol === NO_SYMBOL ? undefined : this.cursor.tokens.symbols.text(symbol);
  }

  /** Appends a recursive group. */
  addGroup(types: SubType[]): void {
    const module = this.module;
    const start = module.types.length;
    module.recGroups.push({ start, count: types.length });
    for (const type of types) module.types.push(type);
    const only = types.length === 1 ? types[0] : undefined;
    if (only !== undefined && only.final && only.supertypes.length === 0 && only.composite.kind === "func") {
      const key = funcTypeKey(only.composite);
      if (!this.#funcTypes.has(key)) this.#funcTypes.set(key, start);
    }
  }

  /** The index of a function type, which is added if it does not exist. */
  funcTypeIndex(params: ValType[], results: ValType[]): number {
    const composite: FuncType = { kind: "func", params, results };
    const key = funcTypeKey(composite);
    const found = this.#funcTypes.get(key);
    if (found !== undefined) return found;
    const index = this.module.types.length;
    this.addGroup([{ final: true, supertypes: [], composite }]);
    return index;
  }

  /** The function type at a type index, or undefined. */
  funcTypeAt(index: number): FuncType | undefined {
    const composite = this.module.types[index]?.composite;
    return composite?.kind === "func" ? composite : undefined;
  }

  /** Checks the inline part of a type use against its `(type …)`. */
  checkInlineType(index: number, inline: FuncType, token: number): void {
    const type = this.funcTypeAt(index);
    if (index >= this.module.types.length) this.cursor.fail(`unknown type ${index}`, token);
    if (type === undefined || funcTypeKey(type) !== funcTypeKey(inline)) {
      this.cursor.fail(`inline function type ${funcTypeName(inline)} is not that of type ${index}`, token);
    }
  }

  /** The value of the last integer, as a bigint. */
  static integer(): bigint {
    return (BigInt(INTEGER.hi) << 32n) | BigInt(INTEGER.lo);
  }

  get names(): Names {
    return this.module.names;
  }
}

function funcTypeKey(type: FuncType): string {
  return type.params.join(" ") + ">" + type.results.join(" ");
}
