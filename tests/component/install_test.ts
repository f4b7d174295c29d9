/**
 * Components that JavaScript imports under `@waft/component/install`: exports, imports from the program and from WASI,
 * limits, source phase imports, Workers, and refusals. Each program runs in a separate process.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "@waft/component";
import { decodeComponent } from "../../component/binary/decode.ts";
import { COMPONENT_HEADER, SECTION } from "../../component/binary/section_ids.ts";
import { exportNames } from "../../component/link/host_exports.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import { CHILD_TIMEOUT, preloadArguments } from "../support/host_arguments.ts";

/** The output of a program, given as files by name; components as text. */
function outputOf(files: Readonly<Record<string, string | Uint8Array>>, preload = "@waft/component/install"): string {
  const folder = mkdtempSync(join(tmpdir(), "waft-component-modules-"));
  try {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      const isText = typeof content === "string" && name.endsWith(".wasm");
      writeFileSync(join(folder, name), isText ? componentToBinary(content) : content);
    }
    const child = spawnSync(process.execPath, preloadArguments(preload, join(folder, "main.mjs")), {
      encoding: "utf8",
      timeout: CHILD_TIMEOUT,
    });
    assert.equal(child.status, 0, `${child.stdout}${child.stderr}`);
    return child.stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A component whose only section has more bytes than the file. */
const BROKEN = Uint8Array.of(...COMPONENT_HEADER, SECTION.type, 9);

/** Exports functions, an interface, and a resource with a constructor, a method and a static function. */
const SHAPES = `(component
  (type $counter' (resource (rep i32)))
  (export $counter "sum-counter" (type $counter'))
  (core func $new (canon resource.new $counter'))
  (core module $m
    (import "" "new" (func $new (param i32) (result i32)))
    (func (export "make") (param i32) (result i32) (call $new (local.get 0)))
    (func (export "value") (param i32) (result i32) (local.get 0))
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    (func (export "fail") (param i32) (result i32) (i32.eqz (local.get 0))))
  (core instance $i (instantiate $m (with "" (instance (export "new" (func $new))))))
  (func (export "[constructor]sum-counter") (param "n" u32) (result (own $counter))
    (canon lift (core func $i "make")))
  (func (export "[method]sum-counter.get-value") (param "self" (borrow $counter)) (result u32)
    (canon lift (core func $i "value")))
  (func (export "[static]sum-counter.twice") (param "n" u32) (result u32) (canon lift (core func $i "value")))
  (func $add (export "add-numbers") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add")))
  (func (export "check") (param "n" u32) (result (result)) (canon lift (core func $i "fail")))
  (func (export "default") (param "n" u32) (result u32) (canon lift (core func $i "value")))
  (instance $math (export "add" (func $add)))
  (export "test:shapes/math-tools@1.2.0" (instance $math))
  (export "add-tools" (instance $math)))`;

Deno.test("the names of a component's exports are known before it is instantiated", () => {
  const { type } = validateComponent(decodeComponent(componentToBinary(SHAPES)));
  const { exports } = compileComponent(NewEngine(), SHAPES).instantiate();
  assert.deepEqual(exportNames(type).sort(), Object.keys(exports).sort());
  assert.ok(exportNames(type).includes("mathTools"), "there are short names");
});

Deno.test("exports of components are exports of modules: functions, interfaces, classes", () => {
  const main = `import nine, * as shapes from "./shapes.wasm";
import { addNumbers, mathTools, SumCounter, "test:shapes/math-tools@1.2.0" as whole } from "./shapes.wasm";
console.log(addNumbers(2, 3), mathTools.add(3, 4), whole === mathTools, nine(9));
console.log(new SumCounter(7).getValue(), SumCounter.twice(8), shapes.check(1));
try {
  shapes.check(0);
} catch (error) {
  console.log(error.constructor.name, error.payload);
}
console.log((await import("./shapes.wasm")).SumCounter === SumCounter, Object.keys(shapes).length);
`;
  assert.equal(
    outputOf({ "main.mjs": main, "shapes.wasm": SHAPES }),
    "5 7 true 9\n7 8 undefined\nComponentError undefined\ntrue 9\n",
  );
});

/** Calls the imported function `log` and the function `write` of an interface. */
const IMPORTING = `(component
  (import "log" (func $log (param "n" u32)))
  (import "test:host/text@1.0.0" (instance $text (export "length" (func (param "n" u32) (result u32)))))
  (core func $log (canon lower (func $log)))
  (core func $length (canon lower (func $text "length")))
  (core module $m
    (import "" "log" (func $log (param i32)))
    (import "" "length" (func $length (param i32) (result i32)))
    (func (export "run") (param i32) (result i32)
      (call $log (local.get 0))
      (call $length (local.get 0))))
  (core instance $i (instantiate $m (with "" (instance
    (export "log" (func $log)) (export "length" (func $length))))))
  (func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run"))))`;

const INSTALL = JSON.stringify(import.meta.resolve("@waft/component/install"));

Deno.test("imports of components: the program's own, and an error that names those that are missing", () => {
  const main = `import { configureComponents } from ${INSTALL};
for (const wrong of [null, { import: {} }, { imports: 1 }]) {
  try {
    configureComponents(wrong);
  } catch (error) {
    console.log(error.name, error.message);
  }
}
await import("./missing.wasm").catch(({ name, message }) => console.log(name, message.replace(/^file:.*\\//, "")));
const log = (n) => console.log("log", n);
const length = (n) => n * 2;
configureComponents({ imports: { log, "test:host/text@1.0.2": { length } } });
console.log((await import("./given.wasm")).run(4));
const module = await import("./module.mjs");
configureComponents({ imports: { log: module, "test:host/text": module } });
console.log((await import("./other.wasm")).run(5));
`;
  const expected = `TypeError The options of components must be an object, not null
TypeError Unknown option of components "import"; did you mean "imports"?
TypeError The option imports must be an object, not 1
LinkError missing.wasm: The component's imports are missing:
  log: func(n: u32)
  test:host/text@1.0.0#length: func(n: u32) -> u32
Give them to configureComponents of @waft/component/install before the file is imported.
log 4
8
module 5
15
`;
  const files = {
    "main.mjs": main,
    "module.mjs": "export default (n) => console.log('module', n);\nexport const length = (n) => n * 3;\n",
    "missing.wasm": IMPORTING,
    "given.wasm": IMPORTING,
    "other.wasm": IMPORTING,
  };
  assert.equal(outputOf(files), expected);
});

/** A component that names modules of the host, whose functions it could call. */
function namingModule(name: string): string {
  return `(component
    (import "${name}" (instance $fs (export "exists-sync" (func (param "p" u32) (result bool)))))
    (core func $exists (canon lower (func $fs "exists-sync")))
    (core module $m (import "" "f" (func $f (param i32) (result i32))) (export "run" (func $f)))
    (core instance $i (instantiate $m (with "" (instance (export "f" (func $exists))))))
    (func (export "run") (param "p" u32) (result bool) (canon lift (core func $i "run"))))`;
}

Deno.test("a component cannot choose modules of the host by the names of its imports", () => {
  const names = ["fs", "node:fs/promises", "npm:fs/extra", "https:host/path", "file:etc/passwd"];
  const main = `for (let k = 0; k < ${names.length}; k++) {
  await import("./" + k + ".wasm").then(() => console.log("imported"), ({ name }) => console.log(name));
}
`;
  const files = Object.fromEntries(names.map((name, k) => [`${k}.wasm`, namingModule(name)]));
  assert.equal(outputOf({ ...files, "main.mjs": main }), "LinkError\n".repeat(names.length));
});

/** Writes "hello" to standard output, and spins. */
const PRINTING = `(component
  (import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
  (alias export $error "error" (type $error))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (alias outer 1 $error (type $error'))
    (export "error" (type $error'' (eq $error')))
    (export "output-stream" (type $stream (sub resource)))
    (type $stream-error (variant (case "last-operation-failed" (own $error'')) (case "closed")))
    (export "stream-error" (type $stream-error' (eq $stream-error)))
    (export "[method]output-stream.blocking-write-and-flush"
      (func (param "self" (borrow $stream)) (param "contents" (list u8)) (result (result (error $stream-error')))))))
  (alias export $streams "output-stream" (type $stream))
  (import "wasi:cli/stdout@0.2.0" (instance $stdout
    (alias outer 1 $stream (type $stream'))
    (export "output-stream" (type $stream'' (eq $stream')))
    (export "get-stdout" (func (result (own $stream''))))))
  (core module $memory (memory (export "memory") 1) (data (i32.const 64) "hello\\n"))
  (core instance $memory (instantiate $memory))
  (core func $get (canon lower (func $stdout "get-stdout")))
  (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
    (memory (core memory $memory "memory"))))
  (core module $m
    (import "" "get" (func $get (result i32)))
    (import "" "write" (func $write (param i32 i32 i32 i32)))
    (func (export "hello") (call $write (call $get) (i32.const 64) (i32.const 6) (i32.const 16)))
    (func (export "spin") (loop (br 0))))
  (core instance $i (instantiate $m (with "" (instance
    (export "get" (func $get)) (export "write" (func $write))))))
  (func (export "hello") (canon lift (core func $i "hello")))
  (func (export "spin") (canon lift (core func $i "spin"))))`;

/** A component whose memory has five pages. */
const LARGE = `(component
  (core module $m (memory 5))
  (core instance (instantiate $m)))`;

Deno.test("imported components have WASI, and the limits of the namespace", () => {
  const main = `import { configure, limit } from ${JSON.stringify(import.meta.resolve("@waft/engine/webassembly"))};
configure({ interruptible: true, limits: { maxMemoryPages: 4 } });
const { hello, spin } = await import("./printing.wasm");
hello();
await import("./large.wasm").catch(({ message }) => console.log(message));
try {
  limit({ deadline: 20 }, spin);
} catch (error) {
  console.log(error.code);
}
`;
  assert.equal(
    outputOf({ "main.mjs": main, "printing.wasm": PRINTING, "large.wasm": LARGE }),
    "hello\nOut of memory: 5 pages exceed the limit of 4\ninterrupted\n",
  );
});

Deno.test("components are imported in Workers, too", () => {
  const main = `import { Worker } from "node:worker_threads";
const worker = new Worker(new URL("worker.mjs", import.meta.url));
worker.on("message", (message) => {
  console.log(message);
  worker.terminate();
});
`;
  const worker = `import { parentPort } from "node:worker_threads";
import { addNumbers } from "./shapes.wasm";
parentPort.postMessage(addNumbers(40, 2));
`;
  assert.equal(outputOf({ "main.mjs": main, "worker.mjs": worker, "shapes.wasm": SHAPES }), "42\n");
});

Deno.test({
  name: "source phase imports of components give compiled components",
  // Bun's parser refuses the phase before its plugins see the file.
  ignore: process.versions.bun !== undefined,
  fn() {
    const main = `import source component from "./shapes.wasm";
console.log(component.instantiate().exports.addNumbers(1, 2), await import.source("./shapes.wasm") === component);
`;
    assert.equal(outputOf({ "main.mjs": main, "shapes.wasm": SHAPES }), "3 true\n");
  },
});

Deno.test("without the provider, and for broken components, the error says what to do", () => {
  const main = `for (const name of ["./shapes.wasm", "./broken.wasm"]) {
  await import(name).then(() => console.log("imported"), ({ message }) => console.log(message.split("\\n")[0]));
}
`;
  const files = { "main.mjs": main, "shapes.wasm": SHAPES, "broken.wasm": BROKEN };
  assert.match(
    outputOf(files, "@waft/engine/install"),
    /^.*shapes\.wasm: it is a component; install waft by @waft\/component\/install, not by .*\n.*broken\.wasm: it is a c/,
  );
  assert.match(outputOf(files), /^imported\n.*section.*\n$/);
});
