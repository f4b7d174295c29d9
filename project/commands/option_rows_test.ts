/**
 * Rows of options: commander parses every line that the quick reader accepts to the same values; other lines are left
 * to commander.
 */
import assert from "node:assert/strict";
import { Command } from "commander";
import { addOptions, readFlags } from "./option_rows.ts";
import { RUN_OPTION_ROWS } from "./run/run_flags.ts";

/** The result of commander for the words, or undefined if it refuses them. */
function byCommander(words: readonly string[]) {
  let found: { operand: string; rest: string[]; flags: unknown } | undefined;
  const program = new Command("waft").enablePositionalOptions().exitOverride().configureOutput({
    writeErr: () => {},
    writeOut: () => {},
  });
  const command = program.command("run").argument("<file>").argument("[args...]").passThroughOptions();
  addOptions(command, RUN_OPTION_ROWS).action((operand: string, rest: string[], flags: unknown) => {
    found = { operand, rest, flags };
  });
  try {
    program.parse(["run", ...words], { from: "user" });
  } catch {
    return undefined;
  }
  return found;
}

const WORDS = [
  ["f.wasm"],
  ["f.wasm", "--invoke", "x", "-h", "--", "a"],
  ["--invoke", "go", "f.wasm", "1", "-2"],
  ["--invoke=go", "f.wasm"],
  ["--invoke=", "f.wasm"],
  ["--invoke", "--bare", "f.wasm"],
  ["--dir", "a::b", "--dir=c", "--env", "A=b=c", "--env", "=", "--bare", "f.wasm", "--dir", "x"],
  ["--no-cache", "--bare", "f.wasm"],
  ["--bare", "--bare", "--invoke", "a", "--invoke", "b", "f.wasm"],
  ["--opt", "gvn=off", "--opt", "licm=on", "--feature=simd=off", "--bounds", "explicit", "--tier", "auto", "f.wasm"],
  [
    "--timeout",
    "5",
    "--processor-time",
    "5",
    "--fuel",
    "-1",
    "--max-memory",
    "x",
    "--max-heap",
    "1MiB",
    "--allow-path-plugins",
    "--locked",
    "--offline",
    "f.wasm",
  ],
  ["--perf-map", "--parallel", "2", "--project", ".", "f.wasm"],
];

Deno.test("plain command lines are read as commander reads them", () => {
  for (const words of WORDS) assert.deepEqual(readFlags(RUN_OPTION_ROWS, words), byCommander(words), words.join(" "));
});

Deno.test("everything else is left to commander", () => {
  for (
    const words of [
      [],
      ["--"],
      ["--", "f.wasm"],
      ["-"],
      ["-h"],
      ["--help"],
      ["--bare"],
      ["--invoke"],
      ["--bare", "--invoke"],
      ["--unknown", "f.wasm"],
      ["--bar", "f.wasm"],
      ["--bare=yes", "f.wasm"],
      ["--cache", "f.wasm"],
      ["-x", "f.wasm"],
    ]
  ) {
    assert.equal(readFlags(RUN_OPTION_ROWS, words), undefined, words.join(" "));
  }
});

Deno.test("every row has a form that both readers know", () => {
  for (const { flags, repeatable } of RUN_OPTION_ROWS) {
    assert.match(flags, /^--[a-z]+[0-9]?(-[a-z]+)*( <[^<>]+>)?$/);
    if (repeatable === true) assert.match(flags, /</);
  }
});
