/**
 * Runs the commands of a script of components. In: commands, from text or from another form (test support), and the
 * options of an engine. Out: counts by kind of command. Invariant: every command counts once, as passed, failed or left
 * out with a reason; a command that fails does not end the script.
 */
import {
  type Engine,
  type EngineOptions,
  InvalidError,
  LinkError,
  MalformedError,
  NewEngine,
  TrapError,
  UnsupportedError,
  WaftError,
} from "@waft/engine";
import { ComponentError } from "../abi/traps.ts";
import { decodeComponent } from "../binary/decode.ts";
import { compileBinary, type Component, type ComponentInstance, type LinkOptions } from "../component.ts";
import { validateComponent } from "../validate/validate_component.ts";
import type { Action, ScriptCommand, ScriptComponent } from "./commands.ts";
import { javaScriptValue, matchesValue, type ScriptValue, valueText } from "./values.ts";

/** Counts of the commands of one kind. */
export interface CommandCounts {
  passed: number;
  failed: number;
  left: number;
}

/** A command that failed. */
export interface CommandFailure {
  readonly line: number;
  readonly message: string;
}

/** The result of a script. */
export interface ComponentScriptResult {
  readonly kinds: Map<ScriptCommand["kind"], CommandCounts>;
  readonly failures: CommandFailure[];
  /** Numbers of commands that were left out, by reason. */
  readonly left: Map<string, number>;
  /** Passed assertions whose message differs from the script's, which is that of another implementation. */
  readonly otherMessages: CommandFailure[];
}

/** Thrown if a command cannot run in this build. */
class LeftOut extends Error {}

/** Thrown if a command fails. */
class Failure extends Error {}

/** Runs `commands` in order. */
export async function runComponentScript(
  commands: Iterable<ScriptCommand>,
  options: EngineOptions = {},
  link: LinkOptions = {},
): Promise<ComponentScriptResult> {
  const run = new ScriptRun(NewEngine(options), link);
  for (const command of commands) await run.run(command);
  return run.result;
}

class ScriptRun {
  readonly result: ComponentScriptResult = { kinds: new Map(), failures: [], left: new Map(), otherMessages: [] };
  readonly #engine: Engine;
  readonly #link: LinkOptions;
  readonly #definitions = new Map<string, Component>();
  readonly #instances = new Map<string, ComponentInstance>();
  /** The exports that later components may import, by name: those of instances with an id, and of registered ones. */
  readonly #imports: Record<string, unknown> = Object.create(null);
  #latestDefinition: Component | undefined;
  #latest: ComponentInstance | undefined;
  /** The reason for which components were left out: later commands may need them. */
  #missing: string | undefined;

  constructor(engine: Engine, link: LinkOptions) {
    this.#engine = engine;
    this.#link = link;
  }

  async run(command: ScriptCommand): Promise<void> {
    const { kind, line } = command;
    const { kinds, left, failures } = this.result;
    const counts = kinds.get(kind) ?? { passed: 0, failed: 0, left: 0 };
    kinds.set(kind, counts);
    try {
      await this.#execute(command);
      counts.passed++;
    } catch (error) {
      if (error instanceof LeftOut) {
        counts.left++;
        left.set(error.message, (left.get(error.message) ?? 0) + 1);
      } else {
        counts.failed++;
        failures.push({ line, message: error instanceof Failure ? error.message : `${kind}: ${errorText(error)}` });
      }
    }
  }

  async #execute(command: ScriptCommand): Promise<void> {
    switch (command.kind) {
      case "component":
        this.#latest = undefined;
        this.#setInstance(command.id, this.#compile(command.component));
        return;
      case "definition":
        this.#latestDefinition = undefined;
        this.#latestDefinition = this.#compile(command.component);
        if (command.id !== undefined) this.#definitions.set(command.id, this.#latestDefinition);
        return;
      case "instance": {
        const { id, definition } = command;
        this.#latest = undefined;
        const component = definition === undefined ? this.#latestDefinition : this.#definitions.get(definition);
        this.#setInstance(id, component ?? this.#unknown(`component ${definition ?? ""}`));
        return;
      }
      case "register":
        this.#imports[command.name] = this.#instance(command.instance).exports;
        return;
      case "assert_unlinkable":
        return this.#assertUnlinkable(command);
      case "action":
        await this.#act(command.action);
        return;
      case "assert_return":
        return await this.#assertReturn(command.action, command.expected);
      case "assert_trap":
        return await this.#assertTrap(command.line, command.message, () => this.#act(command.action));
      case "assert_uninstantiable": {
        const component = this.#compile(command.component);
        return await this.#assertTrap(command.line, command.message, () => component.instantiate({}, this.#imports));
      }
      default:
        this.#assertRejected(command);
    }
  }

  #compile(component: ScriptComponent): Component {
    try {
      return compileBinary(this.#engine, component.encode(), this.#link);
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error;
      this.#missing = `needs ${error.feature}`;
      throw new LeftOut(this.#missing);
    }
  }

  #setInstance(id: string | undefined, component: Component): void {
    this.#latest = component.instantiate({}, this.#imports);
    if (id === undefined) return;
    this.#instances.set(id, this.#latest);
    this.#imports[id] = this.#latest.exports;
  }

  #instance(id: string | undefined): ComponentInstance {
    return (id === undefined ? this.#latest : this.#instances.get(id)) ?? this.#unknown(`instance ${id ?? ""}`);
  }

  #unknown(name: string): never {
    if (this.#missing !== undefined) throw new LeftOut(this.#missing);
    throw new Failure(`there is no ${name.trimEnd()}`);
  }

  #act({ instance: id, field, args }: Action): unknown {
    const instance = this.#instance(id);
    const call = (instance.exports as Record<string, unknown>)[field];
    if (typeof call !== "function") throw new Failure(`there is no exported function "${field}"`);
    return call(...args.map(javaScriptValue));
  }

  async #assertReturn(action: Action, expected: readonly ScriptValue[]): Promise<void> {
    const [wanted] = expected;
    const actual = wanted?.kind === "result" ? await this.#outcome(action) : await this.#act(action);
    if (matchesValue(actual, wanted)) return;
    throw new Failure(
      `${action.field}: the result is ${valueText(actual)}, expected ${valueText(javaScriptValue(wanted))}`,
    );
  }

  /** The `result` that a call returns: JavaScript gets the value of `ok`, and that of `err` as a thrown error. */
  async #outcome(action: Action): Promise<unknown> {
    try {
      const val = await this.#act(action);
      return val === undefined ? { tag: "ok" } : { tag: "ok", val };
    } catch (error) {
      if (!(error instanceof ComponentError)) throw error;
      return error.payload === undefined ? { tag: "err" } : { tag: "err", val: error.payload };
    }
  }

  async #assertTrap(line: number, message: string, run: () => unknown): Promise<void> {
    try {
      await run();
    } catch (error) {
      if (!(error instanceof TrapError)) throw error;
      this.#compareMessage(line, message, error);
      return;
    }
    throw new Failure(`expected the trap "${message}", but nothing happened`);
  }

  #assertUnlinkable(
    { line, component, message }: Extract<ScriptCommand, { readonly kind: "assert_unlinkable" }>,
  ): void {
    const compiled = this.#compile(component);
    try {
      compiled.instantiate({}, this.#imports);
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
      this.#compareMessage(line, message, error);
      return;
    }
    throw new Failure(`expected "${message}", but the component was linked`);
  }

  #assertRejected(
    { kind, line, component, message }: ScriptCommand & { readonly kind: `assert_${"invalid" | "malformed"}` },
  ): void {
    const wanted = kind === "assert_invalid" ? InvalidError : MalformedError;
    try {
      validateComponent(decodeComponent(component.encode()), { features: this.#engine.features });
    } catch (error) {
      if (!(error instanceof wanted)) throw new Failure(`expected "${message}", got ${errorText(error)}`);
      this.#compareMessage(line, message, error);
      return;
    }
    throw new Failure(`expected "${message}", but the component was accepted`);
  }

  #compareMessage(line: number, expected: string, { message }: Error): void {
    if (!message.includes(expected)) this.result.otherMessages.push({ line, message: `${expected} | ${message}` });
  }
}

function errorText(error: unknown): string {
  if (error instanceof WaftError) return `${error.name}: ${error.message}`;
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}
