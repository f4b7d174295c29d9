/** docs/inspecting.md: its output is that of the command. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

Deno.test("docs/inspecting.md shows the output for the example", () => {
  const page = readFileSync(`${ROOT}docs/inspecting.md`, "utf8");
  const [, command] = /^```sh\nwaft (.*)\n```$/m.exec(page)!;
  const [, expected] = /^```text\n([\s\S]*?)^```$/m.exec(page)!;
  const args = [...hostArguments(`${ROOT}cli.ts`), ...command.split(" ")];
  assert.equal(spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" }).stdout, expected);
});
