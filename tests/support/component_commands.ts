/**
 * The component model's scripts in their two forms. In: the suite's folder (suites.ts): scripts as text, and, where
 * present, as binaries with commands in JSON, as `wasm-tools json-from-wast` writes them. Out: the commands of a script
 * in the form that component/script/ runs.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseComponentScript, type ScriptCommand } from "../../component/script/commands.ts";
import type { ScriptValue } from "../../component/script/values.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { commandBytes, commandsOf, type JsonCommand, type JsonValue } from "./component_suite.ts";
import { scriptFolder, scriptNames, suiteNamed } from "./suites.ts";

const SUITE = suiteNamed("components");

/** Names of the scripts, such as `validation/abi.wast`. */
export function textScripts(): string[] {
  return scriptNames(SUITE);
}

/** The commands of a script in text form. */
export function textCommands(script: string): ScriptCommand[] {
  return parseComponentScript(new Uint8Array(readFileSync(join(scriptFolder(SUITE), script))));
}

/** The name under which the binaries of a script are stored. */
export function binaryName(script: string): string {
  return script.slice(0, -".wast".length).replace("/", "-");
}

/** The commands of a script with binaries. */
export function binaryCommands(script: string): ScriptCommand[] {
  return commandsOf(script).map((command) => fromJson(script, command));
}

function fromJson(script: string, command: JsonCommand): ScriptCommand {
  const { type, line, name, text: message = "", instance, module } = command;
  const component = { encode: () => fileOf(script, command) };
  switch (type) {
    case "module":
    case "module_definition":
      return {
        kind: type === "module" ? "component" : "definition",
        line,
        component,
        ...(name === undefined ? {} : { id: name }),
      };
    case "module_instance":
      return {
        kind: "instance",
        line,
        ...(instance === undefined ? {} : { id: instance }),
        ...(module === undefined ? {} : { definition: module }),
      };
    case "action":
      return { kind: type, line, action: actionOf(command) };
    case "assert_return":
      return { kind: type, line, action: actionOf(command), expected: (command.expected ?? []).map(valueOf) };
    case "assert_trap":
      return { kind: type, line, action: actionOf(command), message };
    case "assert_uninstantiable":
    case "assert_invalid":
    case "assert_malformed":
      return { kind: type, line, component, message };
    default:
      throw new TypeError(`${script}:${line}: unknown command ${type}`);
  }
}

function fileOf(script: string, { filename = "", module_type }: JsonCommand): Uint8Array {
  const content = commandBytes(script, filename);
  return module_type === "text" ? componentToBinary(content) : content;
}

function actionOf({ action, line }: JsonCommand) {
  if (action === undefined) throw new TypeError(`line ${line}: the command has no action`);
  const { module, field, args } = action;
  return { ...(module === undefined ? {} : { instance: module }), field, args: args.map(valueOf) };
}

const BITS = new DataView(new ArrayBuffer(8));

/** A float from its bits. */
function float(type: string, bits: string): number {
  if (type === "f32") BITS.setUint32(0, Number(bits));
  else BITS.setBigUint64(0, BigInt(bits));
  return type === "f32" ? BITS.getFloat32(0) : BITS.getFloat64(0);
}

/** A payload; those of null are absent. */
function payloadOf(given: JsonValue | null | undefined): { value?: ScriptValue } {
  return given === null || given === undefined ? {} : { value: valueOf(given) };
}

function valueOf({ type, value }: JsonValue): ScriptValue {
  switch (type) {
    case "bool":
      return { kind: "plain", value: value === true || value === "true" };
    case "s64":
    case "u64":
      return { kind: "plain", value: BigInt(value as string) };
    case "f32":
    case "f64":
      return { kind: "plain", value: float(type, value as string) };
    case "string":
    case "char":
    case "enum":
      return { kind: "plain", value: value as string };
    case "list":
    case "tuple":
      return { kind: "list", items: (value as JsonValue[]).map(valueOf) };
    case "record":
      return {
        kind: "record",
        fields: (value as [string, JsonValue][]).map(([name, field]) => [name, valueOf(field)]),
      };
    case "flags":
      return { kind: "flags", names: value as string[] };
    case "option":
      return { kind: "option", ...payloadOf(value as JsonValue | null) };
    case "variant": {
      const { case: tag, payload } = value as { case: string; payload?: JsonValue | null };
      return { kind: "variant", tag, ...payloadOf(payload) };
    }
    case "result": {
      const cases = value as { Ok?: JsonValue | null; Err?: JsonValue | null };
      return "Ok" in cases
        ? { kind: "result", tag: "ok", ...payloadOf(cases.Ok) }
        : { kind: "result", tag: "err", ...payloadOf(cases.Err) };
    }
    default:
      return { kind: "plain", value: Number(value) };
  }
}
