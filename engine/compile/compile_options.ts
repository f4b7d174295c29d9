/**
 * The options of a compilation, and the work of compiling the bodies of a module. Types only: compile.ts and the
 * compilers of bodies share them.
 */
import type { CodegenContext, Target } from "../codegen/target.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { ImageStorage } from "../codegen/placed_code.ts";
import type { GrowingChunk } from "../host/memory/code_arena.ts";
import type { FeatureSet } from "../settings/features.ts";
import type { InlineSite } from "../link/code_description.ts";
import type { CodeSettings } from "../settings/code_settings.ts";
import type { OptimizationSet } from "../settings/optimizations.ts";
import type { ModuleEnv } from "../translate/module_env.ts";
import type { ValidModule } from "../validate/valid_module.ts";

/** A compiler of function bodies. */
type Tier = "baseline" | "optimizing";

/** The state that the bodies of a module share. */
export type ModuleWork = Pick<BodyWork, "env" | "context" | "options">;

/**
 * Compiles one body into the given code. Returns the inline sites of the body, three words each, or an empty array.
 */
export type CompileBody = (code: MachineCode, index: number) => number[];

/**
 * Compiles function `index` from the loop at offset `at` on (translate/loop_entry.ts), as the code's function `as`.
 * Returns its inline sites as `CompileBody` does; undefined if the loop cannot be entered.
 */
export type CompileLoop = (code: MachineCode, index: number, at: number, as: number) => number[] | undefined;

/** A body in a list of those that are compiled together. */
export interface BodyPlace {
  /** The defined function. */
  readonly index: number;
  /** Compile it from the loop at offset `at` on, as the code's function `as`. */
  readonly loop?: { readonly at: number; readonly as: number };
}

/** An image of valid bodies that are still to be compiled, in the order of the list. */
export interface BegunImage<Image> {
  readonly work: ModuleWork;
  /** The stubs. */
  readonly code: MachineCode;
  readonly bodies: readonly BodyPlace[];
  /** Notes what {@linkcode CompileLoop} returned when it appended body `n` of the list to `code`. */
  note(n: number, sites: number[] | undefined): void;
  /** Makes the image, after all bodies. */
  finish(): Image;
}

/** A form of the optimizing compiler of valid bodies, with the results of the TypeScript form. */
export interface CodeSource {
  /** Begins a module, whose bodies are valid; compiles by `otherwise` what is beyond the limits of this form. */
  begin(work: ModuleWork, otherwise: CompileBody): CompileBody;
  /** The same for loops that are entered. */
  beginLoop(work: ModuleWork, otherwise: CompileLoop): CompileLoop;
}

export interface CompileOptions {
  target: Target;
  features: FeatureSet;
  optimizations: OptimizationSet;
  settings: CodeSettings;
  /** Trust every access of memory 0: for intrinsic modules only (gc/collector_code.ts). */
  unchecked?: boolean;
  cpu: ReadonlySet<string>;
  /**
   * The baseline tier compiles in one quick pass, and leaves bodies that it does not cover to the optimizing compiler;
   * the default is the optimizing compiler for all.
   */
  tier?: Tier;
  /** Makes baseline code poll even if it is not interruptible, so that the runtime gets control while it runs. */
  polls?: boolean;
  /**
   * Defined functions whose code was not proven (compile_proven.ts): the optimizing compiler compiles them with all
   * their bounds checks, each in front of its access.
   */
  careful?: ReadonlySet<number>;
  /** Defined functions whose code is not proven with `tier` (compile_proven.ts): the other tier compiles them. */
  otherTier?: ReadonlySet<number>;
  /** Run the IR verifier between passes and the allocation checker: for tests and the fuzzer. */
  verify?: boolean;
  /**
   * Compiles all bodies together with other threads, into `work.code` and `work.inlineSites`, with the same result as a
   * single thread. `declined`: it did nothing; `failed`: the caller must discard the code.
   */
  share?: ((work: BodyWork) => "done" | "declined" | "failed") | undefined;
  /**
   * Gives memory of at least `bytes` bytes at the place of the image, so that baseline code need not be copied there;
   * undefined if that is not possible. The code then belongs to this process: it is not serialized.
   */
  storage?: ((bytes: number) => ImageStorage | undefined) | undefined;
  /**
   * Gives a place of at least `bytes` bytes for an image to which code is added: if the module is large, the baseline
   * tier only validates its bodies, and compiles them when they are called (baseline/lazy_bodies.ts). Undefined if that
   * is not possible. The code belongs to this process as well.
   */
  growing?: ((bytes: number) => GrowingChunk | undefined) | undefined;
  /** Size in bytes of the bodies from which on they are compiled lazily. */
  lazyFrom?: number | undefined;
  /** Bodies that are compiled lazily have been validated before, in another realm. */
  isValidated?: boolean;
  /**
   * The form of the optimizing compiler: by default the compiled one, unless `verify`, `careful` or `observe` are
   * given, which the TypeScript form alone knows.
   */
  form?: CodeSource | "typescript" | undefined;
  /** The bodies have been validated. */
  hasValidBodies?: boolean;
  /** Called with the image before any body is compiled, for tools: they ask for positions and read the stubs. */
  observe?: (code: MachineCode) => void;
  /** Called after each body that this thread compiles with the optimizing compiler, whose threads share the work. */
  progress?: ((done: number, total: number) => void) | undefined;
  /** Called with the index of each defined function that this thread compiles, its compiler, and the milliseconds. */
  note?: ((index: number, tier: Tier, ms: number) => void) | undefined;
}

/** Inputs and outputs of compiling the bodies of a module. */
export interface BodyWork {
  readonly valid: ValidModule;
  readonly env: ModuleEnv;
  readonly context: CodegenContext;
  readonly options: CompileOptions;
  readonly code: MachineCode;
  readonly inlineSites: Map<number, InlineSite[]>;
}
