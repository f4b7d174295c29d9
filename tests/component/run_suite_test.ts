/**
 * The component model's suite at run time: instances, calls, results and traps of every script. In: the scripts as
 * binaries with commands (tests/support/component_suite.ts). spec_test.ts covers decoding and validation.
 */
import assert from "node:assert/strict";
import { NewEngine, TrapError } from "@waft/engine";
import { compileComponent, type Component, ComponentError, type ComponentInstance } from "../../component/mod.ts";
import {
  commandBytes,
  commandsOf,
  componentScripts,
  HAS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_BINARIES,
} from "../support/component_suite.ts";

/** Commands that fail, with the reason. */
const KNOWN: Readonly<Record<string, string>> = {
  "async-sync-streams:208": "the script expects a second task to start while the first holds the instance exclusively",
  "async-trap-on-reenter:86":
    "the Canonical ABI allows calls between parent and child, which the script's 2nd part traps",
  "async-trap-on-reenter:110": "the same in its 3rd part",
};

/** A typed value of a script. */
interface ScriptValue {
  readonly type: string;
  readonly value?: unknown;
}

interface Action {
  readonly module?: string;
  readonly field: string;
  readonly args: readonly ScriptValue[];
}

interface Command {
  readonly type: string;
  readonly line: number;
  readonly name?: string;
  readonly filename?: string;
  readonly module_type?: string;
  readonly instance?: string;
  readonly module?: string;
  readonly action?: Action;
  readonly expected?: readonly ScriptValue[];
}

const BITS = new DataView(new ArrayBuffer(8));

/** A float from its bits. */
function float(type: string, bits: string): number {
  if (type === "f32") BITS.setUint32(0, Number(bits));
  else BITS.setBigUint64(0, BigInt(bits));
  return type === "f32" ? BITS.getFloat32(0) : BITS.getFloat64(0);
}

function camel(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** The JavaScript form of a value; payloads of null are absent. */
function valueOf(given: ScriptValue | null | undefined): unknown {
  if (given === null || given === undefined) return undefined;
  const { type, value } = given;
  const list = () => (value as ScriptValue[]).map(valueOf);
  switch (type) {
    case "bool":
      return value === true || value === "true";
    case "s64":
    case "u64":
      return BigInt(value as string);
    case "f32":
    case "f64":
      return float(type, value as string);
    case "string":
    case "char":
    case "enum":
      return value;
    case "list":
    case "tuple":
      return list();
    case "record":
      return Object.fromEntries((value as [string, ScriptValue][]).map(([name, v]) => [camel(name), valueOf(v)]));
    case "flags":
      return Object.fromEntries((value as string[]).map((name) => [camel(name), true]));
    case "option":
      return valueOf(value as ScriptValue | null);
    case "variant": {
      const { case: tag, payload } = value as { case: string; payload?: ScriptValue };
      return payload === undefined || payload === null ? { tag } : { tag, val: valueOf(payload) };
    }
    case "result": {
      const { Ok, Err } = value as { Ok?: ScriptValue; Err?: ScriptValue };
      return "Ok" in (value as object) ? { tag: "ok", val: valueOf(Ok) } : { tag: "err", val: valueOf(Err) };
    }
    default:
      return Number(value);
  }
}

/** An actual value in the form of {@linkcode valueOf}. */
function plain(value: unknown, expected: ScriptValue | undefined): unknown {
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>);
  if (expected?.type === "flags") {
    return Object.fromEntries(Object.entries(value as object).filter(([, set]) => set === true));
  }
  return value;
}

const engine = NewEngine();

/** The state of a script. */
class ScriptRun {
  #current: ComponentInstance | undefined;
  #last: Component | undefined;
  readonly #components = new Map<string, Component>();
  readonly #instances = new Map<string, ComponentInstance>();
  readonly #script: string;

  constructor(script: string) {
    this.#script = script;
  }

  #compile(command: Command): Component {
    return compileComponent(engine, commandBytes(this.#script, command.filename!));
  }

  /** Runs a command; throws if it fails. */
  async run(command: Command): Promise<void> {
    switch (command.type) {
      case "module":
        this.#current = undefined;
        this.#current = this.#compile(command).instantiate();
        if (command.name !== undefined) this.#instances.set(command.name, this.#current);
        return;
      case "module_definition":
        this.#last = this.#compile(command);
        if (command.name !== undefined) this.#components.set(command.name, this.#last);
        return;
      case "module_instance": {
        this.#current = undefined;
        const component = command.module === undefined ? this.#last : this.#components.get(command.module);
        this.#current = component!.instantiate();
        if (command.instance !== undefined) this.#instances.set(command.instance, this.#current);
        return;
      }
      case "action":
        await this.#act(command.action!);
        return;
      case "assert_return":
        await this.#assertReturn(command);
        return;
      case "assert_trap":
        await assert.rejects(async () => await this.#act(command.action!), TrapError);
        return;
      case "assert_uninstantiable": {
        const component = this.#compile(command);
        assert.throws(() => component.instantiate(), TrapError);
        return;
      }
    }
  }

  async #assertReturn({ action, expected = [] }: Command): Promise<void> {
    const [wanted] = expected;
    if (wanted?.type !== "result") {
      assert.deepEqual(plain(await this.#act(action!), wanted), valueOf(wanted));
      return;
    }
    let result: unknown;
    try {
      result = { tag: "ok", val: await this.#act(action!) };
    } catch (error) {
      if (!(error instanceof ComponentError)) throw error;
      result = { tag: "err", val: error.payload };
    }
    assert.deepEqual(result, valueOf(wanted));
  }

  #act({ module, field, args }: Action): unknown {
    const instance = module === undefined ? this.#current : this.#instances.get(module);
    const call = instance!.exports[field] as (...args: unknown[]) => unknown;
    return call(...args.map(valueOf));
  }
}

const REJECTIONS = new Set(["assert_invalid", "assert_malformed"]);

for (const script of HAS_COMPONENT_BINARIES ? componentScripts() : []) {
  const commands = (commandsOf(script) as readonly Command[]).filter(({ type, module_type }) =>
    !REJECTIONS.has(type) && module_type !== "text"
  );
  if (commands.length === 0) continue;
  Deno.test(`${script} runs`, async () => {
    const run = new ScriptRun(script);
    for (const command of commands) {
      const place = `${script}:${command.line}`;
      let failure: unknown;
      try {
        await run.run(command);
      } catch (error) {
        failure = error;
      }
      if (KNOWN[place] !== undefined) assert.ok(failure !== undefined, `${place} passes now: ${KNOWN[place]}`);
      else if (failure !== undefined) throw new Error(`${place}: ${command.type}`, { cause: failure });
    }
  });
}

Deno.test({
  name: `the binaries of the component model's suite are present${NEEDS_COMPONENT_BINARIES}`,
  ignore: !HAS_COMPONENT_BINARIES,
  fn: () => assert.ok(componentScripts().length > 50),
});
