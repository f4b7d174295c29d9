/**
 * Profiling of the compiled code of this thread: `engine.profile()`. In: the store of the realm, and the options with
 * which an engine compiles. Out: a profile. Invariant: the code that runs is the same with and without a profiler;
 * positions in it come from compiling the module once more when the profiler stops.
 */
import type { MachineCode } from "../codegen/machine_code.ts";
import type { Target } from "../codegen/target.ts";
import { compileModule } from "../compile/compile.ts";
import type { CompileOptions } from "../compile/compile_options.ts";
import type { CodeTables } from "../link/image.ts";
import { optimizedPositions, type PositionOf } from "../link/code_positions.ts";
import type { CompiledModule } from "../runtime/code/compiled_module.ts";
import type { Store } from "../runtime/instance/store.ts";
import { type SourceMapFile, sourceMapOf } from "../runtime/traps/source_map.ts";
import type { ImageOwner } from "../runtime/traps/trap_error.ts";
import { type FramePlaces, type Profile, ProfileBuilder } from "./profile.ts";
import { StackReader } from "./sample_stacks.ts";
import { Sampler } from "./sampler.ts";

/** The options with which a module was compiled, except for those that its code describes. */
type EngineCodeOptions = Pick<CompileOptions, "features" | "optimizations" | "cpu"> & { readonly target: Target };

/** The shortest and the longest interval in milliseconds. */
const SHORTEST = 0.1;
const LONGEST = 1000;

/** Options of sampling and of source lines. */
export interface ProfileOptions {
  /** Milliseconds between samples, 0.1 to 1000; 1 by default. */
  readonly interval?: number;
  /** Returns the source map at the address that a module names; undefined if there is none. */
  readonly sourceMap?: (url: string) => string | undefined;
}

/** Samples the compiled code of this thread from its creation until `stop`. */
export class Profiler {
  readonly #store: Store;
  readonly #options: EngineCodeOptions;
  readonly #interval: number;
  readonly #sampler: Sampler;
  readonly #sourceMap: ProfileOptions["sourceMap"];
  #profile: Profile | undefined;

  /** @internal */
  constructor(store: Store, options: EngineCodeOptions, { interval = 1, sourceMap }: ProfileOptions) {
    if (!(interval >= SHORTEST && interval <= LONGEST)) {
      throw new RangeError(`The interval of a profile must be ${SHORTEST} to ${LONGEST} milliseconds, not ${interval}`);
    }
    this.#store = store;
    this.#options = options;
    this.#interval = interval;
    this.#sourceMap = sourceMap;
    this.#sampler = new Sampler(store.thread, interval);
  }

  /** Stops sampling and returns the profile; further calls return the same one. */
  stop(): Profile {
    return this.#profile ??= this.#read();
  }

  #read(): Profile {
    const { samples, dropped } = this.#sampler.stop();
    const reader = new StackReader(new RealmCode(this.#store, this.#options));
    const builder = new ProfileBuilder(framePlaces(this.#sourceMap));
    let ticks = 0;
    for (const sample of samples) {
      ticks += 1 + sample.missed;
      const frames = reader.read(sample);
      // Samples without a wasm frame belong to the program around the calls into compiled code.
      if (frames.some(({ kind }) => kind === "wasm")) builder.add(frames, (ticks - 1) * this.#interval);
    }
    return builder.build(this.#interval, dropped);
  }
}

/** Source locations of frames: from the text of a module, its source map or its DWARF line tables. */
function framePlaces(sourceMap: ProfileOptions["sourceMap"]): FramePlaces {
  if (sourceMap === undefined) return (owner, _, offset) => owner.placeOf(offset);
  const known = new Map<object, SourceMapFile | undefined>();
  return (owner, funcIndex, offset) => {
    const { valid, importedFuncCount } = owner as CompiledModule;
    if (!known.has(valid)) known.set(valid, sourceMapOf(valid.customs, sourceMap));
    const { offset: from, bytes } = valid.funcs[funcIndex - importedFuncCount].body;
    return known.get(valid)?.placeNear(offset, from, from + bytes.length, "after") ?? owner.placeOf(offset);
  };
}

/** Positions by defined function; undefined if the module cannot be compiled to the same code again. */
type Positions = ReadonlyMap<number, Int32Array> | undefined;

/** The code of a realm, for the reader of stacks (StackSources). */
class RealmCode {
  readonly arch: "x64" | "arm64";
  readonly tailReturn: number;
  readonly #store: Store;
  readonly #options: EngineCodeOptions;
  readonly #positions = new Map<object, Positions>();
  readonly #code = new Map<object, DataView>();

  constructor(store: Store, options: EngineCodeOptions) {
    this.#store = store;
    this.#options = options;
    this.arch = store.thread.host.arch;
    this.tailReturn = store.thread.tailReturn;
  }

  readonly lookup = (address: number): CompiledModule | undefined => this.#store.moduleAt(address);

  readonly hostName = (context: number, index: number): string | undefined => {
    try {
      return this.#store.instances.of(context).hostServices[index]?.label;
    } catch {
      return undefined; // the instance is gone
    }
  };

  readonly codeOf = ({ image }: ImageOwner): DataView | undefined => {
    if (!image.isComplete) return undefined;
    const known = this.#code.get(image);
    if (known !== undefined) return known;
    const view = new DataView(this.#store.thread.host.view(image.base, image.size));
    this.#code.set(image, view);
    return view;
  };

  readonly positionsOf = (owner: ImageOwner, defined: number): PositionOf | undefined => {
    if (!this.#positions.has(owner.image)) {
      this.#positions.set(owner.image, this.#compileAgain(owner as CompiledModule));
    }
    const rows = this.#positions.get(owner.image)?.get(defined);
    return rows === undefined || rows.length === 0 ? undefined : optimizedPositions(rows);
  };

  /** Compiles a module again with the options of its code, to collect the positions. */
  #compileAgain(compiled: CompiledModule): Positions {
    const { valid, image, settings } = compiled;
    const isPart = image.tables.functionStart.includes(-1); // of a loop, or of some functions
    if (isPart || compiled.internal || valid.funcs.some(({ body }) => body.bytes.length === 0)) return undefined;
    const positions = new Map<number, Int32Array>(valid.funcs.map((_, k) => [k, new Int32Array(0)]));
    const observe = (code: MachineCode) => {
      code.positions = positions;
    };
    const again = compileModule(valid, { ...this.#options, settings, observe, hasValidBodies: true });
    return isSameCode(again.tables, image.tables) ? positions : undefined;
  }
}

/** Whether all functions have the same offsets. */
function isSameCode(a: CodeTables, b: CodeTables): boolean {
  const same = (x: Int32Array, y: Int32Array) => x.length === y.length && x.every((value, k) => value === y[k]);
  return same(a.functionStart, b.functionStart) && same(a.functionEnd, b.functionEnd);
}
