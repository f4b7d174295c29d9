/**
 * The conversion of `deno pack` archives to npm packages: texts and tables only. scripts/hosts/test_hosts.ts tests the
 * packages themselves by installing them.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { finishManifest } from "./build_npm.ts";
import { REFERENCE_MODULES } from "../../registry/site/reference/pages.ts";
import {
  type Files,
  finishModule,
  finishModules,
  lockedVersions,
  missingExports,
  stripInternal,
} from "./npm_package.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (files: Files, path: string) => new TextDecoder().decode(files.get(path));

Deno.test("finishModule() rewrites relative .ts specifiers to .js and leaves other text unchanged", () => {
  const { text, json } = finishModule(`import { a } from "./a.ts";
export * from "../b/c.ts";
const d = await import("./d.ts");
import "./e.ts";
new Worker(new URL("./f.ts", import.meta.url));
const name = "./g.ts"; // from "h.ts"
import i from "i.ts";
`);
  assert.equal(
    text,
    `import { a } from "./a.js";
export * from "../b/c.js";
const d = await import("./d.js");
import "./e.js";
new Worker(new URL("./f.js", import.meta.url));
const name = "./g.ts"; // from "h.ts"
import i from "i.ts";
`,
  );
  assert.deepEqual(json, []);
});

Deno.test("finishModules() turns imported JSON into modules beside the JSON file", () => {
  const files: Files = new Map([
    ["project/manifest/manifest.js", bytes('import schema from "./schema.json" with { type: "json" };')],
    ["project/manifest/schema.json", bytes('{"a": [1]}')],
  ]);
  finishModules(files);
  assert.equal(text(files, "project/manifest/manifest.js"), 'import schema from "./schema.json.js";');
  assert.equal(text(files, "project/manifest/schema.json.js"), 'export default {\n  "a": [\n    1\n  ]\n};\n');
  files.delete("project/manifest/schema.json");
  files.set("project/manifest/manifest.js", bytes('import schema from "./schema.json" with { type: "json" };'));
  assert.throws(() => finishModules(files), /imports "\.\/schema\.json", which is not in the package/);
});

Deno.test("stripInternal() removes tagged members from declarations, whatever they contain", () => {
  const declarations = `/** About. */ export declare class Table {
  /** @internal */ readonly [EXTERN]: { a: number; b(): void; };
  /**
   * Creates a table.
   *
   * @internal
   */ constructor(store: Store, make?: () => { a: number; });
  /** The length; not an internal one. */ get length(): number;
  /** @internal */ static of(store: Store): [a: string, b: string];
}
interface Token {
  /** The kind. */ readonly kind: "table";
  /** @internal */ readonly base: number;
}
`;
  assert.equal(
    stripInternal(declarations),
    `/** About. */ export declare class Table {
  private constructor();
  /** The length; not an internal one. */ get length(): number;
}
interface Token {
  /** The kind. */ readonly kind: "table";
}
`,
  );
  const overloaded = `export declare class A {
  /** Public. */ constructor(a: string);
  /** @internal */ constructor(a: number);
}
`;
  assert.equal(stripInternal(overloaded), overloaded.replace(/ +\/\*\* @internal.*\n/, ""));
  const declared = "/** @internal */ export interface A {\n}\n";
  assert.equal(stripInternal(declared), declared);
});

Deno.test("packages export documented modules; every other export is below ./internal/", () => {
  // ./install has effects and exports nothing, so it has no page.
  for (const [folder, without] of [["engine", ["./install"]], ["component", []]] as const) {
    const { exports } = JSON.parse(readFileSync(new URL(`../../${folder}/deno.json`, import.meta.url), "utf8")) as {
      exports: Record<string, string>;
    };
    const open = Object.keys(exports).filter((entry) => !entry.startsWith("./internal/"));
    const pages = REFERENCE_MODULES.filter((module) => module.package === folder).map(({ entry }) => entry);
    assert.deepEqual(open.sort(), [...pages, ...without].sort(), folder);
  }
});

Deno.test("the packages can be installed on every system, as the documentation says", () => {
  const manifest = { name: "@waft/engine", version: "0.0.0", exports: {} };
  const files: Files = new Map([["package.json", bytes(JSON.stringify(manifest))]]);
  const row = { folder: "engine", description: "", fields: {}, extra: [], uses: [] };
  finishManifest(files, row, new URL("../..", import.meta.url).pathname);
  const { os, cpu, libc } = JSON.parse(text(files, "package.json")) as Record<string, unknown>;
  assert.deepEqual([os, cpu, libc], [undefined, undefined, undefined]);
  const page = readFileSync(new URL("../../docs/installing.md", import.meta.url), "utf8");
  assert.match(page, /^\| other systems .*validates, converts and manages projects/m);
});

Deno.test("missingExports() returns the files that package.json names and the package lacks", () => {
  const files: Files = new Map([["a.js", bytes("")], ["a.d.ts", bytes("")], ["b.js", bytes("")]]);
  const exports = { "./a": { types: "./a.d.ts", default: "./a.js" }, "./b": { types: "./b.d.ts", default: "./b.js" } };
  assert.deepEqual(missingExports(files, exports), ["./b.d.ts"]);
});

Deno.test("lockedVersions() reads resolved versions without their peer suffixes", () => {
  const versions = lockedVersions(
    JSON.stringify({
      specifiers: {
        "npm:@c/typings@14": "14.0.0_commander@14.0.3",
        "npm:ajv@^8.17.1": "8.20.0",
        "jsr:@x/y@1": "1.0.0",
      },
    }),
  );
  assert.deepEqual([...versions], [["@c/typings", "14.0.0"], ["ajv", "8.20.0"]]);
});

Deno.test("the packages can be published: all exports have explicit types, and no module is missing", () => {
  for (const folder of ["engine", "component", "."]) {
    const { success, stderr } = new Deno.Command(Deno.execPath(), {
      args: ["publish", "--dry-run", "--allow-dirty", "--no-check", "--quiet"],
      cwd: new URL(`../../${folder}/`, import.meta.url),
    }).outputSync();
    assert.ok(success, new TextDecoder().decode(stderr));
  }
});
