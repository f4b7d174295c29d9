/**
 * `waft run` on the programs for WASI 0.2 (wasi_programs.ts): status and output are those of programs/NAME.txt, which
 * wasmtime and jco print, too (`deno task compare:components`). WAFT_BLESS=1 writes the components and the outputs.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostCommand } from "../support/host_arguments.ts";
import {
  componentFile,
  HAS_WIT,
  programComponent,
  resultText,
  runProgram,
  waftRun,
  WASI_PROGRAMS,
} from "./wasi_programs.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

const isBlessing = process.env["WAFT_BLESS"] === "1";
if (isBlessing) {
  for (const program of WASI_PROGRAMS) {
    writeFileSync(componentFile(program), programComponent(program));
  }
}

Deno.test({
  name: "the components of programs/ are those of the texts beside them",
  ignore: !HAS_WIT,
  fn: () => {
    for (const program of WASI_PROGRAMS) {
      assert.ok(readFileSync(componentFile(program)).equals(programComponent(program)), program.name);
    }
  },
});

for (const program of WASI_PROGRAMS) {
  Deno.test(`waft run: ${program.name} of WASI 0.2`, async () => {
    const [command, first] = hostCommand(CLI);
    const text = resultText(await runProgram(program, (run) => [command, ...first, ...waftRun(run)]));
    const golden = fileURLToPath(new URL(`programs/${program.name}.txt`, import.meta.url));
    if (isBlessing) writeFileSync(golden, text);
    assert.equal(text, readFileSync(golden, "utf8"));
  });
}
