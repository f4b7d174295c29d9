/**
 * Importing the engine and running a module with baseline code load neither the optimizing compiler nor the table of
 * opcodes with the rules of instructions, nor rows of machine instructions, nor the text format, nor the collector, nor
 * the verifier of machine code (host/late_module.ts); synchronous code gets them on first use, with and without
 * `require`.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { dirname, join, normalize } from "node:path/posix";
import process from "node:process";
import { codeSize, loadedWith, sourceOf } from "../support/loaded_modules.ts";

/** Modules that only optimized code, invalid bodies, texts or collections need. */
const HEAVY =
  /^engine\/(optimize\/(?!pass_options)|regalloc\/(?!allocator_options)|script\/|compile\/(body_compiler|verify_module)|translate\/(?!module_|late_|const_value|object_types|table_facts|describe_module|cast_types)|ir\/(?!types|regions)|wasm\/(opcodes|code_reader)|validate\/(code|constant_rules|walker|special)\.ts|text\/(?!text_places|text_format)|verify\/|gc\/collector_code|runtime\/strings\/string_code|backend_\w+\/(select|emit\.|disassemble|optimizing_target|instructions|insts_|stub_)|baseline\/generated\/kernel_(?!presence)|portable\/(?!late_|generated\/(?:native_presence|checksum_routine)|listed_bodies|scan_bodies|body_results|compiler_interface|module_writer))/;

const HOST_PARTS = ["engine/backend_x64/target.ts", "engine/backend_arm64/target.ts"];

for (
  const [entry, most] of [
    // Of these, 400 let a process load all late modules before it is confined, and 5,000 are budgets, which every
    // instantiation and every call may have. 12,000 are the types that the parts of threads, stores and instances have
    // of each other, 5,000 find dropped instances in synchronous programs, 2,600 choose the form of the optimizing
    // compiler, 7,000 let native threads compile, 12,000 run continuations, and 9,500 read, compare and lay out
    // types with descriptors, and give their objects prototypes.
    ["engine/mod.ts", 1_205_000],
    // Of these, 9,000 demangle the names of functions in `error.stack`, and 7,000 are `limit` and `checkpoint`, all
    // synchronous.
    ["engine/webassembly/mod.ts", 1_275_000],
    ["project/commands/run/run.ts", 1_437_000],
  ] as const
) {
  Deno.test(`${entry} loads no optimizing compiler, table of opcodes, text format or collector`, () => {
    for (const part of HOST_PARTS) {
      const { files } = loadedWith(entry, part);
      assert.deepEqual(files.filter((file) => HEAVY.test(file)), []);
      assert.ok(files.includes("engine/compile/compile.ts"), "the walk finds the baseline compiler");
      const size = files.reduce((sum, file) => sum + codeSize(file), 0);
      assert.ok(size < most, `${size} characters without comments`);
    }
  });
}

/** The late modules, by the file that declares them. */
function lateModules(): { file: string; url: string; imported: string }[] {
  const rows = loadedWith("engine/mod.ts").files.flatMap((file) =>
    [
      ...sourceOf(file).matchAll(
        /new LateModule\(\s*new URL\(`([^`]*)`, import\.meta\.url\),\s*\(\) => import\("([^"]*)"\)/g,
      ),
    ]
      .map(([, url, imported]) => ({ file, url, imported }))
  );
  const declared = loadedWith("engine/mod.ts").files.flatMap((file) => sourceOf(file).match(/new LateModule\(/g) ?? []);
  assert.equal(rows.length, declared.length, "every late module is read");
  return rows;
}

const TOP_LEVEL_AWAIT = /^(?:(?:export )?const [^;]*?= )?await /m;

Deno.test("late modules are named alike for require and import, and have no top-level await", () => {
  const rows = lateModules();
  assert.ok(rows.length >= 5, `${rows.length} late modules`);
  for (const { file, url, imported } of rows) {
    assert.equal(url, imported.replace(/ts$/, "${SUFFIX}"), file);
    for (const loaded of loadedWith(normalize(join(dirname(file), imported))).files) {
      assert.doesNotMatch(sourceOf(loaded), TOP_LEVEL_AWAIT, `${loaded} of ${imported}`);
    }
  }
});

for (const entry of ["engine/parallel/worker.ts", "project/plugins/socket_worker.ts"]) {
  Deno.test(`${entry} listens to messages before it waits for anything`, () => {
    assert.match(sourceOf(entry), /\.on\("message"/);
    for (const loaded of loadedWith(entry).files) assert.doesNotMatch(sourceOf(loaded), TOP_LEVEL_AWAIT, loaded);
  });
}

/** Uses every late module of this processor. */
const PROGRAM = `
const { NewEngine } = await import(${JSON.stringify(new URL("../../engine/mod.ts", import.meta.url).href)});
const { WebAssembly } = await import(${
  JSON.stringify(new URL("../../engine/webassembly/mod.ts", import.meta.url).href)
});
const strings = \`(module
  (import "wasm:js-string" "length" (func $length (param externref) (result i32)))
  (func (export "length") (param externref) (result i32) (call $length (local.get 0))))\`;
const objects = \`(module
  (type $pair (struct (field i32) (field (ref null $pair))))
  (func (export "objects") (param $n i32) (result i32) (local $p (ref null $pair))
    (loop $again
      (local.set $p (struct.new $pair (local.get $n) (ref.null $pair)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (struct.get $pair 0 (local.get $p))))\`;
for (const tier of ["auto", "baseline", "optimizing"]) {
  console.log(NewEngine({ tier, bounds: "explicit" }).compile(objects).instantiate().call({}, "objects", 100000));
}
const module = new WebAssembly.Module(NewEngine().parse(strings).bytes, { builtins: ["js-string"] });
console.log(new WebAssembly.Instance(module).exports.length("four"));
// An invalid body, a constant expression that is not constant, and a body without an end.
for (const code of [[10, 6, 1, 4, 0, 0x6a, 0x1a, 11], [6, 5, 1, 0x7f, 0, 0x45, 11, 10, 4, 1, 2, 0, 11], [10, 5, 1, 3, 0, 1, 1]]) {
  const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, ...code);
  for (const method of ["compile", "validate"]) {
    try {
      NewEngine()[method](bytes);
    } catch (error) {
      console.log(error.message);
    }
  }
}
`;

const RESULTS = [1, 1, 1, 4];
const ERRORS = [
  "type mismatch: instruction requires [i32 i32] but stack has [] (i32.add in function 0)",
  "constant expression required: i32.eqz is not constant",
  "END opcode expected: unexpected end of section or function: section size mismatch",
];
const OUTPUT = [...RESULTS, ...ERRORS.flatMap((message) => [message, message])].map((line) => `${line}\n`).join("");

for (const [name, permissions] of [["require", ["-A"]], ["import", ["--allow-ffi", "--allow-env"]]] as const) {
  Deno.test(`late modules are loaded on first use by ${name}`, () => {
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["run", "--quiet", "--no-check", "--no-prompt", ...permissions, "-"],
      { input: PROGRAM, encoding: "utf8" },
    );
    assert.equal(stdout, OUTPUT, stderr);
  });
}
