/**
 * Runs a WASI program with standard input and output in memory, and prints its captured output.
 *
 *     deno run --allow-ffi --allow-read examples/wasi/capture.ts
 */
import { readFileSync } from "node:fs";
import { runProgram } from "@waft/engine/wasi/program";

const program = readFileSync(new URL("words.wasm", import.meta.url));
const { status, stdout } = await runProgram(program, { stdin: "to be or not to be\n", limits: { deadline: 1000 } });
console.log(`status ${status}\n${stdout}`);
