/**
 * CompiledModule: everything about a module that its instances share: validated module, machine code placed in memory, the
 * layout of its VM contexts, prepared constant expressions, closed types of imports and exports.
 */
import type { ContextLayout } from "../../abi/context_layout.ts";
import type { SourcePlace } from "../../errors.ts";
import { type CodeDescription, describeCode, type InlineSite, type InlineSites } from "../../link/code_description.ts";
import type { CodeImage } from "../../link/image.ts";
import type { ValidModule } from "../../validate/valid_module.ts";
import type { Export } from "../../wasm/module.ts";
import { closeFuncType, closeGlobalType, closeTableType } from "../../wasm/subtype.ts";
import type { FuncType, GlobalType, TableType } from "../../wasm/types.ts";
import { type ConstInit, prepareConst } from "./const_expr.ts";
import { type DebugLines, debugLines } from "../traps/debug_lines.ts";
import type { GuestThread } from "../thread/guest_thread.ts";
import { ImageReferences } from "./image_references.ts";
import { metadataOf } from "../../artifact/module_metadata.ts";
import type { ImageOwner } from "../traps/trap_error.ts";

export interface PreparedData {
  active: boolean;
  memory: number;
  start: ConstInit | undefined;
  bytes: Uint8Array;
}

export class CompiledModule implements ImageOwner {
  readonly thread: GuestThread;
  readonly valid: ValidModule;
  readonly layout: ContextLayout;
  readonly image: CodeImage;
  readonly explicitBounds: boolean;
  /** Does its code poll for deadlines? */
  readonly interruptible: boolean;
  /** Does its code charge fuel? */
  readonly fuel: boolean;
  /** Does it leave nothing to the machine? Then its calls count the depth, and memories fail to grow by limits only. */
  readonly deterministic: boolean;
  /** Signature id per function index, imports included: names thunks. */
  readonly signatureIds: Int32Array;
  readonly funcTypes: readonly FuncType[];
  readonly globalTypes: readonly GlobalType[];
  readonly tableTypes: readonly TableType[];
  readonly globalInits: readonly ConstInit[];
  readonly tableInits: readonly (ConstInit | undefined)[];
  #lines: DebugLines | undefined;
  #codeStart = 0;
  #datas: readonly PreparedData[] | undefined;
  /** Where a byte of the binary form comes from: in the text of modules from text, else in the source that DWARF names. */
  readonly placeOf: (offset: number) => SourcePlace | undefined;
  /** Where the content of the code section begins in the binary form, when `valid` holds only its metadata (artifact/module_metadata.ts). */
  readonly codeOffset: number | undefined;
  readonly #inlineSites: InlineSites | (() => InlineSites);
  #inlineSitesRead: InlineSites | undefined;
  /** Who else uses the image. */
  readonly references: ImageReferences;
  #exportNames: Map<number, string> | undefined;
  #exportsByName: Map<string, Export> | undefined;
  /** Is it one of our own, whose frames programs do not see? */
  internal = false;

  constructor(
    thread: GuestThread,
    valid: ValidModule,
    parts: Omit<CodeDescription, "inlineSites"> & {
      image: CodeImage;
      inlineSites: InlineSites | (() => InlineSites);
      codeOffset?: number;
      /** Of an image that another realm has placed. */
      references?: ImageReferences;
      placeOf?: (offset: number) => SourcePlace | undefined;
    },
  ) {
    this.thread = thread;
    this.valid = valid;
    this.layout = parts.layout;
    this.image = parts.image;
    this.explicitBounds = parts.explicitBounds;
    this.interruptible = parts.interruptible;
    this.fuel = parts.fuel;
    this.deterministic = parts.deterministic;
    this.signatureIds = parts.signatureIds;
    this.#inlineSites = parts.inlineSites;
    this.codeOffset = parts.codeOffset;
    this.references = parts.references ?? new ImageReferences(true);
    this.placeOf = (offset) => parts.placeOf?.(offset) ?? this.#debugPlace(offset);
    const ids = valid.canonicalIds;
    this.funcTypes = valid.funcTypes.map((type) => closeFuncType(type, ids));
    this.globalTypes = valid.globalTypes.map((type) => closeGlobalType(type, ids));
    this.tableTypes = valid.tableTypes.map((type) => closeTableType(type, ids));
    this.globalInits = valid.globals.map((global) => prepareConst(global.init));
    this.tableInits = valid.tables.map((table) => table.init && prepareConst(table.init));
  }

  /** The data segments, prepared by the first instantiation. */
  get datas(): readonly PreparedData[] {
    return this.#datas ??= this.valid.datas.map(({ bytes, mode }) => ({
      active: mode.kind === "active",
      memory: mode.kind === "active" ? mode.memory : 0,
      start: mode.kind === "active" ? prepareConst(mode.start) : undefined,
      bytes,
    }));
  }

  get importedFuncCount(): number {
    return this.valid.importedFuncCount;
  }

  get moduleName(): string | undefined {
    return this.valid.names.module;
  }

  /** Line tables are read by the first trap. */
  #debugPlace(offset: number): SourcePlace | undefined {
    if (this.#lines === undefined) {
      const { customs, bytes } = this.valid;
      const lines = debugLines(customs);
      this.#codeStart = lines === undefined ? 0 : this.codeOffset ?? metadataOf(bytes).codeOffset;
      this.#lines = lines ?? (() => undefined);
    }
    return this.#lines(offset - this.#codeStart);
  }

  get inlineSitesByFunction(): InlineSites {
    const sites = this.#inlineSites;
    return this.#inlineSitesRead ??= typeof sites === "function" ? sites() : sites;
  }

  inlineSites(definedIndex: number): readonly InlineSite[] {
    return this.inlineSitesByFunction.get(definedIndex) ?? [];
  }

  /** The export called `name`. */
  exportNamed(name: string): Export | undefined {
    this.#exportsByName ??= new Map(this.valid.exports.map((entry) => [entry.name, entry]));
    return this.#exportsByName.get(name);
  }

  /** The description of its code. */
  get description(): CodeDescription {
    return describeCode({ ...this, inlineSites: this.inlineSitesByFunction });
  }

  /** The name section's name, else an export's. */
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
