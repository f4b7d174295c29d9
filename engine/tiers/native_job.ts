/**
 * Jobs of native threads (native_compiler.ts) for modules with baseline code. In: the module, and the options of its
 * optimized code. Out: the code, placed, as that of a helper thread (background/placing_job.ts). The compiler is read
 * by the first job, and not at all where there is none as machine code.
 */
import { bodyBytes } from "../baseline/module_tables.ts";
import { type CodeJob, JOB_MS, type PlacedCode } from "../background/placing_job.ts";
import {
  beginLoopEntry,
  beginOptimized,
  canEnterLoops,
  type CompileOptions,
  compilerState,
  type LoopPlace,
  type OpenModule,
} from "../compile/compile.ts";
import type { BegunImage } from "../compile/compile_options.ts";
import type { CodeArena } from "../host/memory/code_arena.ts";
import { describeCode, type UnplacedCode } from "../link/code_description.ts";
import { placeImage } from "../link/image.ts";
import { hasNativeCompiler, nativeCompilerCode, prepareNativeCompiler } from "../portable/late_native.ts";
import type { GuestThread } from "../runtime/thread/guest_thread.ts";
import { describeModule, type ModuleDescription } from "../translate/describe_module.ts";
import type { Summaries } from "../translate/summaries.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import {
  isCompilerPlaced,
  makeInstance,
  type NativeBodies,
  type NativeInstance,
  startNativeBodies,
} from "./native_compiler.ts";

await prepareNativeCompiler();

/**
 * Bytes of the bodies of the largest module for native threads. This thread describes the bodies and appends their
 * code, by JavaScript that runs for the first time, and the code arrives all at once: with half a megabyte, a program
 * gets more done than with a Worker, which compiles hot functions first (RATIONALE M79). Larger modules were not
 * compared; those from a megabyte on are compiled lazily, so their bodies are not valid.
 */
const MAX_BYTES = 600_000;

/** A module as native threads get it. */
interface Described {
  readonly summaries: Summaries;
  readonly description: ModuleDescription;
}

/** The jobs of a module. */
export class NativeJobs {
  readonly #thread: GuestThread;
  readonly #valid: ValidModule;
  readonly #options: CompileOptions;
  readonly #isSmall: boolean;
  #described: Described | undefined;
  #isRefused = false;

  constructor(thread: GuestThread, valid: ValidModule, options: CompileOptions) {
    this.#thread = thread;
    this.#valid = valid;
    this.#options = { ...options, hasValidBodies: true };
    this.#isSmall = bodyBytes(valid.funcs) <= MAX_BYTES;
  }

  /** Whether native threads may compile this module: the compiler is "loaded", or "possible"; otherwise "absent". */
  get state(): "loaded" | "possible" | "absent" {
    const { verify, settings: { deterministic } } = this.#options;
    const mayRun = hasNativeCompiler() && this.#isSmall && !this.#isRefused;
    if (!mayRun || verify === true || deterministic) return "absent";
    return isCompilerPlaced() ? "loaded" : "possible";
  }

  /** Starts to compile the module, or one of its loops; undefined where that is not possible. */
  start(loop: LoopPlace | undefined, now: number, otherwise: Otherwise): CodeJob | undefined {
    if (this.state === "absent") return undefined;
    try {
      return this.#start(loop, now, otherwise);
    } catch {
      // A confined process cannot load the compiler; there may be no memory; a function may be too large.
      this.#isRefused = true;
      return undefined;
    }
  }

  #start(loop: LoopPlace | undefined, now: number, otherwise: Otherwise): CodeJob | undefined {
    if (loop !== undefined && !canEnterLoops(this.#options)) return undefined;
    const instance = makeInstance(this.#thread, nativeCompilerCode()!, bodyBytes(this.#valid.funcs));
    try {
      const work = this.#open(instance);
      const begun: BegunImage<UnplacedCode | undefined> = loop === undefined
        ? beginOptimized(work)
        : beginLoopEntry(work, loop);
      const bodies = startNativeBodies(instance, begun, this.#described!.description);
      return new NativeJob(bodies, this.#thread.arena, now, otherwise);
    } catch (error) {
      instance.release();
      throw error;
    }
  }

  /** The state of a compilation of the module. */
  #open(instance: NativeInstance): OpenModule {
    const valid = this.#valid;
    const options = this.#options;
    const state = compilerState(valid, options, this.#described?.summaries ?? instance.summarize(valid));
    const { env } = state;
    this.#described ??= { summaries: env.summaries, description: describeModule(env) };
    return { valid, options, ...state };
  }
}

/** Starts a job of another kind in place of one that has failed; undefined if that is not possible. */
type Otherwise = () => CodeJob | undefined;

/** The code of a native thread on its way. */
class NativeJob implements CodeJob {
  readonly since: number;
  readonly #arena: CodeArena;
  readonly #otherwise: Otherwise;
  #bodies: NativeBodies<UnplacedCode | undefined> | undefined;
  #other: CodeJob | undefined;

  constructor(bodies: NativeBodies<UnplacedCode | undefined>, arena: CodeArena, since: number, otherwise: Otherwise) {
    this.#bodies = bodies;
    this.#arena = arena;
    this.since = since;
    this.#otherwise = otherwise;
  }

  advance(now: number): PlacedCode | "waiting" | "failed" {
    if (this.#other !== undefined) return this.#other.advance(now);
    if (now > this.since + JOB_MS) this.abandon();
    const result = this.#bodies?.advance() ?? "failed";
    if (result === "waiting") return result;
    this.#bodies = undefined;
    if (result === "failed") {
      this.#other = this.#otherwise();
      return this.#other === undefined ? "failed" : "waiting";
    }
    return result.image === undefined ? "failed" : this.#place(result.image);
  }

  #place(image: UnplacedCode & { readonly entry?: number; readonly jumps?: readonly number[] }): PlacedCode | "failed" {
    const { bytes, tables, statistics, entry, jumps = [] } = image;
    try {
      const { base } = placeImage(this.#arena, bytes, tables);
      return { description: describeCode(image), tables, codeBytes: bytes.length, statistics, entry, jumps, base };
    } catch {
      return "failed"; // there is no room for it
    }
  }

  abandon(): void {
    this.#bodies?.abandon();
    this.#bodies = undefined;
    this.#other?.abandon();
  }
}
