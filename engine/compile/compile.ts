/**
 * The stages of a compilation: Module → ValidModule → per function { IrFunction → VCode → machine code } → bytes and
 * tables. Options and CPU features in, bytes out, the same on every host. The runtime places the code in memory.
 *
 * Functions are compiled callees first, so that a direct call knows which registers its callee writes. Threads may
 * share the bodies (parallel/) if the caller passes `share`; the bytes are the same.
 *
 * The optimizing compiler of bodies (body_compiler.ts) is loaded when the first body needs it, and so is the analysis
 * of bodies; on hosts that cannot load them then, when this module is imported.
 */
import { now } from "../host/clocks.ts";
import { compileBodies } from "../baseline/compile_bodies.ts";
import { blockOffset, LAZY_ALIGNMENT, type LazyPlan, SLOT_BYTES, slotsOffset } from "../baseline/lazy_bodies.ts";
import { bodyBytes, type KernelOptions } from "../baseline/module_tables.ts";
import { validateBodies } from "../baseline/validate_bodies.ts";
import { isKernelTarget, type KernelTarget, withKernel } from "../baseline/kernel_forms.ts";
import type { ContextLayout } from "../abi/context_layout.ts";
import type { BodyCompiler } from "./body_compiler.ts";
import { alignImage } from "../codegen/align_image.ts";
import { MachineCode, RELOC, STUB } from "../codegen/machine_code.ts";
import { type ImageStorage, PlacedCode, StorageExhausted, storageOf } from "../codegen/placed_code.ts";
import type { CodegenContext, Target } from "../codegen/target.ts";
import type {
  BegunImage,
  BodyWork,
  CodeSource,
  CompileBody,
  CompileLoop,
  CompileOptions,
  ModuleWork,
} from "./compile_options.ts";
import { UnsupportedError } from "../base/errors.ts";
import { ALL_FEATURE_ROWS } from "../settings/features.ts";
import type { GrowingChunk } from "../host/memory/code_arena.ts";
import { hostArchitecture } from "../host/cpu.ts";
import { LateModule, SUFFIX } from "../host/late_module.ts";
import type { InlineSite, UnplacedCode } from "../link/code_description.ts";
import { codeTables } from "../link/image.ts";
import { codeSettings, type StackRule } from "../settings/code_settings.ts";
import { imitates, nanCodeOf } from "../settings/nans.ts";
import { Statistics } from "../base/statistics.ts";
import { BODY_ANALYSIS } from "../translate/late_body_analysis.ts";
import { type ModuleEnv, moduleEnv } from "../translate/module_env.ts";
import { type ModuleInterface, moduleInterface } from "../translate/module_interface.ts";
import { BODY } from "../wasm/body_flags.ts";
import { compiledForm, freeLargeForm, prepareCompiledForm, usesCompiledForm } from "../portable/late_form.ts";
import type { Summaries } from "../translate/summaries.ts";
import { prepareRules } from "../validate/late_rules.ts";
import { validateAllBodies, validateDefined, validateModule } from "../validate/module.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { prepareCodeReader } from "../wasm/late_code_reader.ts";
import { prepareFuelGroups } from "../wasm/late_fuel_groups.ts";
import type { Module } from "../wasm/module.ts";

export type { BodyWork, CompileOptions };

/** The optimizing compilers of bodies, which programs of baseline code never load. */
const BODY_COMPILERS: Readonly<Record<Target["name"], LateModule<{ readonly COMPILER: BodyCompiler }>>> = {
  x64: new LateModule(
    new URL(`./body_compiler_x64.${SUFFIX}`, import.meta.url),
    () => import("./body_compiler_x64.ts"),
  ),
  arm64: new LateModule(
    new URL(`./body_compiler_arm64.${SUFFIX}`, import.meta.url),
    () => import("./body_compiler_arm64.ts"),
  ),
};

await prepareBodyCompiler(hostArchitecture());
await BODY_ANALYSIS.prepare();
await prepareCompiledForm();

/** Loads what optimized code needs of a module, for threads that optimize: importing is faster than `require`. */
export async function prepareAnalysis(): Promise<void> {
  await BODY_ANALYSIS.load();
}

await prepareRules();
await prepareCodeReader();
await prepareFuelGroups();

/** Must be called before modules are compiled for another processor than this machine's. */
export async function prepareBodyCompiler(name: Target["name"]): Promise<void> {
  await BODY_COMPILERS[name].prepare();
}

/**
 * The form of the optimizing compiler with which this thread has compiled bodies; undefined if it has compiled none. If
 * there is one, it is loaded, and partly optimized.
 */
export function optimizingForm(name: Target["name"]): "TypeScript" | "compiled" | undefined {
  if (BODY_COMPILERS[name].isUsed) return "TypeScript";
  return usesCompiledForm() ? "compiled" : undefined;
}

/** A compiled module before its code is placed in memory. */
export interface CompiledCode extends UnplacedCode {
  readonly valid: ValidModule;
  /** By defined function: 1 if it begins with a prologue that a jump to other code may replace. Baseline code only. */
  readonly replaceable?: Uint8Array;
  /** The lazy compilation of bodies, and the place of the image, if the code has only their entries. */
  readonly lazyPlan?: LazyPlan;
  readonly growing?: GrowingChunk;
  /** The memory of the code, if it is at its place (CompileOptions.storage). */
  readonly storage?: ImageStorage | undefined;
}

/**
 * Compiles a module. Throws InvalidError (also for bodies), UnsupportedError, or a RangeError for implementation
 * limits.
 */
export function compileModule(module: Module, given: CompileOptions): CompiledCode {
  const valid = validateModule(module, given.features, { bodies: false });
  rejectUncompiled(valid);
  const options = { ...given, settings: codeSettings({ ...given.settings, stack: stackRuleOf(valid, given) }) };
  const { target: { name } } = options;
  const hasBaseline = options.tier === "baseline" || (options.otherTier?.size ?? 0) > 0;
  return hasBaseline && isKernelTarget(name)
    ? compileBaselineAtPlace(valid, name, options)
    : compileOptimized(valid, options);
}

/** The rule by which `valid` limits the depth of calls. */
function stackRuleOf(valid: ValidModule, { settings: { deterministic, stack } }: CompileOptions): StackRule {
  if (!deterministic || stack === "counted") return "counted";
  return BODY_ANALYSIS.get().stackRuleOf(valid, stack);
}

/** Compiles all bodies with the optimizing compiler, for `reason` if the baseline tier does not cover them. */
function compileOptimized(valid: ValidModule, options: CompileOptions, reason?: string): CompiledCode {
  requireValidBodies(valid, options);
  const { env, context } = compilerState(valid, options);
  if (reason !== undefined) env.statistics.count(`not-baseline:${reason}`, valid.funcs.length);
  const code = new MachineCode(valid.funcs.length, env.signatures.length);
  const inlineSites = new Map<number, InlineSite[]>();
  options.observe?.(code);
  options.target.emitStubs(context, code);
  const shared = options.share?.({ valid, env, context, options, code, inlineSites }) ?? "declined";
  if (shared === "failed") {
    const { share: _, ...alone } = options;
    return compileOptimized(valid, alone, reason);
  }
  if (shared === "declined") {
    withBodyCompiler({ env, context, options }, (compile) => {
      let done = 0;
      for (const index of env.summaries.calleesFirst) {
        timed(options, index, () => noteInlineSites(inlineSites, index, compile(code, index)));
        options.progress?.(++done, valid.funcs.length);
      }
    });
  }
  return finishImage(valid, env, context, code, inlineSites, options);
}

/** Compiles with the baseline tier, to the code's place if `options.storage` gives memory that is large enough. */
function compileBaselineAtPlace(valid: ValidModule, name: KernelTarget, options: CompileOptions): CompiledCode {
  try {
    return compileBaseline(valid, name, options);
  } catch (error) {
    if (!(error instanceof StorageExhausted)) throw error;
    const { storage: _, ...elsewhere } = options;
    return compileBaseline(valid, name, elsewhere);
  }
}

/**
 * Compiles the bodies that the baseline tier covers with it, and the others with the optimizing compiler: also those
 * that `options.otherTier` leaves to that.
 */
function compileBaseline(valid: ValidModule, name: KernelTarget, options: CompileOptions): CompiledCode {
  const { features, optimizations, cpu, settings, target, otherTier, tier } = options;
  const leftOut = otherTier && ((index: number) => otherTier.has(index) === (tier === "baseline"));
  const nanCode = nanCodeOf(settings, name);
  if (imitates(nanCode)) return compileOptimized(valid, options, "imitated-nans");
  if (settings.stack === "logged") return compileOptimized(valid, options, "logged-stack");
  const shape = moduleInterface(valid);
  const image: ImageFacts = { ...shape, statistics: new Statistics() };
  const context = codegenContext(shape, options, image.statistics);
  const code = new PlacedCode(valid.funcs.length, shape.signatures.length);
  const inlineSites = new Map<number, InlineSite[]>();
  options.observe?.(code);
  target.emitStubs(context, code);
  const stackFence = optimizations["stack-fence"];
  const constants = code.stubStart[STUB.CONSTANTS];
  const kernelOptions = {
    ...settings,
    unchecked: options.unchecked ?? false,
    stackFence,
    masks: { tables: optimizations["mask-tables"], memories: optimizations["mask-memories"] },
    interruptible: settings.interruptible || options.polls === true,
    keepsNans: nanCode === "own",
    leftOut,
    counted: settings.deterministic ? BODY_ANALYSIS.get().countedFunctions(valid, settings.stack) : undefined,
    cpu,
    features,
    constants,
  };
  const { layout } = shape;
  const lazyPlan = compileLazily(valid, { name, layout, kernelOptions, code }, options);
  if (lazyPlan !== undefined) {
    const { chunk: growing } = lazyPlan;
    const finished = finishImage(valid, image, context, code, inlineSites, options);
    // Thunks take more than the place has in modules with very many signatures.
    if (finished.bytes.length > slotsOffset(growing, valid.funcs.length)) {
      return compileBaseline(valid, name, { ...options, growing: undefined });
    }
    return { ...finished, replaceable: new Uint8Array(valid.funcs.length).fill(1), lazyPlan, growing };
  }
  const { note } = options;
  const noteBody = note && ((index: number, ms: number) => note(index, "baseline", ms));
  const uncovered = withKernel(
    name,
    (kernel, second) => {
      enterStorage(valid, code, options);
      return compileBodies(kernel, valid, layout, kernelOptions, code, { note: noteBody, second });
    },
  );
  if (uncovered === undefined) return compileOptimized(valid, options);
  const replaceable = new Uint8Array(valid.funcs.length).fill(1);
  for (const { index } of uncovered) replaceable[index] = 0;
  if (uncovered.length === 0) return { ...finishImage(valid, image, context, code, inlineSites, options), replaceable };
  if (options.hasValidBodies !== true) { for (const { index } of uncovered) validateDefined(valid, index); }
  const full = compilerState(valid, options);
  withBodyCompiler({ ...full, options }, (compile) => {
    for (const { index } of uncovered) {
      timed(options, index, () => noteInlineSites(inlineSites, index, compile(code, index)));
    }
  });
  for (const { index, reason } of uncovered) {
    full.env.statistics.count(`not-baseline:${leftOut?.(index) === true ? "other-tier" : reason}`);
  }
  return { ...finishImage(valid, full.env, full.context, code, inlineSites, options), replaceable };
}

/** Bytes of bodies from which on they are compiled when they are called. */
const LAZY_FROM = 1 << 20;
/** Bytes of lazy code that a byte of a body takes at most in most modules: most bodies are never called. */
const MAX_LAZY_EXPANSION = 3;
/** The largest place of an image with lazy code: branches of arm64 reach so far. */
const MAX_LAZY_BYTES = 1 << 27;

/**
 * Validates the bodies of a large module, and appends an entry for each function, from which it is compiled. Returns
 * undefined, and appends nothing, if the bodies are to be compiled now. Throws validation errors.
 */
function compileLazily(
  valid: ValidModule,
  { name, layout, kernelOptions, code }: {
    name: KernelTarget;
    layout: ContextLayout;
    kernelOptions: KernelOptions;
    code: MachineCode;
  },
  { growing, isValidated, lazyFrom = LAZY_FROM, note, observe, target }: CompileOptions,
): LazyPlan | undefined {
  const bytes = bodyBytes(valid.funcs);
  if (growing === undefined || note !== undefined || observe !== undefined || bytes < lazyFrom) return undefined;
  const count = valid.funcs.length;
  const { lazyEntryBytes, writeLazyEntry, lazyGate } = target;
  const most = bytes * MAX_LAZY_EXPANSION + count * (lazyEntryBytes + SLOT_BYTES) + MAX_STUBS;
  const chunk = most > MAX_LAZY_BYTES ? undefined : growing(most);
  if (chunk === undefined) return undefined;
  const isValid = isValidated || withKernel(name, (kernel, second) => {
    validateBodies(kernel, valid, layout, kernelOptions, second);
    return true;
  });
  if (isValid === undefined) return undefined;
  const slots = slotsOffset(chunk, count);
  alignImage(code, LAZY_ALIGNMENT, target.filler);
  code.reserve(count * lazyEntryBytes);
  for (let k = 0; k < count; k++) {
    const at = code.length;
    writeLazyEntry(code.bytes, at, k, slots + k * SLOT_BYTES);
    code.functionStart[k] = at;
    code.functionEnd[k] = code.length = at + lazyEntryBytes;
  }
  const gate = lazyGate && { at: code.length, slow: code.length + lazyGate.slow };
  if (lazyGate !== undefined) {
    code.reserve(lazyGate.bytes);
    lazyGate.write(code.bytes, code.length, blockOffset(chunk, count), code.stubStart[STUB.COMPILE]);
    code.length += lazyGate.bytes;
  }
  return { context: layout, options: kernelOptions, target: name, stubs: code.stubStart, gate, chunk };
}

/** Bytes of bodies from which on it pays to compile a module's code at its place. */
const STORAGE_FROM = 1 << 16;
/** Bytes of code that a byte of a body takes at most in most modules; the average is 1.8 to 2.6. */
const MAX_EXPANSION = 6;
/** Bytes of stubs and thunks at most in most modules. */
const MAX_STUBS = 1 << 18;

/** Lets the code be written to its place, if the module is large enough. */
function enterStorage(valid: ValidModule, code: PlacedCode, { storage }: CompileOptions): void {
  if (storage === undefined) return;
  const bytes = bodyBytes(valid.funcs);
  const memory = bytes < STORAGE_FROM ? undefined : storage(bytes * MAX_EXPANSION + MAX_STUBS);
  if (memory !== undefined) code.enter(memory);
}

/** Validates a module with its bodies, which the baseline tier's kernel does quickly. Throws as validateModule does. */
export function validateWhole(module: Module, options: ValidationOptions): void {
  requireValidBodies(validateModule(module, options.features, { bodies: false }), options);
}

/** Validates the bodies of `valid`, unless it is known that they are valid. Throws validation errors. */
function requireValidBodies(valid: ValidModule, options: ValidationOptions): void {
  if (options.hasValidBodies !== true && !validateByKernel(valid, options)) validateAllBodies(valid);
}

/** Validates the bodies of `valid` by the kernel. Returns false if it cannot; throws validation errors. */
function validateByKernel(valid: ValidModule, options: ValidationOptions): boolean {
  const { features, target: { name }, optimizations, cpu } = options;
  const { layout } = moduleInterface(valid);
  const kernelOptions = {
    ...codeSettings({ explicitBounds: true }),
    unchecked: false,
    stackFence: optimizations["stack-fence"],
    cpu,
    features,
    constants: 0,
  };
  const isValid = isKernelTarget(name) && withKernel(name, (kernel, second) => {
    validateBodies(kernel, valid, layout, kernelOptions, second);
    return true;
  });
  return isValid === true;
}

/** The options of a compilation that validation reads. */
type ValidationOptions = Pick<CompileOptions, "features" | "target" | "optimizations" | "cpu" | "hasValidBodies">;

/** A loop of a running baseline function, where its optimized code is to be entered. */
export interface LoopPlace {
  /** The defined function's index. */
  readonly index: number;
  /** Offset of the loop's opcode in the module. */
  readonly at: number;
  /** Bytes of the baseline function's frame. */
  readonly frameBytes: number;
}

/** The optimized code of a function from a loop header on (on-stack replacement). */
export interface LoopEntryCode extends CompiledCode {
  /** Offset at which the baseline function continues. */
  readonly entry: number;
  /**
   * Places of jumps that are still to be written, pairs of an offset and the defined function whose optimized code it
   * leads to.
   */
  readonly jumps: readonly number[];
}

/** Bytes of a jump to another image: one instruction, aligned. */
const JUMP_BYTES = 8;

/**
 * Compiles a function from a loop header on, for code that is already in the loop: on-stack replacement. The image has
 * its own stubs, and jumps to the functions that it calls. Returns undefined if the loop cannot be entered; throws
 * UnsupportedError if the code would be too large.
 */
export function compileLoopEntry(module: Module, options: CompileOptions, place: LoopPlace): LoopEntryCode | undefined {
  if (!canEnterLoops(options)) return undefined;
  const begun = beginLoopEntry(openModule(module, options), place);
  const { work, code, bodies: [{ loop }] } = begun;
  begun.note(0, loopCompiler(work)(code, place.index, place.at, loop!.as));
  return begun.finish();
}

/** Whether code with these options may be entered at its loops. */
export function canEnterLoops({ target, settings }: CompileOptions): boolean {
  return target.loopEntry !== undefined && !settings.deterministic;
}

/** Begins what compileLoopEntry compiles. */
export function beginLoopEntry(work: OpenModule, place: LoopPlace): BegunImage<LoopEntryCode | undefined> {
  const { valid, env, context, options } = work;
  const { target } = options;
  const count = valid.funcs.length;
  const code = new MachineCode(count + 1, env.signatures.length);
  target.emitStubs(context, code);
  let words: number[] | undefined;
  return {
    work,
    code,
    bodies: [{ index: place.index, loop: { at: place.at, as: count } }],
    note: (_, sites) => words = sites,
    finish() {
      if (words === undefined) return undefined;
      const entry = target.loopEntry!.emit(context, code, count, place.frameBytes);
      const jumps = reserveJumps(code, count);
      target.relocate(code);
      const inlineSites = new Map<number, InlineSite[]>();
      noteInlineSites(inlineSites, place.index, words);
      // For stack walks, the code is that of the function itself.
      const functionStart = new Int32Array(count).fill(-1);
      const functionEnd = functionStart.slice();
      functionStart[place.index] = code.functionStart[count];
      functionEnd[place.index] = code.functionEnd[count];
      const image = describeImage(valid, env, code, inlineSites, options);
      return { ...image, tables: { ...image.tables, functionStart, functionEnd }, entry, jumps };
    },
  };
}

/** Makes room for a jump to each of the first `count` functions that the code refers to. */
function reserveJumps(code: MachineCode, count: number): number[] {
  const { relocKind, relocTarget, functionStart } = code;
  const jumps: number[] = [];
  alignImage(code, JUMP_BYTES, 0);
  for (let k = 0; k < relocKind.length; k++) {
    const target = relocTarget[k];
    if (relocKind[k] !== RELOC.FUNCTION || target >= count || functionStart[target] >= 0) continue;
    functionStart[target] = code.length;
    jumps.push(code.length, target);
    code.reserve(JUMP_BYTES);
    code.bytes.fill(0, code.length, code.length + JUMP_BYTES);
    code.length += JUMP_BYTES;
  }
  return jumps;
}

/** Optimized code of some functions of a module, in an image of its own. `functionStart` is −1 for the others. */
export interface BatchCode extends CompiledCode {
  /** As those of a loop's code. */
  readonly jumps: readonly number[];
}

/**
 * Compiles functions of a module while others still run baseline code. The image has its own stubs, and jumps to the
 * functions outside that it calls. `wanted` are defined functions, to which small callees are added as long as
 * all bodies together have at most `mostBytes`. Throws UnsupportedError and RangeError as
 * compileModule does.
 */
export function compileBatch(
  module: Module,
  options: CompileOptions,
  wanted: readonly number[],
  mostBytes: number,
): BatchCode {
  const { work, code, bodies, note, finish } = beginBatch(openModule(module, options), wanted, mostBytes);
  withBodyCompiler(work, (compile) => {
    for (const [n, { index }] of bodies.entries()) note(n, compile(code, index));
  });
  return finish();
}

/** Begins what compileBatch compiles. */
export function beginBatch(work: OpenModule, wanted: readonly number[], mostBytes: number): BegunImage<BatchCode> {
  const { valid, env, context, options } = work;
  const { target } = options;
  const count = valid.funcs.length;
  const code = new MachineCode(count, env.signatures.length);
  target.emitStubs(context, code);
  const chosen = batchOf(env.summaries, wanted, mostBytes);
  const bodies = [...env.summaries.calleesFirst].filter((index) => chosen.has(index)).map((index) => ({ index }));
  const inlineSites = new Map<number, InlineSite[]>();
  return {
    work,
    code,
    bodies,
    note: (n, sites) => noteInlineSites(inlineSites, bodies[n].index, sites ?? []),
    finish() {
      const functionStart = code.functionStart.slice();
      const jumps = reserveJumps(code, count);
      target.relocate(code);
      const image = describeImage(valid, env, code, inlineSites, options);
      return { ...image, tables: { ...image.tables, functionStart }, jumps };
    },
  };
}

/** Begins what compileModule compiles with the optimizing compiler, if the code is not deterministic. */
export function beginOptimized(work: OpenModule): BegunImage<CompiledCode> {
  const { valid, env, context, options } = work;
  const code = new MachineCode(valid.funcs.length, env.signatures.length);
  options.target.emitStubs(context, code);
  const bodies = Array.from(env.summaries.calleesFirst, (index) => ({ index }));
  const inlineSites = new Map<number, InlineSite[]>();
  return {
    work,
    code,
    bodies,
    note: (n, sites) => noteInlineSites(inlineSites, bodies[n].index, sites ?? []),
    finish: () => finishImage(valid, env, context, code, inlineSites, options),
  };
}

/** A module as the optimizing compiler reads it. */
export type OpenModule = ModuleWork & { readonly valid: ValidModule };

function openModule(module: Module, options: CompileOptions): OpenModule {
  const valid = validateModule(module, options.features, { bodies: false });
  requireValidBodies(valid, options);
  return { valid, ...compilerState(valid, options), options };
}

/**
 * `wanted` and the functions without loops and calls that they call, as long as all bodies have at most `mostBytes`:
 * such functions have no polls, so samples never see them.
 */
function batchOf(summaries: Summaries, wanted: readonly number[], mostBytes: number): Set<number> {
  const { bytes, flags, calleeStart, callees } = summaries;
  const chosen = new Set(wanted);
  let left = mostBytes;
  for (const index of wanted) left -= bytes[index];
  for (const index of wanted) {
    for (let at = calleeStart[index]; at < calleeStart[index + 1]; at++) {
      const callee = callees[at];
      if (chosen.has(callee) || bytes[callee] > left || (flags[callee] & (BODY.LOOP | BODY.CALL)) !== 0) continue;
      left -= bytes[callee];
      chosen.add(callee);
    }
  }
  return chosen;
}

/** Runs `compile` and reports its time to `options.note`. */
function timed({ note }: CompileOptions, index: number, compile: () => void): void {
  if (note === undefined) return compile();
  const start = now();
  compile();
  note(index, "optimizing", now() - start);
}

/** Records the inline sites of a function, three words each as `withBodyCompiler` returns them. */
export function noteInlineSites(
  inlineSites: Map<number, InlineSite[]>,
  index: number,
  words: ArrayLike<number>,
): void {
  if (words.length === 0) return;
  const sites = [];
  for (let k = 0; k < words.length; k += 3) {
    sites.push({ parent: words[k], callPos: words[k + 1], funcIndex: words[k + 2] });
  }
  inlineSites.set(index, sites);
}

/** The facts about an image that its thunks and its description need. */
type ImageFacts = Pick<
  ModuleEnv,
  "layout" | "signatures" | "funcSignature" | "statistics"
>;

/** Appends thunks and resolves relocations. */
function finishImage(
  valid: ValidModule,
  env: ImageFacts,
  context: CodegenContext,
  code: MachineCode,
  inlineSites: Map<number, InlineSite[]>,
  options: CompileOptions,
): CompiledCode {
  rejectUncompiled(valid);
  emitThunks(valid, env, context, code, options.target);
  options.target.relocate(code);
  return describeImage(valid, env, code, inlineSites, options);
}

/** The finished image with its description. */
function describeImage(
  valid: ValidModule,
  env: ImageFacts,
  code: MachineCode,
  inlineSites: Map<number, InlineSite[]>,
  options: CompileOptions,
): CompiledCode {
  return {
    valid,
    layout: env.layout,
    bytes: code.bytes.subarray(0, code.length),
    tables: codeTables(code),
    signatureIds: env.funcSignature,
    settings: options.settings,
    inlineSites,
    statistics: env.statistics.snapshot(),
    storage: storageOf(code),
  };
}

/**
 * Creates the state that the compilation of every body of a module with the optimizing compiler reads. `summaries`, if
 * given, must be those of the same module.
 */
export function compilerState(
  valid: ValidModule,
  options: CompileOptions,
  summaries?: Summaries,
): { env: ModuleEnv; context: CodegenContext } {
  const env = moduleEnv(valid, {
    ...options.settings,
    unchecked: options.unchecked ?? false,
    optimizations: options.optimizations,
    nanCode: nanCodeOf(options.settings, options.target.name),
    allPositions: options.observe !== undefined,
    ...(summaries === undefined ? {} : { summaries }),
  });
  return { env, context: codegenContext(env, options, env.statistics) };
}

/** The properties that the stubs of a module's image depend on. */
export function stubContext(valid: ValidModule, options: CompileOptions): CodegenContext {
  return codegenContext(moduleInterface(valid), options, new Statistics());
}

function codegenContext(shape: ModuleInterface, options: CompileOptions, statistics: Statistics): CodegenContext {
  return {
    layout: shape.layout,
    ...options.settings,
    continuations: options.features["stack-switching"],
    descriptors: options.features["custom-descriptors"],
    sharedMemories: shape.memoryIsShared,
    signatures: shape.signatures,
    functionSignature: shape.functionSignature,
    optimizations: options.optimizations,
    cpu: options.cpu,
    stackFence: options.optimizations["stack-fence"],
    statistics,
  };
}

/** Runs `action` with a function that compiles one body of a module with the optimizing compiler. */
export function withBodyCompiler(work: ModuleWork, action: (compile: CompileBody) => void): void {
  const use = (action: (compile: CompileBody) => void) =>
    BODY_COMPILERS[work.options.target.name].get().COMPILER.use(work, action);
  const form = otherForm(work);
  if (form === undefined) return use(action);
  action(form.begin(work, (code, index) => {
    let sites: number[] = [];
    use((compile) => sites = compile(code, index));
    return sites;
  }));
  freeLargeForm();
}

/** A function that compiles a body from a loop on. */
function loopCompiler(work: ModuleWork): CompileLoop {
  const compile: CompileLoop = (...place) =>
    BODY_COMPILERS[work.options.target.name].get().COMPILER.compileLoopEntry(work, ...place);
  return otherForm(work)?.beginLoop(work, compile) ?? compile;
}

/** The compiled form, or that which the options give; undefined for the TypeScript form. */
function otherForm({ options }: ModuleWork): CodeSource | undefined {
  if (!mayUseForm(options)) return undefined;
  return typeof options.form === "object" ? options.form : compiledForm();
}

/** Whether the TypeScript form is not asked for, nor anything that it alone can do. */
function mayUseForm({ form, verify, careful, observe }: CompileOptions): boolean {
  return form !== "typescript" && verify !== true && careful === undefined && observe === undefined;
}

/** Rejects a module that uses a feature for which this build generates no code. */
function rejectUncompiled(valid: ValidModule): void {
  for (const [name, offset] of valid.usedFeatures) {
    if (!ALL_FEATURE_ROWS.find((row) => row.name === name)!.compiled) {
      throw new UnsupportedError(name, `The module needs the feature ${name}, which this build cannot compile yet`, {
        offset,
      });
    }
  }
}

/**
 * Entry thunks for the signatures of functions that JavaScript can get hold of: the start function, and functions that
 * are exported, in a segment or otherwise referenced outside of bodies. Host thunks for the signatures of imports.
 */
function emitThunks(
  valid: ValidModule,
  env: ImageFacts,
  context: CodegenContext,
  code: MachineCode,
  target: Target,
): void {
  const { declaredFuncs, start } = valid;
  for (let index = 0; index < declaredFuncs.length; index++) {
    const signature = env.funcSignature[index];
    const isReachable = declaredFuncs[index] === 1 || index === start;
    if (isReachable && code.entryThunk[signature] < 0) target.emitEntryThunk(signature, context, code);
  }
  for (let i = 0; i < valid.importedFuncCount; i++) {
    const signature = env.funcSignature[i];
    if (code.hostThunk[signature] < 0) target.emitHostThunk(signature, context, code);
  }
}
