/**
 * A compiled module: the parts of a module that its instances share. In: the validated module, its machine code placed
 * in memory, and the description of the code. Out: also the prepared constant expressions and the closed types of
 * imports and exports.
 */
import type { ContextLayout } from "../../abi/context_layout.ts";
import { Bug, type SourcePlace } from "../../base/errors.ts";
import { type CodeDescription, describeCode, type InlineSite, type InlineSites } from "../../link/code_description.ts";
import type { CodeImage } from "../../link/image.ts";
import type { CodeSettings } from "../../settings/code_settings.ts";
import type { ValidModule } from "../../validate/valid_module.ts";
import type { DataSegment, Export } from "../../wasm/module.ts";
import { closeFuncType, closeGlobalType, closeTableType } from "../../wasm/subtype.ts";
import type { FuncType, GlobalType, TableType } from "../../wasm/types.ts";
import { constantOffset, type ConstInit, prepareConst } from "./const_expr.ts";
import { DebugPlaces } from "../traps/debug_places.ts";
import type { GuestThread } from "../thread/guest_thread.ts";
import { ImageReferences } from "./image_references.ts";
import type { ImageOwner } from "../traps/trap_error.ts";

/** Compiles the bodies of a module when they are called. */
interface LazyCompiler {
  /** The address of the code of a defined function, which is compiled now unless it has been. */
  compile(index: number): number;
}

interface PreparedData {
  active: boolean;
  memory: number;
  /** The offset if it is a constant; otherwise `start` is its expression. */
  at: number | undefined;
  start: ConstInit | undefined;
  bytes: Uint8Array;
}

function prepareData({ bytes, mode }: DataSegment): PreparedData {
  if (mode.kind === "passive") return { active: false, memory: 0, at: undefined, start: undefined, bytes };
  const at = constantOffset(mode.start);
  return {
    active: true,
    memory: mode.memory,
    at,
    start: at === undefined ? prepareConst(mode.start) : undefined,
    bytes,
  };
}

export class CompiledModule implements ImageOwner {
  readonly thread: GuestThread;
  readonly valid: ValidModule;
  readonly layout: ContextLayout;
  readonly image: CodeImage;
  readonly settings: CodeSettings;
  /** Signature id per function index, imports included; selects thunks. */
  readonly signatureIds: Int32Array;
  readonly globalTypes: readonly GlobalType[];
  readonly tableTypes: readonly TableType[];
  readonly globalInits: readonly ConstInit[];
  readonly tableInits: readonly (ConstInit | undefined)[];
  #datas: readonly PreparedData[] | undefined;
  /** Source locations from debugging information; all compilations of the module share them. */
  readonly debugPlaces: DebugPlaces;
  /**
   * The source location of an offset in the binary form: in the text of a module in text form, otherwise in the source
   * that a source map or DWARF names.
   */
  readonly placeOf: (offset: number) => SourcePlace | undefined;
  /**
   * The offset of the code section's contents in the binary form, if `valid` holds only the module metadata
   * (artifact/module_metadata.ts).
   */
  readonly codeOffset: number | undefined;
  readonly #inlineSites: InlineSites | (() => InlineSites);
  #inlineSitesRead: InlineSites | undefined;
  /** The references of all realms to the image. */
  readonly references: ImageReferences;
  #exportNames: Map<number, string> | undefined;
  #exportsByName: Map<string, Export> | undefined;
  /** Closed function types by type index, made on demand: few functions meet JavaScript. */
  readonly #closedTypes: FuncType[];
  /** Present if bodies are compiled when they are called. */
  lazy: LazyCompiler | undefined;
  /** True for intrinsic modules, whose frames programs do not see. */
  internal = false;
  /** Optimized code of some functions to which this code leads. */
  readonly #parts: CompiledModule[] = [];

  constructor(
    thread: GuestThread,
    valid: ValidModule,
    parts: Omit<CodeDescription, "inlineSites"> & {
      image: CodeImage;
      inlineSites: InlineSites | (() => InlineSites);
      codeOffset?: number;
      /** The references to an image that another realm placed. */
      references?: ImageReferences;
      placeOf?: (offset: number) => SourcePlace | undefined;
      /** Another compilation of the same module: everything that does not depend on code is shared with it. */
      sameAs?: CompiledModule;
    },
  ) {
    const same = parts.sameAs;
    this.thread = thread;
    this.valid = valid;
    this.layout = parts.layout;
    this.image = parts.image;
    this.settings = parts.settings;
    this.signatureIds = parts.signatureIds;
    this.#inlineSites = parts.inlineSites;
    this.codeOffset = parts.codeOffset;
    this.references = parts.references ?? new ImageReferences(true);
    const debugPlaces = this.debugPlaces = same?.debugPlaces ?? new DebugPlaces(valid, parts.codeOffset);
    this.placeOf = same?.placeOf ?? ((offset) => parts.placeOf?.(offset) ?? debugPlaces.placeOf(offset));
    const ids = valid.canonicalIds;
    this.#closedTypes = same === undefined ? [] : same.#closedTypes;
    this.globalTypes = same?.globalTypes ?? valid.globalTypes.map((type) => closeGlobalType(type, ids));
    this.tableTypes = same?.tableTypes ?? valid.tableTypes.map((type) => closeTableType(type, ids));
    this.globalInits = same?.globalInits ?? valid.globals.map((global) => prepareConst(global.init));
    this.tableInits = same?.tableInits ?? valid.tables.map((table) => table.init && prepareConst(table.init));
  }

  /**
   * Keeps optimized code of some of the functions for as long as this code exists, which leads to it. A snapshot must
   * have the tables that it assumes to be constant.
   */
  keepsPart(part: CompiledModule): void {
    this.#parts.push(part);
    const { knownTables = [] } = part.layout;
    this.layout.knownTables = [...new Set([...this.layout.knownTables ?? [], ...knownTables])];
  }

  /** The closed type of function `funcIndex`. */
  funcType(funcIndex: number): FuncType {
    const { funcTypeIndices, funcTypes, canonicalIds } = this.valid;
    return this.#closedTypes[funcTypeIndices[funcIndex]] ??= closeFuncType(funcTypes[funcIndex], canonicalIds);
  }

  /** Address of the thunk by which JavaScript enters function `funcIndex`. Throws a Bug if the function has none. */
  entryThunk(funcIndex: number): number {
    const { base, tables } = this.image;
    const offset = tables.entryThunk[this.signatureIds[funcIndex]];
    if (offset < 0) throw new Bug(`Function ${funcIndex} has no entry thunk: JavaScript should not know it`);
    return base + offset;
  }

  /** Whether JavaScript can enter function `funcIndex`; false if there is no such function. */
  hasEntryThunk(funcIndex: number): boolean {
    return this.image.tables.entryThunk[this.signatureIds[funcIndex]] >= 0;
  }

  /** The data segments, prepared by the first instantiation. */
  get datas(): readonly PreparedData[] {
    return this.#datas ??= this.valid.datas.map(prepareData);
  }

  get importedFuncCount(): number {
    return this.valid.importedFuncCount;
  }

  get moduleName(): string | undefined {
    return this.valid.names.module;
  }

  /** Whether code counts the depth of calls in THREAD.DEPTH_LEFT. */
  get countsDepth(): boolean {
    return this.settings.deterministic && this.settings.stack !== "native";
  }

  /** The inline sites by index of the defined function, read on first use. */
  get inlineSitesByFunction(): InlineSites {
    const sites = this.#inlineSites;
    return this.#inlineSitesRead ??= typeof sites === "function" ? sites() : sites;
  }

  /** The inline sites of a defined function. */
  inlineSites(definedIndex: number): readonly InlineSite[] {
    return this.inlineSitesByFunction.get(definedIndex) ?? [];
  }

  /** The export named `name`. */
  exportNamed(name: string): Export | undefined {
    this.#exportsByName ??= new Map(this.valid.exports.map((entry) => [entry.name, entry]));
    return this.#exportsByName.get(name);
  }

  /** The description of the code. */
  get description(): CodeDescription {
    return describeCode({ ...this, inlineSites: this.inlineSitesByFunction });
  }

  /** The function's name from the name section, otherwise the name of an export. */
  funcName(funcIndex: number): string | undefined {
    const name = this.valid.names.funcs.get(funcIndex);
    if (name !== undefined) return name;
    if (this.#exportNames === undefined) {
      this.#exportNames = new Map();
      for (const e of this.valid.exports) if (e.kind === "func") this.#exportNames.set(e.index, e.name);
    }
    return this.#exportNames.get(funcIndex);
  }
}
