/**
 * The stages of compilation of single functions, for display: text, IR after each pass, machine code of each
 * architecture and tier. In: a module. Out: per function lines of text, each with the offset in the module of the
 * instruction that it belongs to.
 *
 * The whole module is compiled once per listing, because the code of a function depends on its callees; the other
 * stages are made when a function is explored. Invariant: the machine code is that of the engine with the same options,
 * byte for byte.
 */
import { codeSettings } from "../settings/code_settings.ts";
import { OPTIMIZING_ARM64 } from "../backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../backend_x64/optimizing_target.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { OptimizingTarget, Target } from "../codegen/target.ts";
import { type CompiledCode, compileModule, compilerState, prepareBodyCompiler } from "../compile/compile.ts";
import type { CompileOptions } from "../compile/compile_options.ts";
import type { SourcePlace } from "../base/errors.ts";
import { CPU_FEATURES, cpuFeatures, hostArchitecture } from "../host/cpu.ts";
import { currentHost } from "../host/current.ts";
import { IrFunction } from "../ir/function.ts";
import { printFunction } from "../ir/print.ts";
import type { InlineSite } from "../link/code_description.ts";
import { baselinePositions, optimizedPositions } from "../link/code_positions.ts";
import { type OptimizationSet, optimizationSet } from "../settings/optimizations.ts";
import { optimize } from "../optimize/passes.ts";
import type { SourceMapFile } from "../runtime/traps/source_map.ts";
import { sourcePlaces } from "../runtime/traps/source_places.ts";
import { displayName } from "../base/guest_stack.ts";
import { functionPrinter, type FunctionText, withShortNames } from "../text/print.ts";
import { FunctionTranslator } from "../translate/function.ts";
import type { ModuleEnv } from "../translate/module_env.ts";
import { validateModule } from "../validate/module.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import type { FeatureSet } from "../settings/features.ts";
import type { Module } from "../wasm/module.ts";
import { codeNames } from "./code_names.ts";
import { codeLines } from "./code_lines.ts";

/** A line of a stage. */
export interface ExploredLine {
  readonly text: string;
  /** Offset in the module of the instruction of the explored function that the line belongs to; 0 for none. */
  readonly pos: number;
  /** For an instruction of an inlined function: the function's name, and the offset of the instruction itself. */
  readonly inlined?: { readonly name: string; readonly pos: number };
}

/** One form of a function. */
export interface ExploredStage {
  readonly group: "text" | "ir" | "code";
  /** The pass or tier, for example `gvn` or `x64 optimizing`. */
  readonly name: string;
  readonly lines: readonly ExploredLine[];
}

/** A function of the module. */
export interface ExplorableFunction {
  /** Function index, imports included. */
  readonly index: number;
  /** From the name section, or the name of its first export, without the mangling of its language. */
  readonly name: string | undefined;
  /** The name as the name section has it. */
  readonly symbol: string | undefined;
  /** Bytes of the body. */
  readonly bytes: number;
}

/** An architecture and a tier. */
interface Listing {
  readonly name: string;
  readonly target: OptimizingTarget;
  readonly tier: "baseline" | "optimizing";
}

const LISTINGS: readonly Listing[] = [
  { name: "x64 optimizing", target: OPTIMIZING_X64, tier: "optimizing" },
  { name: "x64 baseline", target: OPTIMIZING_X64, tier: "baseline" },
  { name: "arm64 optimizing", target: OPTIMIZING_ARM64, tier: "optimizing" },
  { name: "arm64 baseline", target: OPTIMIZING_ARM64, tier: "baseline" },
];

/** Machine code of the module with the facts that a listing shows. */
interface CompiledListing extends Listing {
  readonly compiled: CompiledCode;
  readonly code: MachineCode;
  readonly nameAt: (offset: number) => string | undefined;
}

/** The architecture of this machine, as in the names of stages. */
export function machineName(): string {
  return hostArchitecture();
}

/** Options of {@linkcode exploreModule}. */
export interface ExploreOptions {
  readonly features: FeatureSet;
  /** The file that the custom section sourceMappingURL names; undefined if there is none. */
  readonly sourceMap?: (url: string) => string | undefined;
  /**
   * True to need nothing of the host, which may be a browser: the machine code is that of the optimizing tier alone,
   * and uses every optional instruction, as for other machines.
   */
  readonly withoutHost?: boolean;
}

/** Opens a module for exploration. Throws the errors of the validator and the compiler. */
export async function exploreModule(module: Module, options: ExploreOptions): Promise<ModuleExplorer> {
  for (const name of ["x64", "arm64"] as const) await prepareBodyCompiler(name);
  return new ModuleExplorer(validateModule(withShortNames(module), options.features), module.names.funcs, options);
}

/** A validated module whose functions are explored. */
export class ModuleExplorer {
  readonly functions: readonly ExplorableFunction[];
  readonly #valid: ValidModule;
  readonly #env: ModuleEnv;
  /** Names of the first exports of functions, by function index. */
  readonly #exported: ReadonlyMap<number, string>;
  readonly #optimizations: OptimizationSet = optimizationSet();
  readonly #features: FeatureSet;
  readonly #withoutHost: boolean;
  readonly #textOf: (defined: number) => FunctionText;
  readonly #places: SourceMapFile | undefined;
  readonly #translator = new FunctionTranslator();
  readonly #f = new IrFunction();
  readonly #listings = new Map<string, CompiledListing>();

  constructor(
    valid: ValidModule,
    symbols: ReadonlyMap<number, string>,
    { features, sourceMap, withoutHost = false }: ExploreOptions,
  ) {
    this.#valid = valid;
    this.#features = features;
    this.#withoutHost = withoutHost;
    const exported = valid.exports.filter(({ kind }) => kind === "func");
    this.#exported = new Map(exported.reverse().map(({ index, name }) => [index, displayName(name)]));
    this.#env = compilerState(valid, { ...this.#compileOptions(OPTIMIZING_X64), observe: () => {} }).env;
    this.#textOf = functionPrinter(valid);
    this.#places = sourcePlaces(valid, sourceMap);
    this.functions = valid.funcs.map(({ body }, k) => {
      const index = valid.importedFuncCount + k;
      return { index, name: this.#name(index), symbol: symbols.get(index), bytes: body.bytes.length };
    });
  }

  /** The source location of the instruction at an offset in the module: from the source map, or from DWARF. */
  placeOf(offset: number): SourcePlace | undefined {
    return this.#places?.placeOf(offset);
  }

  /** The text of a source file, if the source map contains it. */
  sourceText(file: string): string | undefined {
    return this.#places?.contents.get(file);
  }

  /**
   * The defined functions in the order in which the exports and the start function reach them by direct calls, then all
   * others.
   */
  callOrder(): Int32Array {
    const { exports, start, importedFuncCount: imported, funcs } = this.#valid;
    const { calleeStart, callees } = this.#env.summaries;
    const order: number[] = [];
    const seen = new Uint8Array(funcs.length);
    const visit = (k: number) => {
      if (k < 0 || seen[k] !== 0) return;
      seen[k] = 1;
      order.push(k);
    };
    if (start !== undefined) visit(start - imported);
    for (const { kind, index } of exports) if (kind === "func") visit(index - imported);
    for (let next = 0, rest = 0; order.length < funcs.length || next < order.length;) {
      if (next === order.length) visit(rest++);
      else {
        const k = order[next++];
        for (let c = calleeStart[k]; c < calleeStart[k + 1]; c++) visit(callees[c]);
      }
    }
    return Int32Array.from(order);
  }

  /** All stages of a defined function. */
  explore(defined: number): ExploredStage[] {
    const listings = LISTINGS.filter(({ tier }) => !this.#withoutHost || tier === "optimizing");
    return [this.#text(defined), ...this.#ir(defined), ...listings.map((listing) => this.#code(listing, defined))];
  }

  /** `$name`, or the index of a function. */
  label(index: number): string {
    const name = this.#name(index);
    return name === undefined ? `func ${index}` : `$${name}`;
  }

  #name(index: number): string | undefined {
    return this.#valid.names.funcs.get(index) ?? this.#exported.get(index);
  }

  #compileOptions(target: Target): CompileOptions {
    const isOwn = !this.#withoutHost && target.name === hostArchitecture();
    return {
      target,
      features: this.#features,
      optimizations: this.#optimizations,
      settings: codeSettings(),
      cpu: isOwn ? cpuFeatures(currentHost()) : new Set(CPU_FEATURES[target.name]),
      hasValidBodies: true,
    };
  }

  #text(defined: number): ExploredStage {
    const { lines, offsets } = this.#textOf(defined);
    return { group: "text", name: "text", lines: lines.map((text, k) => ({ text, pos: offsets[k] })) };
  }

  /** The IR as translated, and after each pass that changes it. */
  #ir(defined: number): ExploredStage[] {
    const f = this.#f;
    const stages: ExploredStage[] = [];
    let last = "";
    const add = (name: string) => {
      const text = printFunction(f, { positions: true });
      if (text === last) return;
      last = text;
      stages.push({ group: "ir", name, lines: this.#irLines(text, f.inlineSites) });
    };
    this.#translator.translate(this.#env, defined, f);
    add("translated");
    optimize(f, this.#optimizations, this.#env.statistics, add);
    return stages;
  }

  #irLines(text: string, sites: readonly InlineSite[]): ExploredLine[] {
    return text.trimEnd().split("\n").map((line) => {
      const place = / @0x([0-9a-f]+)(?:\/(\d+))?$/.exec(line);
      if (place === null) return { text: line, pos: 0 };
      return this.#line(line.slice(0, place.index), parseInt(place[1], 16), Number(place[2] ?? 0), sites);
    });
  }

  /** A line of the instruction at offset `pos` in inline site `site`; site 0 is the function itself. */
  #line(text: string, pos: number, site: number, sites: readonly InlineSite[]): ExploredLine {
    const inner = sites[site];
    if (site === 0 || inner === undefined) return { text, pos };
    let outer = inner;
    while (outer.parent !== 0) outer = sites[outer.parent];
    return { text, pos: outer.callPos, inlined: { name: this.label(inner.funcIndex), pos } };
  }

  #code(listing: Listing, defined: number): ExploredStage {
    const { compiled, code, target, tier, nameAt } = this.#compiled(listing);
    const { functionStart, functionEnd } = compiled.tables;
    const [start, end] = [functionStart[defined], functionEnd[defined]];
    const sites = compiled.inlineSites.get(defined) ?? [];
    const positions = code.positions?.get(defined);
    const positionOf = positions !== undefined && positions.length > 0
      ? optimizedPositions(positions)
      : baselinePositions(compiled.tables);
    const lines = codeLines(target.listCode(compiled.bytes, start, end), { start, end, nameAt, positionOf });
    const name = tier === "baseline" && positions !== undefined && positions.length > 0
      ? `${listing.name} (too large: optimized)`
      : listing.name;
    return { group: "code", name, lines: lines.map(({ text, pos, site }) => this.#line(text, pos, site, sites)) };
  }

  #compiled(listing: Listing): CompiledListing {
    const known = this.#listings.get(listing.name);
    if (known !== undefined) return known;
    const codes: MachineCode[] = [];
    const compiled = compileModule(this.#valid, {
      ...this.#compileOptions(listing.target),
      tier: listing.tier,
      observe: (code) => {
        codes.push(code);
        code.positions = new Map(this.#valid.funcs.map((_, k) => [k, new Int32Array(0)]));
      },
    });
    const code = codes[codes.length - 1];
    const nameAt = codeNames(compiled, code, (index) => this.label(index));
    const made = { ...listing, compiled, code, nameAt };
    this.#listings.set(listing.name, made);
    return made;
  }
}
