/**
 * `waft objdump`: its output beside that of wasm-objdump (WABT 1.0.39), components, and damaged files.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { binaryOf } from "../../project/ops/inspection/inspect_file.ts";
import { dumpObject } from "../../project/ops/inspection/object_dump.ts";
import { objdumpData, objdumpLines, type ObjdumpViews } from "../../project/commands/tools/objdump_text.ts";
import { componentBytes } from "../../project/ops/tools/component_bytes.ts";
import { waft } from "./waft.ts";

const MODULE = binaryOf(
  new TextEncoder().encode(`(module $m
  (import "env" "log" (func $log (param i32)))
  (memory 1 2)
  (table 4 funcref)
  (global $g (mut i32) (i32.const 5))
  (export "run" (func $run))
  (start $run)
  (elem (i32.const 1) func $run $log)
  (func $run (local i64 i64 f32)
    (call $log (i32.load offset=1024 (global.get $g)))
    (drop (i64.const 0x123456789abcdef0)))
  (data (i32.const 1024) "hello\\nworld"))`),
);

const NOTHING: ObjdumpViews = { headers: false, details: false, disassemble: false, contents: false, sections: [] };
const ALL: ObjdumpViews = { headers: true, details: true, disassemble: true, contents: true, sections: [] };

function lines(bytes: Uint8Array, views: Partial<ObjdumpViews>): string {
  return [...objdumpLines("m.wasm", dumpObject(bytes), { ...NOTHING, ...views })].join("\n");
}

/** The output, which may end with a fault. */
function partialLines(bytes: Uint8Array, views: ObjdumpViews): { shown: string[]; fault?: Error } {
  const shown: string[] = [];
  try {
    for (const line of objdumpLines("m.wasm", dumpObject(bytes), views)) shown.push(line);
  } catch (fault) {
    assert.ok(fault instanceof Error && /^(Malformed|Invalid|Unsupported)Error$/.test(fault.name), String(fault));
    return { shown, fault };
  }
  return { shown };
}

// As wasm-objdump prints them, but for the name of the module and the index in the start section.
Deno.test("headers are those of wasm-objdump", () => {
  assert.equal(
    lines(MODULE, { headers: true }),
    `
m.wasm:	file format wasm 0x1

Sections:

     Type start=0x0000000a end=0x00000012 (size=0x00000008) count: 2
   Import start=0x00000014 end=0x0000001f (size=0x0000000b) count: 1
 Function start=0x00000021 end=0x00000023 (size=0x00000002) count: 1
    Table start=0x00000025 end=0x00000029 (size=0x00000004) count: 1
   Memory start=0x0000002b end=0x0000002f (size=0x00000004) count: 1
   Global start=0x00000031 end=0x00000037 (size=0x00000006) count: 1
   Export start=0x00000039 end=0x00000040 (size=0x00000007) count: 1
    Start start=0x00000042 end=0x00000043 (size=0x00000001)
     Elem start=0x00000045 end=0x0000004d (size=0x00000008) count: 1
     Code start=0x0000004f end=0x0000006a (size=0x0000001b) count: 1
     Data start=0x0000006c end=0x0000007e (size=0x00000012) count: 1
   Custom start=0x00000080 end=0x0000009c (size=0x0000001c) "name"`,
  );
});

Deno.test("entries, instructions with their bytes, and the bytes of sections", () => {
  const details = lines(MODULE, { details: true });
  for (
    const line of [
      ' - func[0] sig=0 <log> <- "env" "log"',
      " - func[1] sig=1 <run>",
      " - table[0] 4 funcref",
      " - memory[0] 1 2",
      " - type[0] (func (param i32))",
      " - global[0] (mut i32) = (i32.const 5)",
      ' - func[1] <run> -> "run"',
      " - segment[0] active table=0 (ref func) count=2 - init (i32.const 1)",
      "  - elem[2] = func[0] <log>",
      " - segment[0] active memory=0 size=11 - init (i32.const 1024)",
      "  - 0000400: 6865 6c6c 6f0a 776f 726c 64              hello.world",
      " - module <m>",
    ]
  ) assert.ok(details.split("\n").includes(line), `${line} in ${details}`);
  assert.equal(
    lines(MODULE, { disassemble: true }).split("Disassembly:\n\n")[1],
    `000051 func[1] <run>:
 000051: 02 02 7e 01 7d             | local 2 × i64, f32
 000056: 23 00                      | global.get $g
 000058: 28 02 80 08                | i32.load offset=1024
 00005c: 10 00                      | call $log
 00005e: 42 f0 bd f3 d5 89 cf 95 9a | i64.const 1311768467463790320
 000067: 12                         |
 000068: 1a                         | drop
 000069: 0b                         | end`,
  );
  assert.match(
    lines(MODULE, { contents: true, sections: ["TYPE"] }),
    /^\nm\.wasm:.*\n\nContents of section Type:\n0000/,
  );
  assert.doesNotMatch(lines(MODULE, { ...ALL, sections: ["data"] }), /Disassembly|Import/);
  assert.match(lines(MODULE, { headers: true, sections: ["name"] }), /Custom start/);
  assert.throws(() => lines(MODULE, { headers: true, sections: ["nope"] }), /no section is named "nope"/);
});

Deno.test("the core modules and components in a component follow it, with offsets in the file", async () => {
  const bytes = (await componentBytes(
    new TextEncoder().encode(`(component
    (component (core module (func (export "f") nop)))
    (core module (memory 1) (data "x"))
    (import "g" (func)))`),
  ))!;
  const { parts } = dumpObject(bytes);
  assert.deepEqual(parts.map(({ kind, path }) => [kind, path.join(".")]), [
    ["component", ""],
    ["component", "0"],
    ["core module", "0.0"],
    ["core module", "0"],
  ]);
  for (const { sections } of parts) {
    for (const { offset, content } of sections) {
      assert.deepEqual(bytes.subarray(offset, offset + content.length), content);
    }
  }
  const [func] = parts[2].functions();
  assert.equal(bytes[func.code.offsets[0]], 1, "the nop");
  const text = lines(bytes, ALL);
  assert.match(text, /m\.wasm:\tfile format component 0x1000d\n/);
  assert.match(text, /m\.wasm: core module 0\.0 at 0x[0-9a-f]+:\tfile format wasm 0x1\n/);
  assert.match(text, / - \(import "g" \(func/);
});

Deno.test("a damaged file is shown up to its fault, wherever that is", () => {
  for (let length = 0; length < MODULE.length; length++) partialLines(MODULE.slice(0, length), ALL);
  for (let at = 0; at < MODULE.length; at++) {
    for (const flip of [1, 0x80, 0xff]) {
      const bytes = MODULE.slice();
      bytes[at] ^= flip;
      const { shown } = partialLines(bytes, ALL);
      assert.ok(shown.length > 0);
      objdumpData(dumpObject(bytes), ALL);
    }
  }
  const cut = MODULE.slice(0, 0x60);
  const { shown, fault } = partialLines(cut, ALL);
  assert.match(fault?.message ?? "", /length out of bounds/);
  assert.ok(shown.some((line) => line.includes("memory[0] 1 2")), shown.join("\n"));
  const bytes = MODULE.slice();
  bytes[0x5c] = 0xff;
  const damaged = partialLines(bytes, { ...NOTHING, disassemble: true });
  assert.match(damaged.fault?.message ?? "", /illegal opcode/);
  assert.ok(damaged.shown.some((line) => line.endsWith("| i32.load offset=1024")));
  assert.match(damaged.shown.at(-1) ?? "", /^ 00005c: illegal opcode/);
});

Deno.test("names of a file are escaped", () => {
  const named = binaryOf(new TextEncoder().encode(`(module (func (export "\\1b[2J\\u{202e}evil")))`));
  const text = lines(named, ALL);
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(text, /[\x00-\x08\x0b-\x1f\x7f\u202e]/);
});

Deno.test("the command prints what precedes a fault, and one error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "objdump-"));
  try {
    const file = join(folder, "m.wasm");
    writeFileSync(file, MODULE.slice(0, 0x30));
    const { code, out, err } = await waft(["objdump", file], folder, folder);
    assert.equal(code, 1);
    assert.match(out, /Memory start=0x0000002b/);
    assert.match(err, /^waft: .*m\.wasm: unexpected end.*\n$/);
    const json = await waft(["objdump", "--json", "-x", file], folder, folder);
    const { ok, data, diagnostics } = JSON.parse(json.out);
    assert.deepEqual([json.code, ok, diagnostics[0].code], [1, false, "objdump.rejected"]);
    assert.deepEqual(data.parts[0].sections[0].name, "Type");
    const help = await waft(["objdump", "--help"], folder, folder);
    assert.match(help.out, /-h, --headers/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
