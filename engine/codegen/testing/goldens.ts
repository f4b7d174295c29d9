/**
 * Goldens of a backend: tests/golden/<backend>/<topic>.txt holds IR functions, each followed by its expected code as
 * comment lines. The allocator runs too, so a golden shows the code that is executed. WAFT_BLESS=1 rewrites the
 * expectations.
 *
 *     ;; settings: explicit, fuel, baseline, an optimization off as -key or on as +key (optional, before the function)
 *     func … IR text …
 *     ; expected listing
 */
import { equal, ok } from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import type { CompileSettings } from "./compile_ir.ts";

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

function settingsOf(words: string, baseline: ReadonlySet<string>): CompileSettings {
  const settings: CompileSettings = { optimizations: {} };
  for (const word of words.split(" ").filter((w) => w !== "")) {
    if (word === "explicit") settings.explicitBounds = true;
    else if (word === "fuel") settings.fuel = true;
    else if (word === "baseline") settings.cpu = baseline;
    else if (word.startsWith("-")) settings.optimizations![word.slice(1)] = false;
    else if (word.startsWith("+")) settings.optimizations![word.slice(1)] = true;
    else throw new Error(`Unknown golden setting "${word}"`);
  }
  return settings;
}

function printGolden(golden: Golden): string {
  const settings = golden.settings === "" ? "" : `;; ${golden.settings}\n`;
  const lines = golden.expected.split("\n").filter((line) => line !== "").map((line) => `; ${line}\n`).join("");
  return golden.comment.map((line) => line + "\n").join("") + settings + golden.text + lines + "\n";
}

/** A backend whose goldens are checked. */
interface GoldenBackend {
  name: string;
  /** CPU features of the setting `baseline`. */
  baseline: ReadonlySet<string>;
  /** The code of one function, in a form that does not depend on where the image's stubs are. */
  listing(text: string, settings: CompileSettings): string;
}

/** Registers a test per file of a backend's goldens. */
export function testGoldens({ name: backend, baseline, listing }: GoldenBackend): void {
  const folder = new URL(`../../../tests/golden/${backend}/`, import.meta.url);
  const code = (golden: Golden) => listing(golden.text, settingsOf(golden.settings, baseline));
  const files = readdirSync(folder).filter((name) => name.endsWith(".txt")).sort();
  ok(files.length > 0);
  for (const name of files) {
    Deno.test(`code of tests/golden/${backend}/${name}`, () => {
      const url = new URL(name, folder);
      const goldens = parseGoldens(readFileSync(url, "utf8") + "\n");
      ok(goldens.length > 0);
      if (process.env["WAFT_BLESS"] === "1") {
        for (const golden of goldens) golden.expected = code(golden);
        writeFileSync(url, goldens.map(printGolden).join(""));
        return;
      }
      for (const golden of goldens) equal(code(golden), golden.expected, golden.comment.join("\n"));
    });
  }
}
