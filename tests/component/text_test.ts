/**
 * The component model's scripts in text form: every component is parsed and accepted or rejected as its command says.
 */
import assert from "node:assert/strict";
import { decodeComponent } from "../../component/binary/decode.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { printComponent } from "../../component/text/print_component.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import { InvalidError, MalformedError } from "../../engine/errors.ts";
import { componentsOf, textScripts } from "../support/component_text_scripts.ts";
import {
  commandBytes,
  commandsOf,
  componentScripts,
  HAS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_BINARIES,
} from "../support/component_suite.ts";
import { hasSuite, suiteHint, suiteNamed } from "../support/suites.ts";

const SUITE = suiteNamed("components");
const HAS_SUITE = hasSuite(SUITE);

/** Scripts that are left out, with the reason. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  "async/cancellable.wast": "it tests an option that the specification has removed",
};

/** Commands by kind; the two instances that trap are valid components. */
const COUNTS = { component: 195, definition: 89, assert_invalid: 380, assert_malformed: 75, assert_trap: 2 };

const ERRORS: Readonly<Record<string, typeof InvalidError>> = {
  assert_invalid: InvalidError,
  assert_malformed: MalformedError,
};

Deno.test({
  name: `the scripts' components in text form are accepted and rejected${
    HAS_SUITE ? "" : ` (needs the component model's suite: ${suiteHint(SUITE)})`
  }`,
  ignore: !HAS_SUITE,
  fn: () => {
    const counts: Record<string, number> = {};
    const failures: string[] = [];
    for (const script of textScripts()) {
      if (script in LEFT_OUT) continue;
      for (const { command, line, message, encode } of componentsOf(script)) {
        counts[command] = (counts[command] ?? 0) + 1;
        let error: Error | undefined;
        try {
          validateComponent(decodeComponent(encode()));
        } catch (thrown) {
          error = thrown as Error;
        }
        const wanted = ERRORS[command];
        const passed = wanted === undefined ? error === undefined : error instanceof wanted;
        if (!passed) failures.push(`${script}:${line}: ${command} ${message}: ${error?.message ?? "accepted"}`);
      }
    }
    assert.deepEqual(failures, []);
    assert.deepEqual(counts, COUNTS);
  },
});

/** The definitions of a component, without offsets and core modules, which may differ in their names. */
function definitionsOf(bytes: Uint8Array): string {
  return JSON.stringify(decodeComponent(bytes).definitions, (key, value) => {
    if (key === "offset" || key === "bytes" || key === "customs") return undefined;
    return typeof value === "bigint" ? String(value) : value;
  });
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
    for (const script of textScripts().filter((name) => !(name in LEFT_OUT))) {
      const folder = script.slice(0, -".wast".length).replace("/", "-");
      const commands = commandsOf(folder).filter(({ filename }) => filename !== undefined);
      componentsOf(script).forEach(({ command, line, encode }, i) => {
        const { filename = "" } = commands[i];
        if (command === "assert_malformed" || command === "assert_invalid") return;
        if (definitionsOf(encode()) === definitionsOf(commandBytes(folder, filename))) same++;
        else other.push(`${script}:${line}`);
      });
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
