/**
 * Goldens of the backend: tests/golden/x64/<topic>.txt holds IR functions, each followed by the code that is expected of it as
 * comment lines. The allocator runs too, so a golden shows what is really executed. WAFT_BLESS=1 rewrites the expectations.
 *
 *     ;; settings: explicit, baseline, or a switched-off optimization as -key (optional, in front of the function)
 *     func … IR text …
 *     ; expected listing
 */
import { equal, ok } from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { BUILTIN_ROWS } from "../builtins.ts";
import { type MachineCode, STUB } from "../codegen/machine_code.ts";
import { TRAP_NAMES } from "../ir/print.ts";
import { disassemble } from "./disassemble.ts";
import { SHARED } from "./image_constants.ts";
import { BASELINE, compileIr, type CompileSettings } from "./testing/compile_ir.ts";

const FOLDER = new URL("../../tests/golden/x64/", import.meta.url);

interface Golden {
  comment: string[];
  settings: string;
  text: string;
  expected: string;
}

function parseGoldens(file: string): Golden[] {
  const goldens: Golden[] = [];
  let current: Golden = { comment: [], settings: "", text: "", expected: "" };
  for (const line of file.split("\n")) {
    if (line.startsWith(";;")) current.settings = line.slice(2).trim();
    else if (line.startsWith("#")) current.comment.push(line);
    else if (line.startsWith(";")) current.expected += line.slice(2) + "\n";
    else if (line === "" && current.text !== "") {
      goldens.push(current);
      current = { comment: [], settings: "", text: "", expected: "" };
    } else if (line !== "") current.text += line + "\n";
  }
  return goldens;
}

function settingsOf(words: string): CompileSettings {
  const settings: CompileSettings = { optimizations: {} };
  for (const word of words.split(" ").filter((w) => w !== "")) {
    if (word === "explicit") settings.explicitBounds = true;
    else if (word === "baseline") settings.cpu = BASELINE;
    else if (word.startsWith("-")) settings.optimizations![word.slice(1)] = false;
    else throw new Error(`Unknown golden setting "${word}"`);
  }
  return settings;
}

function listing(golden: Golden): string {
  const { code } = compileIr([golden.text], settingsOf(golden.settings));
  const text = disassemble(code.bytes, code.functionStart[0], code.functionEnd[0]);
  return text.replace(/offset (\d+)/g, (_, offset) => placeName(code, Number(offset)));
}

/** What lies at an offset outside the function, so that goldens do not depend on where the image's stubs are. */
function placeName(code: MachineCode, offset: number): string {
  const stub = code.stubStart.indexOf(offset);
  if (stub > STUB.TRAP) return `trap ${TRAP_NAMES[stub - STUB.TRAP]}`;
  if (stub >= STUB.BUILTIN) return `builtin ${BUILTIN_ROWS[stub - STUB.BUILTIN].name}`;
  const constant = Object.entries(SHARED).find(([, at]) => code.stubStart[STUB.CONSTANTS] + at === offset);
  return constant !== undefined ? constant[0] : offset >= code.functionEnd[0] ? "pool" : `offset ${offset}`;
}

function printGolden(golden: Golden): string {
  const settings = golden.settings === "" ? "" : `;; ${golden.settings}\n`;
  const lines = golden.expected.split("\n").filter((line) => line !== "").map((line) => `; ${line}\n`).join("");
  return golden.comment.map((line) => line + "\n").join("") + settings + golden.text + lines + "\n";
}

const files = readdirSync(FOLDER).filter((name) => name.endsWith(".txt")).sort();
ok(files.length > 0);
for (const name of files) {
  Deno.test(`code of tests/golden/x64/${name}`, () => {
    const url = new URL(name, FOLDER);
    const goldens = parseGoldens(readFileSync(url, "utf8") + "\n");
    ok(goldens.length > 0);
    if (process.env["WAFT_BLESS"] === "1") {
      for (const golden of goldens) golden.expected = listing(golden);
      writeFileSync(url, goldens.map(printGolden).join(""));
      return;
    }
    for (const golden of goldens) equal(listing(golden), golden.expected, golden.comment.join("\n"));
  });
}
