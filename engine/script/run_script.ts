/**
 * Runs `.wast` scripts of the specification's suite. In: commands. Out: counts and failures. Each assertion counts
 * once; a module or action outside an assertion counts only if it fails. Commands that need a feature which this build
 * cannot compile are skipped, with the feature's name.
 */
import { Worker } from "node:worker_threads";
import {
  type Engine,
  type EngineOptions,
  type Instance,
  Memory,
  type Module,
  NewEngine,
  type SharedMemoryToken,
  WasmException,
} from "../api/engine.ts";
import {
  Bug,
  ExhaustionError,
  InvalidError,
  LinkError,
  MalformedError,
  TrapError,
  UnsupportedError,
  WaftError,
} from "../base/errors.ts";
import { PROPOSAL_ROWS } from "../settings/features.ts";
import { callRaw } from "../runtime/instance/raw_call.ts";
import { type Action, type Command, parseScript, type ScriptModule } from "../text/script.ts";
import type { ValType } from "../wasm/types.ts";
import type { ConstValue } from "../text/script_values.ts";
import { cellText, expectedText, isOtherNan, matches, OTHER_MESSAGES } from "./match.ts";
import type { ThreadReply, ThreadTask } from "./script_thread.ts";
import { SPECTEST, SPECTEST_EXTRAS } from "./spectest.ts";

interface ScriptFailure {
  line: number;
  message: string;
}

export interface ScriptResult {
  passed: number;
  failures: ScriptFailure[];
  /** Skipped assertions by reason: the name of a feature, or a sentence. */
  skipped: Map<string, number>;
  /** Whether a result is another NaN than the script expects, as code that is not deterministic may have. */
  needsDeterministic: boolean;
}

/** Runs one script. Throws MalformedError if the script itself cannot be parsed. */
export async function runScript(text: string | Uint8Array, options: EngineOptions = {}): Promise<ScriptResult> {
  return await runCommands({ text, path: [], commands: parseScript(text), options, foreign: new Map() });
}

/** A list of commands and its origin. */
interface CommandList {
  text: string | Uint8Array;
  /** Indices of the enclosing `thread` commands. */
  path: readonly number[];
  commands: readonly Command[];
  options: EngineOptions;
  /** Shared memories of the modules of the enclosing thread. */
  foreign: ReadonlyMap<string, Readonly<Record<string, Memory>>>;
}

/**
 * Runs commands in order; those of `thread` commands run concurrently in Workers, which are joined at the end at the
 * latest.
 */
export async function runCommands(list: CommandList): Promise<ScriptResult> {
  const run = new ScriptRun(list);
  for (const [index, command] of list.commands.entries()) {
    if (command.kind === "thread") await run.startThread(command, index);
    else if (command.kind === "wait") await run.waitFor(command);
    else run.run(command);
  }
  await run.waitForAll();
  return run.result;
}

/**
 * The options for a script of the suite, by its path: scripts of the threads proposal predate multiple memories and
 * reference values, and rely on their absence; those of proposals that are off by default need their feature.
 */
export function optionsOfScript(path: string, options: EngineOptions): EngineOptions {
  const folders = path.split(/[\\/]/);
  const proposal = PROPOSAL_ROWS.find(({ name }) => folders.includes(name));
  if (proposal !== undefined) return { ...options, features: { ...options.features, [proposal.name]: true } };
  if (!/(^|[\\/])proposals[\\/]threads[\\/]/.test(path)) return options;
  return { ...options, features: { ...options.features, "multi-memory": false, "reference-types": false } };
}

/** Thrown for a command that cannot run in this build. */
class Skip extends Error {}

/** Thrown if an assertion does not hold. */
class Failure extends Error {}

/** A thread whose result has not been collected yet. */
interface StartedThread {
  readonly id: string | undefined;
  readonly line: number;
  readonly end: Promise<ThreadReply>;
}

class ScriptRun {
  readonly result: ScriptResult = { passed: 0, failures: [], skipped: new Map(), needsDeterministic: false };
  readonly #engine: Engine;
  readonly #imports: Record<string, Readonly<Record<string, unknown>>> = Object.create(null);
  readonly #named = new Map<string, Instance>();
  readonly #definitions = new Map<string, Module>();
  #latest: Instance | undefined;
  #latestDefinition: Module | undefined;
  /** Imports that are missing because their module was skipped, as LinkErrors name them. */
  readonly #skippedImports: string[] = [];
  /** The feature for which a module was skipped: from then on, its effects on other modules are missing. */
  #tainted: string | undefined;
  /** The reason for which the latest module is missing. */
  #missing: string | undefined;
  readonly #list: CommandList;
  /** Running threads, the latest last. */
  readonly #threads: StartedThread[] = [];

  constructor(list: CommandList) {
    this.#list = list;
    this.#engine = NewEngine(list.options);
    const spectest: Record<string, unknown> = { ...this.#engine.compile(SPECTEST).instantiate().exports };
    for (const { feature, name, text } of SPECTEST_EXTRAS) {
      if (!this.#engine.features[feature]) {
        this.#skippedImports.push(`"spectest" "${name}"`);
        continue;
      }
      spectest[name] = this.#engine.compile(text).instantiate().exports[name];
    }
    this.#imports["spectest"] = spectest;
  }

  /** Starts the Worker of a `thread` command; resolves when it runs. */
  async startThread(command: Command & { kind: "thread" }, index: number): Promise<void> {
    const { text, path, options } = this.#list;
    const shared = command.shared.map((module) => ({ module, memories: this.#sharedMemories(module) }));
    const task: ThreadTask = { text, path: [...path, index], options, shared };
    const suffix = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const worker = new Worker(new URL(`./script_thread.${suffix}`, import.meta.url), { workerData: task });
    const end = new Promise<ThreadReply>((resolve) => {
      worker.once("message", resolve);
      worker.once("error", (error: Error) => resolve({ error: errorText(error) }));
    }).finally(() => worker.terminate());
    this.#threads.push({ id: command.id, line: command.line, end });
    await new Promise<void>((resolve) => {
      worker.once("online", resolve);
      worker.once("error", () => resolve());
    });
  }

  /** Waits for the thread that a `wait` command names, or the latest. */
  async waitFor(command: Command & { kind: "wait" }): Promise<void> {
    const index = command.thread === undefined
      ? this.#threads.length - 1
      : this.#threads.findLastIndex(({ id }) => id === command.thread);
    if (index < 0) {
      this.result.failures.push({
        line: command.line,
        message: command.thread === undefined ? "no thread to wait for" : `unknown thread $${command.thread}`,
      });
      return;
    }
    for (const { line, end } of this.#threads.splice(index, 1)) this.#count(line, await end);
  }

  async waitForAll(): Promise<void> {
    for (const { line, end } of this.#threads.splice(0)) this.#count(line, await end);
  }

  /** Adds the counts of a thread. */
  #count(line: number, reply: ThreadReply): void {
    if ("error" in reply) {
      this.result.failures.push({ line, message: `thread: ${reply.error}` });
      return;
    }
    this.result.passed += reply.result.passed;
    this.result.needsDeterministic ||= reply.result.needsDeterministic;
    this.result.failures.push(...reply.result.failures);
    for (const [reason, count] of reply.result.skipped) {
      this.result.skipped.set(reason, (this.result.skipped.get(reason) ?? 0) + count);
    }
  }

  /** The memories of a module that a thread can access. */
  #sharedMemories(module: string): Record<string, SharedMemoryToken> {
    const memories: Record<string, SharedMemoryToken> = {};
    for (const [name, value] of Object.entries(this.#exportsOf(module))) {
      if (value instanceof Memory && value.shared !== undefined) memories[name] = value.share();
    }
    return memories;
  }

  /**
   * Exports of the module named `id` in this thread or the enclosing one; without `id`, of the latest unnamed module.
   */
  #exportsOf(id: string | undefined): Readonly<Record<string, unknown>> {
    const foreign = id === undefined || this.#named.has(id) ? undefined : this.#list.foreign.get(id);
    return foreign ?? this.#find(id).exports;
  }

  run(command: Command): void {
    try {
      if (this.#execute(command)) this.result.passed++;
    } catch (error) {
      if (error instanceof Skip) {
        if (command.kind.startsWith("assert")) {
          this.result.skipped.set(error.message, (this.result.skipped.get(error.message) ?? 0) + 1);
        }
        return;
      }
      if (this.#tainted !== undefined && command.kind === "assert_return") {
        const reason = `after a module that needs ${this.#tainted}`;
        this.result.skipped.set(reason, (this.result.skipped.get(reason) ?? 0) + 1);
        return;
      }
      const what = error instanceof Failure ? error.message : `${command.kind}: ${errorText(error)}`;
      this.result.failures.push({ line: command.line, message: what });
    }
  }

  /** Executes a command; true for an assertion that holds. */
  #execute(command: Command): boolean {
    switch (command.kind) {
      case "module":
        this.#define(command.module, () => {
          this.#instantiateLatest(command.module.id);
        });
        return false;
      case "definition":
        this.#define(command.module, () => {});
        return false;
      case "instance":
        this.#instance(command.id, command.definition);
        return false;
      case "register":
        this.#skippedImports.push(`"${command.as}"`);
        this.#imports[command.as] = this.#exportsOf(command.module);
        this.#skippedImports.pop();
        return false;
      case "action":
        this.#act(command.action);
        return false;
      case "assert_return":
        return this.#assertReturn(command);
      case "assert_trap":
        return this.#assertThrows(() => this.#act(command.action), TrapError, command.message);
      case "assert_suspension":
        return this.#assertThrows(() => this.#act(command.action), TrapError, command.message);
      case "assert_exhaustion":
        return this.#assertThrows(() => this.#act(command.action), ExhaustionError, command.message);
      case "assert_trap_module":
        return this.#assertThrows(() => this.#make(command.module), TrapError, command.message);
      case "assert_unlinkable":
        return this.#assertThrows(() => this.#make(command.module), LinkError, command.message);
      case "assert_malformed":
      case "assert_malformed_custom":
        return this.#assertRejected(command.module, MalformedError, command.message);
      case "assert_invalid":
      case "assert_invalid_custom":
        return this.#assertRejected(command.module, InvalidError, command.message);
      case "assert_exception":
        return this.#assertException(command.action);
      case "thread":
      case "wait":
        throw new Bug("Threads are not run here");
    }
  }

  #define(module: ScriptModule, then: () => void): void {
    this.#latest = undefined;
    this.#latestDefinition = undefined;
    this.#missing = undefined;
    try {
      this.#latestDefinition = this.#compile(module);
      if (module.id !== undefined) this.#definitions.set(module.id, this.#latestDefinition);
      then();
    } catch (error) {
      this.#missing = error instanceof Skip ? error.message : "its module failed";
      if (module.id !== undefined) {
        this.#named.delete(module.id);
        this.#definitions.delete(module.id);
      }
      throw error;
    }
  }

  /** Throws Skip if an import is missing because its module was skipped. */
  #skipIfUnregistered(error: LinkError): void {
    for (const name of this.#skippedImports) {
      if (error.message.includes(`unknown import: ${name}`)) throw new Skip(`imports ${name}, which was skipped`);
    }
  }

  #instantiate(module: Module): Instance {
    try {
      return module.instantiate({}, this.#imports);
    } catch (error) {
      if (error instanceof LinkError) this.#skipIfUnregistered(error);
      throw error;
    }
  }

  #instantiateLatest(id: string | undefined): void {
    this.#latest = this.#instantiate(this.#latestDefinition!);
    if (id !== undefined) this.#named.set(id, this.#latest);
  }

  #instance(id: string | undefined, definition: string | undefined): void {
    const module = definition === undefined ? this.#latestDefinition : this.#definitions.get(definition);
    if (module === undefined) throw new Skip(this.#missing ?? `definition ${definition} is missing`);
    this.#latest = this.#instantiate(module);
    if (id !== undefined) this.#named.set(id, this.#latest);
  }

  #compile(module: ScriptModule): Module {
    try {
      return this.#engine.compileParsed(module.parse());
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error;
      this.#tainted = error.feature;
      throw new Skip(error.feature);
    }
  }

  #make(module: ScriptModule): void {
    this.#compile(module).instantiate({}, this.#imports);
  }

  #find(id: string | undefined): Instance {
    const instance = id === undefined ? this.#latest : this.#named.get(id);
    if (instance !== undefined) return instance;
    throw new Skip(this.#missing ?? `module ${id ?? ""} is missing`);
  }

  /** Result types of an action; its function or global must exist. */
  #resultTypes(action: Action): readonly ValType[] {
    const { valid } = this.#find(action.module).internal.module;
    const { index } = valid.exports.find(({ name }) => name === action.field)!;
    return action.kind === "get" ? [valid.globalTypes[index].type] : valid.funcTypes[index].results;
  }

  /** Performs an action; returns its results as cells. */
  #act(action: Action): Uint32Array {
    const instance = this.#find(action.module).internal;
    const { valid } = instance.module;
    const entry = valid.exports.find(({ name }) => name === action.field);
    if (entry === undefined) throw new Failure(`unknown export "${action.field}"`);
    if (action.kind === "get") {
      const { region, offset } = instance.globals[entry.index];
      return region.u32.slice(offset >> 2, (offset >> 2) + 4);
    }
    const cells = new Uint32Array(action.args.length * 4);
    action.args.forEach((arg, i) => this.#writeArgument(cells, i * 4, arg, instance.store.thread.handles));
    return callRaw(instance, entry.index, cells);
  }

  #writeArgument(cells: Uint32Array, at: number, arg: ConstValue, handles: { handleOf(value: unknown): number }): void {
    switch (arg.type) {
      case "i32":
      case "f32":
        cells[at] = arg.bits;
        return;
      case "i64":
      case "f64":
        cells[at] = Number(arg.bits & 0xffffffffn);
        cells[at + 1] = Number((arg.bits >> 32n) & 0xffffffffn);
        return;
      case "v128":
        new Uint8Array(cells.buffer, at * 4, 16).set(arg.bytes);
        return;
      case "ref.null":
        return;
      case "ref.extern":
      case "ref.host":
        cells[at] = handles.handleOf(arg.host);
    }
  }

  #assertReturn(command: Command & { kind: "assert_return" }): boolean {
    const cells = this.#act(command.action);
    const { handles } = this.#find(command.action.module).internal.store.thread;
    const view = { hostValue: (word: number) => handles.valueOf(word) };
    const count = cells.length / 4;
    if (command.action.kind === "invoke" && count !== command.expected.length) {
      throw new Failure(`${command.action.field} returned ${count} values instead of ${command.expected.length}`);
    }
    command.expected.forEach((expected, i) => {
      if (!matches(cells, i * 4, expected, view)) {
        const actual = cellText(cells, i * 4, this.#resultTypes(command.action)[i]);
        const needs = !this.#engine.deterministic && isOtherNan(cells, i * 4, expected);
        if (needs) this.result.needsDeterministic = true;
        throw new Failure(`${command.action.field}: result ${i} is ${actual}, expected ${expectedText(expected)}`);
      }
    });
    return true;
  }

  #assertThrows(action: () => void, kind: new (...args: never[]) => WaftError, message: string): boolean {
    try {
      action();
    } catch (error) {
      if (error instanceof Skip || error instanceof Failure) throw error;
      if (error instanceof kind && sameMessage(error.message, message)) return true;
      if (error instanceof LinkError) this.#skipIfUnregistered(error);
      throw new Failure(`expected "${message}", got ${errorText(error)}`);
    }
    throw new Failure(`expected "${message}", but nothing happened`);
  }

  #assertException(action: Action): boolean {
    try {
      this.#act(action);
    } catch (error) {
      if (error instanceof WasmException) return true;
      if (error instanceof Skip) throw error;
      throw new Failure(`expected an exception, got ${errorText(error)}`);
    }
    throw new Failure("expected an exception, but nothing happened");
  }

  #assertRejected(module: ScriptModule, kind: new (...args: never[]) => WaftError, message: string): boolean {
    try {
      this.#engine.validateParsed(module.parse());
    } catch (error) {
      const isLateInvalid = error instanceof InvalidError && message.includes("constant out of range");
      if ((error instanceof kind || isLateInvalid) && sameMessage(error.message, message)) return true;
      throw new Failure(`expected "${message}", got ${errorText(error)}`);
    }
    throw new Failure(`expected "${message}", but the module was accepted`);
  }
}

/** Whether `actual` contains `expected`, or is the beginning of it: either may say more (an index, the actual type). */
function sameMessage(actual: string, expected: string): boolean {
  return actual.includes(expected) || expected.startsWith(actual) ||
    actual.includes(OTHER_MESSAGES.get(expected) ?? expected);
}

function errorText(error: unknown): string {
  if (error instanceof WaftError) return `${error.name}: ${error.message}`;
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}
