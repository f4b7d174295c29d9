/** The stamp covers every file of the ABI: an artifact with other offsets must not load. */
import { deepEqual } from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";

Deno.test("the stamp reads every file of engine/abi", () => {
  const files = readdirSync(new URL("../abi", import.meta.url)).filter((name) => !name.endsWith("_test.ts"));
  const source = readFileSync(new URL("engine_stamp.ts", import.meta.url), "utf8");
  const read = [...source.matchAll(/from "\.\.\/abi\/(.*)"/g)].map(([, name]) => name);
  deepEqual(read.sort(), files.sort());
});
