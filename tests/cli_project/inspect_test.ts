/**
 * `waft inspect`, `parse` and `validate` of components: the command as a process.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

function waft(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), ...args], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

const COMPONENT = `;; a component
(component
  (import "a:b/logger@1.2.0" (instance $logger
    (type $l (enum "low" "high"))
    (export "level" (type $level (eq $l)))
    (export "log" (func (param "level" $level) (param "text" string)))))
  (import "scale" (func $scale (param "value" f32) (result (list u8))))
  (core module $m (func (export "run") (result i32) (i32.const 0)))
  (core instance $i (instantiate $m))
  (func (export "run") (result (result)) (canon lift (core func $i "run"))))
`;

const WORLD = `package root:component;

world root {
  import a:b/logger@1.2.0;
  import scale: func(value: f32) -> list<u8>;

  export run: func() -> result;
}

package a:b@1.2.0 {
  interface logger {
    enum level {
      low,
      high,
    }

    log: func(level: level, text: string);
  }
}
`;

function inFolder(run: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "inspect-"));
  try {
    run(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

Deno.test("a component is parsed, validated and shown as WIT", () => {
  inFolder((folder) => {
    const [text, binary] = [join(folder, "c.wat"), join(folder, "c.wasm")];
    writeFileSync(text, COMPONENT);
    assert.deepEqual(waft("parse", text, "-o", binary), { status: 0, stdout: "", stderr: "" });
    assert.deepEqual([...readFileSync(binary).subarray(0, 8)], [0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0]);
    assert.deepEqual(waft("validate", text, binary), { status: 0, stdout: "", stderr: "" });
    for (const file of [text, binary]) {
      assert.deepEqual(waft("inspect", file), { status: 0, stdout: WORLD, stderr: "" });
    }
    const [printed, again] = [join(folder, "p.wat"), join(folder, "p.wasm")];
    assert.deepEqual(waft("print", binary, "-o", printed), { status: 0, stdout: "", stderr: "" });
    assert.match(readFileSync(printed, "utf8"), /^\(component\n {2}\(type \(;0;\) \(instance\n/);
    assert.deepEqual(waft("parse", printed, "-o", again), { status: 0, stdout: "", stderr: "" });
    assert.deepEqual(readFileSync(again), readFileSync(binary));
    const wit = join(folder, "c.wit");
    writeFileSync(wit, WORLD);
    assert.deepEqual(waft("inspect", wit), { status: 0, stdout: WORLD, stderr: "" });
    const { ok, data } = JSON.parse(waft("inspect", "--json", binary).stdout);
    assert.ok(ok);
    assert.deepEqual(data.worlds[0].exports, [{ name: "run", kind: "func", type: "func() -> result" }]);
  });
});

Deno.test("faults are one line with the file and the place", () => {
  inFolder((folder) => {
    const text = join(folder, "c.wat");
    writeFileSync(text, '(component\n  (export "f" (func $f)))');
    const parsed = waft("validate", text);
    assert.equal(parsed.status, 1);
    assert.match(parsed.stderr, /c\.wat:2:21: unknown func: failed to find name `\$f`/);
    writeFileSync(text, '(component (import "Xy" (func)))');
    assert.match(
      waft("inspect", text).stderr,
      /^waft: .*c\.wat: `Xy` is not a valid extern name: .* \(at offset 0x[0-9a-f]+\)\n$/,
    );
    writeFileSync(join(folder, "w.wit"), "package a:b;\nworld w { import nope; }\n");
    const inspected = waft("inspect", folder);
    assert.match(inspected.stderr, /w\.wit:2:18: the name `nope` is not defined/);
    writeFileSync(text, "(module)");
    assert.match(waft("inspect", text).stderr, /text form|without an embedded world/);
  });
});
