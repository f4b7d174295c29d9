/** Files that are read if that is allowed, without a question at the terminal. */
import { equal } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { isReadableFile } from "./files.ts";

const OWN = new URL(import.meta.url);

Deno.test("a file is readable by its path and its URL; a folder and a missing file are not", () => {
  equal(isReadableFile(OWN), true);
  equal(isReadableFile(fileURLToPath(OWN)), true);
  equal(isReadableFile(new URL(".", OWN)), false);
  equal(isReadableFile(new URL("missing", OWN)), false);
});

Deno.test({
  name: "without the permission to read, no file is touched: at a terminal, that would ask the user",
  permissions: { read: false },
  fn: () => {
    const { statSync } = Deno;
    let calls = 0;
    Deno.statSync = () => {
      calls++;
      throw new Error("touched");
    };
    try {
      equal(isReadableFile(OWN), false);
      equal(calls, 0);
    } finally {
      Deno.statSync = statSync;
    }
  },
});
