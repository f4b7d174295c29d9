/** Data that is loaded late: from a file, else from a module; once. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { filePath } from "../../engine/host/files.ts";
import { LateData } from "../../engine/host/late_data.ts";

Deno.test("late data comes from the file, and from the module where the file is missing or damaged", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-late-"));
  try {
    const file = (name: string) => pathToFileURL(join(folder, name));
    writeFileSync(file("whole.json"), '{ "from": "file" }');
    writeFileSync(file("cut.json"), '{ "from": "fi');
    let loaded = 0;
    const module = () => ({ from: "module", loaded: ++loaded });
    const whole = new LateData(file("whole.json"), module);
    assert.deepEqual(whole.get(), { from: "file" });
    assert.equal(loaded, 0, "nothing else is loaded");
    for (const name of ["missing.json", "cut.json"]) {
      const data = new LateData(file(name), module);
      assert.equal(data.get(), data.get(), "the data is loaded once");
    }
    assert.equal(loaded, 2);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

Deno.test("paths of file URLs are those of the system", () => {
  for (const name of ["plain", "with space", "100%", "ä#?", "a%2fb"]) {
    const path = join(tmpdir(), name);
    assert.equal(filePath(pathToFileURL(path)), path);
  }
  assert.throws(() => filePath(new URL("file:///a%2fb")), TypeError);
});
