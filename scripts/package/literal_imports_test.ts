/** Late imports become literal in the sources of packages, and the sources are restored. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { LATE_FILES, literalImports, writeLiteralImports } from "./literal_imports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

Deno.test("late imports become literal, with and without types", () => {
  assert.equal(literalImports('load: late("./run.ts"),'), 'load: () => import("./run.ts"),');
  assert.equal(
    literalImports('const a = late<typeof import("./a.ts")>(\n  "./a.ts",\n);'),
    'const a = () => import("./a.ts");',
  );
  assert.equal(literalImports('translate("./run.ts"); late(name);'), 'translate("./run.ts"); late(name);');
});

Deno.test("every late import of the tree is found, and names a file", () => {
  for (const file of LATE_FILES) {
    const text = readFileSync(join(ROOT, file), "utf8");
    const literal = literalImports(text);
    assert.doesNotMatch(literal, /\blate[<(]/, file);
    const names = [...literal.matchAll(/\(\) => import\("([^"]+)"\)/g)].map(([, name]) => name);
    assert.equal(names.length, [...text.matchAll(/\blate[<(]/g)].length, file);
    assert.ok(names.length > 0, file);
    for (const name of names) assert.ok(existsSync(join(ROOT, dirname(file), name)), `${name} in ${file}`);
  }
});

Deno.test("the list has every file with late imports, which a package could not resolve otherwise", () => {
  const found = [
    "cli.ts",
    "mod.ts",
    ...["component", "engine", "project", "registry"].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
        .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
        .filter((name) => name.endsWith(".ts") && !name.endsWith("_test.ts"))
    ),
  ].filter((name) => /\blateImports\(import\.meta\.url\)/.test(readFileSync(join(ROOT, name), "utf8")));
  assert.deepEqual(found.sort(), [...LATE_FILES].sort());
});

Deno.test("writeLiteralImports() changes the sources until they are restored", () => {
  const tree = mkdtempSync(join(tmpdir(), "waft-late-"));
  try {
    const file = join(tree, "project/commands/table.ts");
    const text = 'const row = { load: late("./run.ts") };\n';
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    const restore = writeLiteralImports(tree);
    assert.equal(readFileSync(file, "utf8"), 'const row = { load: () => import("./run.ts") };\n');
    restore();
    assert.equal(readFileSync(file, "utf8"), text);
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
});
