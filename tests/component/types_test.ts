/**
 * `waft types`: declarations of WASI's worlds and of every kind of type are accepted by the type checker, and programs
 * that they accept run against an instance.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { loadWit } from "../../component/wit/load.ts";
import { declareTypes } from "../../project/ops/tools/declare_types.ts";
import { waft } from "../cli_project/waft.ts";
import { wasm } from "../webassembly/subject.ts";
import { suiteFolder, suiteHint, suiteNamed } from "../support/suites.ts";

const FIXTURES = fileURLToPath(new URL("fixtures/", import.meta.url));
const WASI = join(suiteFolder(suiteNamed("components")), "wit");
/** Deno contains a type checker. */
const CHECKS = "deno" in process.versions;

async function inFolder(action: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "waft-types-"));
  try {
    await action(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function deno(folder: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  assert.equal(status, 0, stderr);
  return stdout;
}

Deno.test({
  name: "a program is type-checked against the declarations of every kind of type",
  ignore: !CHECKS,
  fn: () =>
    inFolder(async (folder) => {
      const paths = await declareTypes(join(FIXTURES, "types.wit"), join(folder, "types"), undefined);
      assert.deepEqual(paths.map((path) => path.slice(folder.length + 1)), [
        "types/everything/imports/test-types-all.d.ts",
        "types/everything/exports/test-types-uses.d.ts",
        "types/everything/exports/test-types-all.d.ts",
        "types/everything/exports/inline.d.ts",
        "types/everything.d.ts",
      ]);
      const program = readFileSync(join(FIXTURES, "types_program.ts.txt"), "utf8");
      writeFileSync(join(folder, "program.ts"), program.replaceAll("EVERYTHING", "./types/everything.d.ts"));
      deno(folder, "check", "--quiet", "program.ts", ...paths);
    }),
});

/** A program that uses a component by its declarations. */
const PROGRAM = `import { readFileSync } from "node:fs";
import { NewEngine } from "ROOT/engine/mod.ts";
import { compileComponent, ComponentError } from "ROOT/component/mod.ts";
import type { Exports, Imports } from "./component.d.ts";

const component = compileComponent(NewEngine(), readFileSync("GREET"));
const imports = {} satisfies Imports;
const { exports } = component.instantiate<Exports>({}, imports);
const greeting: string = exports.greet("you");
const half: number = exports.halves.half(8);
let odd: unknown;
try {
  exports["test:math/halves@1.0.0"].half(9);
} catch (error) {
  odd = (error as ComponentError).payload;
}
console.log(greeting, half, odd);
`;

Deno.test({
  name: "a program that the declarations of a component accept runs against its instance",
  ignore: !CHECKS,
  fn: () =>
    inFolder(async (folder) => {
      const greet = join(FIXTURES, "greet.wat");
      await declareTypes(greet, folder, undefined);
      const root = pathToFileURL(fileURLToPath(new URL("../..", import.meta.url))).href.replace(/\/$/, "");
      writeFileSync(join(folder, "program.ts"), PROGRAM.replaceAll("ROOT", root).replace("GREET", greet));
      const config = fileURLToPath(new URL("../../deno.json", import.meta.url));
      assert.equal(
        deno(folder, "run", "-A", "--check", "--quiet", "--config", config, "program.ts"),
        "hello, you 4 4\n",
      );
    }),
});

/** Programs that import files, checked against the declarations beside the files. */
const IMPORTING: Readonly<Record<string, string>> = {
  "greet.wasm": `// @ts-types="./greet.d.wasm.ts"
import { greet, halves, "test:math/halves@1.0.0" as whole } from "./greet.wasm";
const greeting: string = greet("you");
const half: number = halves.half(8) + whole.half(4);
console.log(greeting, half);
`,
  "lib.wasm": `// @ts-types="./lib.d.wasm.ts"
import add, { "a\\"b" as ab, g, memory, two } from "./lib.wasm";
const sum: number = add(1, 2n);
const global: number = g;
const [, long]: [number, bigint] = two();
console.log(sum, global, long, memory.buffer.byteLength, ab(1, 2));
`,
};

Deno.test({
  name: "programs that import components and modules are type-checked against declarations beside the files",
  ignore: !CHECKS,
  fn: () =>
    inFolder(async (folder) => {
      writeFileSync(join(folder, "greet.wasm"), componentToBinary(readFileSync(join(FIXTURES, "greet.wat"), "utf8")));
      writeFileSync(
        join(folder, "lib.wasm"),
        wasm(`(module (memory (export "memory") 1) (global (export "g") (mut i32) (i32.const 1))
          (func (export "default") (param i32 i64) (result f64) (f64.const 0))
          (func (export "a\\"b") (param externref (ref null func)))
          (func (export "two") (result i32 i64) (i32.const 1) (i64.const 2)))`),
      );
      for (const [file, program] of Object.entries(IMPORTING)) {
        const paths = await declareTypes(join(folder, file), folder, undefined);
        assert.equal(paths.at(-1), join(folder, file.replace(".wasm", ".d.wasm.ts")));
        writeFileSync(join(folder, "program.ts"), program);
        deno(folder, "check", "--quiet", "program.ts");
        writeFileSync(join(folder, "wrong.ts"), program.replace(": number =", ": boolean ="));
        assert.throws(() => deno(folder, "check", "--quiet", "wrong.ts"), /TS2322/);
      }
    }),
});

Deno.test("the declarations of a core module are the types of its exports", () =>
  inFolder(async (folder) => {
    const file = join(folder, "lib.wat");
    writeFileSync(
      file,
      `(module (memory (export "memory") 1) (global (export "g") i32 (i32.const 1))
        (func (export "add") (param i32 i64) (result f64) (f64.const 0))
        (func (export "a\\"b") (param externref (ref null func)))
        (func (export "two") (result i32 i64) (i32.const 1) (i64.const 2)))`,
    );
    assert.deepEqual(await declareTypes(file, join(folder, "out"), undefined), [join(folder, "out", "module.d.ts")]);
    assert.equal(
      readFileSync(join(folder, "out", "module.d.ts"), "utf8"),
      `import type { ExternGlobal, Memory } from "@waft/engine";

/** The exports, for \`module.instantiate<Exports>()\` and \`module.pool<Exports>()\`. */
export interface Exports {
  readonly "memory": Memory;
  readonly "g": ExternGlobal;
  readonly "add": (p0: number, p1: bigint) => number;
  readonly "a\\"b": (p0: unknown, p1: unknown) => void;
  readonly "two": () => [number, bigint];
}
`,
    );
    await assert.rejects(declareTypes(file, folder, "app"), /contains no world/);
  }));

/** Copies a package of WASI and, as its dependencies, the others of the release. */
function placePackage(release: string, proposal: string, place: string): void {
  const proposals = join(WASI, release, "proposals");
  for (const other of readdirSync(proposals)) {
    const target = other === proposal ? place : join(place, "deps", other);
    cpSync(join(proposals, other, "wit"), target, { recursive: true });
  }
}

const releases = existsSync(WASI) ? readdirSync(WASI) : [];

Deno.test({
  name: `the declarations of WASI's worlds are accepted${
    releases.length > 0 ? "" : ` (${suiteHint(suiteNamed("components"))})`
  }`,
  ignore: releases.length === 0 || !CHECKS,
  fn: () =>
    inFolder(async (folder) => {
      const written: string[] = [];
      for (const release of releases) {
        for (const proposal of readdirSync(join(WASI, release, "proposals"))) {
          const place = join(folder, release, proposal);
          placePackage(release, proposal, place);
          if (loadWit(place, { allFeatures: true }).root.worlds.size === 0) continue;
          written.push(...await declareTypes(place, join(place, "types"), undefined));
        }
      }
      assert.ok(written.length > 150, `${written.length} files`);
      deno(folder, "check", "--quiet", ...written);
    }),
});

Deno.test("waft types prints the files that it writes, and refuses a world that is not there", () =>
  inFolder(async (folder) => {
    const wit = join(FIXTURES, "types.wit");
    const { code, out } = await waft(["types", wit, "-o", "t"], folder, folder);
    assert.deepEqual([code, out.split("\n").at(-2)], [0, "t/everything.d.ts"]);
    const refused = await waft(["types", wit, "-o", "u", "--world", "other"], folder, folder);
    assert.deepEqual([refused.code, existsSync(join(folder, "u"))], [2, false]);
    assert.match(refused.err, /has no world other; it has everything/);
  }));
