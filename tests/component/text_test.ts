/**
 * The text form of components: text and binaries of the component model's scripts have the same definitions, and
 * printed components parse again. spec_test.ts runs the scripts themselves.
 */
import assert from "node:assert/strict";
import { decodeComponent } from "../../component/binary/decode.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { printComponent } from "../../component/text/print_component.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import type { ScriptCommand } from "../../component/script/commands.ts";
import { binaryCommands, binaryName, textCommands, textScripts } from "../support/component_commands.ts";
import {
  commandBytes,
  commandsOf,
  componentScripts,
  HAS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_BINARIES,
} from "../support/component_suite.ts";

/** The definitions of a component, without offsets and core modules, which may differ in their names. */
function definitionsOf(bytes: Uint8Array): string {
  return JSON.stringify(decodeComponent(bytes).definitions, (key, value) => {
    if (key === "offset" || key === "bytes" || key === "customs") return undefined;
    return typeof value === "bigint" ? String(value) : value;
  });
}

/** A command whose component is valid. */
function accepts(command: ScriptCommand): command is ScriptCommand & { readonly kind: "component" } {
  return ["component", "definition", "assert_uninstantiable"].includes(command.kind);
}

/** Components with a module type whose types follow imports or exports: the text form has types first. */
const OTHER_MODULE_TYPES = 5;

/** Components whose types are in another order than in the suite's binaries. */
const OTHER_ORDER = 11;

Deno.test({
  name: `text gives the definitions of the suite's binaries${NEEDS_COMPONENT_BINARIES}`,
  ignore: !HAS_COMPONENT_BINARIES,
  fn: () => {
    let same = 0;
    const other: string[] = [];
    const present = new Set(componentScripts());
    for (const script of textScripts().filter((name) => present.has(binaryName(name)))) {
      const binaries = binaryCommands(binaryName(script));
      for (const [i, command] of textCommands(script).entries()) {
        const binary = binaries[i];
        assert.equal(command.kind, binary.kind, `${script}:${command.line}`);
        if (!accepts(command) || !accepts(binary)) continue;
        if (definitionsOf(command.component.encode()) === definitionsOf(binary.component.encode())) same++;
        else other.push(`${script}:${command.line}`);
      }
    }
    assert.ok(other.length <= OTHER_ORDER, other.join("\n"));
    assert.equal(same + other.length, 286);
  },
});

Deno.test({
  name: `valid components print to text with the same definitions${NEEDS_COMPONENT_BINARIES}`,
  ignore: !HAS_COMPONENT_BINARIES,
  fn: () => {
    let printed = 0;
    const other: string[] = [];
    for (const script of componentScripts()) {
      for (const { type, filename } of commandsOf(script)) {
        if (filename === undefined || (type !== "module" && type !== "module_definition")) continue;
        const bytes = commandBytes(script, filename);
        const again = componentToBinary(printComponent(decodeComponent(bytes)));
        validateComponent(decodeComponent(again));
        if (definitionsOf(again) !== definitionsOf(bytes)) other.push(filename);
        printed++;
      }
    }
    assert.equal(printed, 284);
    assert.ok(other.length <= OTHER_MODULE_TYPES, other.join("\n"));
  },
});
