/**
 * Runs a specification-suite script over interpreted instances (interpreted_instance.ts). In: a script's text. Out:
 * counts and the failures, each with its line. Modules with features that this build does not compile are skipped and
 * counted, together with their commands; rejections are tested elsewhere.
 */
import { WaftError } from "../../engine/base/errors.ts";
import { I32 } from "../../engine/wasm/types.ts";
import { ALL_FEATURE_ROWS, featureSet } from "../../engine/settings/features.ts";
import { StepLimitSignal, ThrownSignal, TrapSignal } from "../../engine/ir/testing/interpret.ts";
import { expectedText } from "../../engine/script/match.ts";
import { TRAP_MESSAGES } from "../../engine/base/traps.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { type Action, type Command, parseScript, type ScriptModule } from "../../engine/text/script.ts";
import type { ConstValue, ExpectedValue } from "../../engine/text/script_values.ts";
import {
  AddressSpace,
  InterpretedInstance,
  type InterpretOptions,
  type PretendExtern,
  PretendMemory,
  PretendTable,
} from "./interpreted_instance.ts";

/** The result of a script. */
interface ScriptOutcome {
  passed: number;
  skipped: number;
  failures: string[];
}

/** A module with a feature that is not compiled, or a command that depends on it. */
class Skip extends Error {}

/** Features that the IR interpreter does not support; they are tested as machine code. */
const NOT_INTERPRETED: readonly string[] = [
  "simd",
  "exception-handling",
  "gc",
  "stack-switching",
  "custom-descriptors",
];
const FEATURES = featureSet({
  "custom-page-sizes": true,
  "stack-switching": true,
  "acquire-release-atomics": true,
  "custom-descriptors": true,
});
const NOT_RUN = ALL_FEATURE_ROWS.filter(({ compiled, name }) => !compiled || NOT_INTERPRETED.includes(name))
  .map(({ name }) => name);

/** An assertion that does not hold. */
class Failure extends Error {}

/** Maximum steps of one command. */
const STEPS = 500_000;

/** Runs `text`. */
export function runInterpreted(text: string, options: InterpretOptions = {}): ScriptOutcome {
  return new ScriptRun(options).run(parseScript(text));
}

class ScriptRun {
  readonly #options: InterpretOptions;
  readonly #space = new AddressSpace();
  readonly #named: Map<string, InterpretedInstance | undefined> = new Map();
  readonly #registered: Map<string, InterpretedInstance | undefined> = new Map();
  readonly #definitions: Map<string, ScriptModule> = new Map();
  readonly #spectest: Map<string, PretendExtern> = new Map();
  #lastDefinition: ScriptModule | undefined;
  #last: InterpretedInstance | undefined;
  readonly #outcome: ScriptOutcome = { passed: 0, skipped: 0, failures: [] };

  constructor(options: InterpretOptions) {
    this.#options = options;
    this.#space.stepLimit = STEPS;
    this.#makeSpectest();
  }

  run(commands: readonly Command[]): ScriptOutcome {
    for (const command of commands) {
      try {
        if (this.#command(command)) this.#outcome.passed++;
      } catch (error) {
        // Millions of tail calls are tested as machine code.
        if (error instanceof StepLimitSignal) continue;
        // After a skipped module, its effects on shared state are missing.
        if (error instanceof Skip || this.#outcome.skipped > 0) this.#outcome.skipped++;
        else this.#outcome.failures.push(`line ${command.line}: ${command.kind}: ${describe(error)}`);
      }
    }
    return this.#outcome;
  }

  #makeSpectest(): void {
    const space = this.#space;
    const global = (name: string, bits: bigint) => {
      const { address, view } = space.allocate(16);
      view.setBigUint64(0, bits, true);
      this.#spectest.set(name, { kind: "global", address, mutable: false });
    };
    global("global_i32", 666n);
    global("global_i64", 666n);
    global("global_f32", 0x4426a666n);
    global("global_f64", 0x4084d4cccccccccdn);
    this.#spectest.set(
      "memory",
      new PretendMemory(space, { limits: { address: I32, min: 1n, max: 2n }, shared: false }),
    );
    this.#spectest.set("table", new PretendTable(space, 10, 20));
    for (
      const name of ["print", "print_i32", "print_i64", "print_f32", "print_f64", "print_i32_f32", "print_f64_f64"]
    ) {
      this.#spectest.set(name, { kind: "func", record: space.hostRecord(() => [], 0xffffffff) });
    }
  }

  #instantiate(module: ScriptModule): InterpretedInstance {
    const valid = validateModule(module.parse(), FEATURES);
    for (const feature of NOT_RUN) if (valid.usedFeatures.has(feature)) throw new Skip(feature);
    return new InterpretedInstance(valid, this.#space, (from, name) => {
      if (from === "spectest") {
        if (!this.#spectest.has(name)) throw new Skip(name);
        return this.#spectest.get(name);
      }
      if (!this.#registered.has(from)) return undefined;
      const instance = this.#registered.get(from);
      if (instance === undefined) throw new Skip("its import was skipped");
      return instance.exports.get(name);
    }, this.#options);
  }

  #command(command: Command): boolean {
    switch (command.kind) {
      case "module":
        this.#last = undefined;
        if (command.module.id !== undefined) this.#named.set(command.module.id, undefined);
        this.#last = this.#instantiate(command.module);
        if (command.module.id !== undefined) this.#named.set(command.module.id, this.#last);
        return true;
      case "definition":
        this.#lastDefinition = command.module;
        if (command.module.id !== undefined) this.#definitions.set(command.module.id, command.module);
        return false;
      case "instance": {
        const { definition, id } = command;
        this.#last = undefined;
        if (id !== undefined) this.#named.set(id, undefined);
        const module = definition === undefined ? this.#lastDefinition : this.#definitions.get(definition);
        this.#last = this.#instantiate(module!);
        if (id !== undefined) this.#named.set(id, this.#last);
        return true;
      }
      case "register":
        this.#registered.set(command.as, command.module === undefined ? this.#last : this.#named.get(command.module));
        return false;
      case "action":
        this.#act(command.action);
        return true;
      case "assert_return":
        return this.#assertReturn(command.action, command.expected);
      case "assert_trap":
      case "assert_exhaustion":
        return this.#assertTrap(() => this.#act(command.action), command.message);
      case "assert_trap_module":
        return this.#assertTrap(() => this.#instantiate(command.module), command.message);
      case "assert_exception":
        return this.#assertException(command.action);
      default:
        return false;
    }
  }

  #assertException(action: Action): boolean {
    try {
      this.#act(action);
    } catch (error) {
      if (error instanceof ThrownSignal) return true;
      throw error;
    }
    throw new Failure("threw nothing");
  }

  #act(action: Action): readonly bigint[] {
    const instance = action.module === undefined ? this.#last : this.#named.get(action.module);
    if (instance === undefined) throw new Skip("no instance");
    const extern = instance.exports.get(action.field);
    if (action.kind === "get") {
      if (extern?.kind !== "global") throw new Failure(`no global ${action.field}`);
      const { view, offset } = this.#space.resolve(extern.address, 8)!;
      return [view.getBigUint64(offset, true)];
    }
    if (extern?.kind !== "func") throw new Failure(`no function ${action.field}`);
    return instance.invoke(extern.record, action.args.map(argumentBits));
  }

  #assertReturn(action: Action, expected: readonly ExpectedValue[]): boolean {
    const actual = this.#act(action);
    if (actual.length !== expected.length) throw new Failure(`${actual.length} results, ${expected.length} expected`);
    expected.forEach((pattern, k) => {
      if (matches(actual[k], pattern)) return;
      throw new Failure(`result ${k} is 0x${actual[k].toString(16)}, expected ${expectedText(pattern)}`);
    });
    return true;
  }

  #assertTrap(run: () => unknown, message: string): boolean {
    try {
      run();
    } catch (error) {
      if (!(error instanceof TrapSignal)) throw error;
      const actual = TRAP_MESSAGES[error.code];
      if (!message.startsWith(actual) && !actual.startsWith(message)) {
        throw new Failure(`trapped with "${actual}", not "${message}"`);
      }
      return true;
    }
    throw new Failure(`did not trap with "${message}"`);
  }
}

function argumentBits(value: ConstValue): bigint {
  switch (value.type) {
    case "i32":
    case "f32":
      return BigInt(value.bits >>> 0);
    case "i64":
    case "f64":
      return value.bits;
    case "ref.null":
      return 0n;
    case "ref.extern":
    case "ref.host":
      return BigInt(value.host) + 1n;
    default:
      throw new Skip(value.type);
  }
}

function matches(actual: bigint, expected: ExpectedValue): boolean {
  switch (expected.type) {
    case "i32":
      return actual === BigInt(expected.bits >>> 0);
    case "i64":
      return actual === expected.bits;
    case "f32":
      if (expected.nan === undefined) return actual === BigInt(expected.bits >>> 0);
      return (actual & 0x7fc00000n) === 0x7fc00000n;
    case "f64":
      if (expected.nan === undefined) return actual === expected.bits;
      return (actual & 0x7ff8000000000000n) === 0x7ff8000000000000n;
    case "ref.null":
      return actual === 0n;
    case "ref":
      return expected.host === undefined ? actual !== 0n : actual === BigInt(expected.host) + 1n;
    case "either":
      return expected.options.some((option) => matches(actual, option));
    default:
      throw new Skip(expected.type);
  }
}

function describe(error: unknown): string {
  if (error instanceof TrapSignal) return `trapped with "${TRAP_MESSAGES[error.code]}"`;
  if (error instanceof Failure) return error.message;
  if (error instanceof WaftError) return `${error.name} ${error.message} ${error.where}`;
  return error instanceof Error
    ? `${error.name} ${error.message}\n${error.stack?.split("\n").slice(1, 5).join("\n")}`
    : String(error);
}
