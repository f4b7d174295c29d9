/**
 * The text format over the specification's suite: every script parses; every quoted malformed module is rejected with
 * the suite's message; every module is unchanged by printing and parsing; and where wabt has the features, both parsers
 * produce the same binary.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { loadWabt } from "../../tests/support/test_packages.ts";
import { HAS_TESTSUITE, NEEDS_TESTSUITE, suiteScripts, TESTSUITE } from "../../tests/support/testsuite.ts";
import { decodeModule } from "../binary/decode.ts";
import { encodeModule } from "../binary/encode.ts";
import { WaftError } from "../base/errors.ts";
import { emptyNames, type Module } from "../wasm/module.ts";
import { parseModule } from "./parse_module.ts";
import { printModule } from "./print.ts";
import { type Command, parseScript, type ScriptModule } from "./script.ts";

/** Runs `fn` as a test that needs the suite. */
function suiteTest(name: string, fn: () => void | Promise<void>): void {
  Deno.test({ name: name + NEEDS_TESTSUITE, ignore: !HAS_TESTSUITE, fn });
}

interface Entry {
  /** `file:line`. */
  place: string;
  command: Command & { module: ScriptModule };
}

/** Every command of the suite with a module, including those in threads. */
function* moduleCommands(): Generator<Entry> {
  for (const path of suiteScripts()) {
    const pending = parseScript(readFileSync(path)).reverse();
    for (let command = pending.pop(); command !== undefined; command = pending.pop()) {
      if (command.kind === "thread") pending.push(...command.commands.toReversed());
      if ("module" in command && typeof command.module === "object") {
        yield { place: `${relative(TESTSUITE, path)}:${command.line}`, command: command as Entry["command"] };
      }
    }
  }
}

/**
 * The binary form without custom sections, the optional data count, and groups of no imports, which have no text form.
 */
function essence(module: Module): Uint8Array {
  const importGroups = module.importGroups.filter(({ count }) => count > 0);
  return encodeModule({ ...module, customs: [], names: emptyNames(), dataCount: undefined, importGroups });
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

suiteTest("every quoted malformed module is rejected with the suite's message", () => {
  let count = 0;
  for (const { place, command } of moduleCommands()) {
    if (command.kind !== "assert_malformed" && command.kind !== "assert_malformed_custom") continue;
    if (command.module.form !== "quote") continue;
    count++;
    assert.throws(() => command.module.parse(), (error) => {
      assert.ok(error instanceof WaftError, `${place}: ${error}`);
      assert.ok(error.message.includes(command.message), `${place}: "${command.message}" is not in "${error.message}"`);
      assert.match(error.where, /^at \d+:\d+$/, place);
      return true;
    }, place);
  }
  assert.ok(count > 1200, `only ${count}`);
});

suiteTest("every module prints as text that parses to the same module", () => {
  let count = 0;
  const different: string[] = [];
  for (const { place, command } of moduleCommands()) {
    if (command.kind.startsWith("assert_malformed")) continue;
    let module: Module;
    try {
      module = command.module.parse();
    } catch (error) {
      // Some invalid modules are rejected before validation: limits and indices that do not fit.
      assert.ok(error instanceof WaftError && command.kind.startsWith("assert_invalid"), `${place}: ${error}`);
      continue;
    }
    count++;
    const text = printModule(module);
    const again = parseModule(text);
    // A binary need not be in its shortest form, so it is compared after its first round trip through text.
    const same = equalBytes(essence(again), essence(module)) ||
      (command.module.form === "binary" && printModule(again) === text);
    const names = command.module.form === "binary" || equalBytes(again.bytes, module.bytes);
    if (!same || !names) different.push(place);
  }
  assert.deepEqual(different, []);
  assert.ok(count > 5000, `only ${count}`);
});

/**
 * Known differences of wabt's output, by script: it turns `ref.func` expressions into function indices (1), drops an
 * empty `else` (2) and a `(type …)` of blocks without parameters (3), and miswrites segments of memories other than 0
 * (4), references to types (5) and `select` without types (6).
 */
const WABT_DIFFERS =
  /^(table_(init|copy)(64)?|elem|bulk|ref_func)\.wast|^(if|try_table|legacy.try_(catch|delegate))\.wast|^(block|loop)\.wast|^(data[01]|data_drop0|linking[123]|float_(memory0|exprs1)|start0|memory_copy[01]|load[01]|store2|memory_trap1|imports[12]|address[01])\.wast|^(type-(equivalence|rec)|linking|struct|array|table|ref|func)\.wast|^select\.wast/;

/** A proposal whose types wabt takes for others. */
const WABT_MISREADS = /custom-descriptors/;

suiteTest("wabt makes the same binaries from the texts that it supports", async () => {
  const { parseWat } = await loadWabt();
  const features = {
    ...{ exceptions: true, mutable_globals: true, sat_float_to_int: true, sign_extension: true, simd: true },
    ...{ threads: true, function_references: true, multi_value: true, tail_call: true, bulk_memory: true, gc: true },
    ...{ reference_types: true, annotations: true, code_metadata: true, memory64: true, multi_memory: true },
    ...{ extended_const: true, relaxed_simd: true },
  };
  let count = 0;
  const different: string[] = [];
  for (const { place, command } of moduleCommands()) {
    if (command.module.form !== "text" || WABT_DIFFERS.test(place) || WABT_MISREADS.test(place)) continue;
    let theirs: Uint8Array;
    let ours: Module;
    try {
      ours = command.module.parse();
      const source = command.module.text.replace(/^\(module\s+definition/, "(module");
      const parsed = parseWat("module.wat", new TextEncoder().encode(source), features);
      theirs = parsed.toBinary({}).buffer;
      parsed.destroy();
    } catch {
      continue;
    }
    count++;
    if (!equalBytes(essence(decodeModule(theirs)), essence(ours))) different.push(place);
  }
  assert.deepEqual(different, []);
  assert.ok(count > 3500, `only ${count}`);
});
