/** runProgram for components: commands of WASI 0.2 and 0.3 with files and streams in memory, limits, mistakes. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { readFile } from "@waft/engine/internal/host/files";
import { compileComponent } from "../../component/mod.ts";
import { runProgram } from "../../component/program/mod.ts";
import type { Descriptor } from "../../component/wasi/filesystem.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const fixture = (name: string) => text(readFile(fileURLToPath(new URL(`fixtures/${name}`, import.meta.url))));

Deno.test("a command of WASI 0.3 runs with input and output in memory", async () => {
  const program = fixture("async_command.wat");
  const input = "0123456789".repeat(20_000);
  for (const stdin of [input, new Blob([input]).stream()]) {
    const { status, stdout, stderr } = await runProgram(program, { args: ["echo"], stdin });
    assert.deepEqual([status, stdout, stderr], [0, input, "done\n"]);
  }
});

/** A command of WASI 0.2 that writes standard input to standard output, and fails if there is none. */
const COPY = `(component
  (import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
  (alias export $error "error" (type $error))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (alias outer 1 $error (type $outer))
    (export "error" (type $io-error (eq $outer)))
    (export "input-stream" (type $input (sub resource)))
    (export "output-stream" (type $output (sub resource)))
    (type $stream-error' (variant (case "last-operation-failed" (own $io-error)) (case "closed")))
    (export "stream-error" (type $stream-error (eq $stream-error')))
    (export "[method]input-stream.blocking-read" (func (param "self" (borrow $input)) (param "len" u64)
      (result (result (list u8) (error $stream-error)))))
    (export "[method]output-stream.blocking-write-and-flush" (func (param "self" (borrow $output))
      (param "contents" (list u8)) (result (result (error $stream-error)))))))
  (alias export $streams "input-stream" (type $input))
  (alias export $streams "output-stream" (type $output))
  (import "wasi:cli/stdin@0.2.0" (instance $stdin
    (alias outer 1 $input (type $outer))
    (export "input-stream" (type $own (eq $outer)))
    (export "get-stdin" (func (result (own $own))))))
  (import "wasi:cli/stdout@0.2.0" (instance $stdout
    (alias outer 1 $output (type $outer))
    (export "output-stream" (type $own (eq $outer)))
    (export "get-stdout" (func (result (own $own))))))
  (core module $memory (memory (export "m") 4)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
  (core instance $memory (instantiate $memory))
  (core func $in (canon lower (func $stdin "get-stdin")))
  (core func $out (canon lower (func $stdout "get-stdout")))
  (core func $read (canon lower (func $streams "[method]input-stream.blocking-read")
    (memory (core memory $memory "m")) (realloc (core func $memory "realloc"))))
  (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
    (memory (core memory $memory "m"))))
  (core module $main
    (import "m" "m" (memory 4))
    (import "h" "in" (func $in (result i32)))
    (import "h" "out" (func $out (result i32)))
    (import "h" "read" (func $read (param i32 i64 i32)))
    (import "h" "write" (func $write (param i32 i32 i32 i32)))
    (func (export "run") (result i32) (local $from i32) (local $to i32) (local $failed i32)
      (local.set $from (call $in))
      (local.set $to (call $out))
      (local.set $failed (i32.const 1))
      (block $end (loop $more
        (call $read (local.get $from) (i64.const 4096) (i32.const 0))
        (br_if $end (i32.load8_u (i32.const 0)))
        (local.set $failed (i32.const 0))
        (call $write (local.get $to) (i32.load (i32.const 4)) (i32.load (i32.const 8)) (i32.const 16))
        (br $more)))
      (local.get $failed)))
  (core instance $main (instantiate $main (with "m" (instance $memory)) (with "h" (instance
    (export "in" (func $in)) (export "out" (func $out)) (export "read" (func $read)) (export "write" (func $write))))))
  (func $run (result (result)) (canon lift (core func $main "run")))
  (instance $command (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $command)))`;

Deno.test("a command of WASI 0.2 runs with input and output in memory; its failure is status 1", async () => {
  const input = "abc".repeat(10_000);
  const { status, stdout, stderr } = await runProgram(COPY, { stdin: input });
  assert.deepEqual([status, stdout, stderr], [0, input, ""]);
  assert.equal((await runProgram(COPY)).status, 1);
});

Deno.test("modules run, too; traps are part of the result, mistakes reject", async () => {
  const wat = `(module (func (export "_start") unreachable))`;
  for (const source of [wat, new TextEncoder().encode(wat)]) {
    const { status, trap } = await runProgram(source);
    assert.deepEqual([status, trap?.message], [134, "unreachable"]);
  }
  const spinning = `(component
    (core module $m (func (export "run") (result i32) (loop (br 0)) unreachable))
    (core instance $m (instantiate $m))
    (func $run (result (result)) (canon lift (core func $m "run")))
    (instance $command (export "run" (func $run)))
    (export "wasi:cli/run@0.2.0" (instance $command)))`;
  for (const limits of [{ deadline: 20 }, { fuel: 1000 }]) {
    const { status, trap } = await runProgram(spinning, { limits });
    assert.deepEqual([status, trap?.code], [134, "deadline" in limits ? "interrupted" : "out-of-fuel"]);
  }
  await assert.rejects(runProgram("(component)"), { message: /not a command: it does not export wasi:cli\/run/ });
  await assert.rejects(runProgram(`(component (import "env" (func)))`), { name: "LinkError" });
  await assert.rejects(runProgram(5 as unknown as string), { name: "TypeError" });
});

Deno.test("a component's directory is in memory, and its output is collected", () => {
  const wasi = new ComponentWasi({ files: { "d/a": "text" }, stdout: "collect", stderr: "collect" });
  const { getDirectories } = wasi.imports["wasi:filesystem/preopens"] as { getDirectories(): [Descriptor, string][] };
  const [[root, name]] = getDirectories();
  assert.equal(name, "/");
  const file = root.openAt({}, "d/a", {}, { read: true, write: true });
  assert.equal(text(file.read(10n, 0n)[0]), "text");
  file.write(new TextEncoder().encode("b"), 4n);
  assert.equal(text(wasi.files["d/a"]), "textb");
  assert.deepEqual([wasi.stdout.length, wasi.stderr.length], [0, 0]);
  const component = compileComponent(NewEngine(), "(component)");
  component.instantiate({}, wasi.imports).close();
  wasi.close();
});
