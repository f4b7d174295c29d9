/**
 * Verifies the machine code of modules: `deno task verify [FILE…]`. In: WebAssembly files, text files, `.wast` scripts,
 * and folders of them. Out: the functions that are not proven, by reason, and totals; status 1 if there are any.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { type CompiledCode, compileModule, stubContext } from "../../engine/compile/compile.ts";
import { compileVerified } from "../../engine/compile/compile_proven.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { parseScript, ScriptModule } from "../../engine/text/script.ts";
import { type Finding, verifyCompiled } from "../../engine/compile/verify_module.ts";
import type { Module } from "../../engine/wasm/module.ts";
import { readTaskLine } from "../task_options.ts";
import { CODE_SWITCHES, codeOptions } from "./code_options.ts";

const task = {
  name: "task verify",
  about: "Verifies the machine code of modules, scripts, and folders of them.",
  operands: "FILE…",
  options: {
    ...CODE_SWITCHES,
    again: { help: 'compile functions that are not proven once more, as engines with verify: "code" do' },
    list: { help: "list every function that is not proven" },
    listing: { value: "N", least: 1, help: "print the code around the place in the N-th function that is not proven" },
  },
} as const;
const { values: flags, operands } = readTaskLine(task);
const options = await codeOptions(flags);
const { target } = options;

const total = { modules: 0, functions: 0, unproven: 0, recompiled: 0, bytes: 0, milliseconds: 0 };
const byReason = new Map<string, number>();
/** Findings until the one whose code is printed; 0 for none. */
let left = flags.listing ?? 0;

function files(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const inside = readdirSync(path).sort().map((name) => join(path, name));
  return inside.filter((name) => /\.(wasm|wat|wast)$/.test(name) || statSync(name).isDirectory()).flatMap(files);
}

function verifyModule(name: string, module: Module): void {
  let code;
  try {
    code = compileModule(module, options);
  } catch {
    return; // an intentionally invalid module, or a feature without machine code
  }
  const start = performance.now();
  const findings = verifyCompiled(code, options, stubContext(code.valid, options));
  total.milliseconds += performance.now() - start;
  total.modules++;
  total.functions += code.tables.functionStart.length;
  total.bytes += code.bytes.length;
  if (findings.length > 0 && flags.again) return verifyAgain(name, module);
  for (const finding of findings) report(name, finding, code);
}

/** Verifies the code that an engine would place. */
function verifyAgain(name: string, module: Module): void {
  const { last: { code, recompiled, unproven } } = compileVerified(module, options);
  total.recompiled += recompiled;
  for (const finding of unproven) report(name, finding, code);
}

function report(name: string, { index, at, reason }: Finding, { bytes, tables }: CompiledCode): void {
  const { functionStart: starts, functionEnd: ends } = tables;
  total.unproven++;
  byReason.set(reason, (byReason.get(reason) ?? 0) + 1);
  if (flags.list) console.log(`${name}: function ${index} at ${at - (starts[index] ?? 0)}: ${reason}`);
  if (index < 0 || --left !== 0) return;
  console.log(target.disassemble(bytes, starts[index], at).split("\n").slice(-60).join("\n"));
  console.log(`>>>> ${reason}`);
  console.log(target.disassemble(bytes, at, ends[index]).split("\n").slice(0, 12).join("\n"));
}

function modulesOf(file: string): Module[] {
  const text = readFileSync(file);
  if (!file.endsWith(".wast")) return [NewEngine().parse(text)];
  const modules: Module[] = [];
  for (const command of parseScript(text)) {
    if (!("module" in command) || !(command.module instanceof ScriptModule)) continue;
    try {
      modules.push(NewEngine().parse(command.module.encode()));
    } catch {
      continue; // an intentionally malformed module
    }
  }
  return modules;
}

for (const file of operands.flatMap(files)) for (const module of modulesOf(file)) verifyModule(file, module);

const speed = total.bytes / 1000 / total.milliseconds;
console.log(
  `${total.modules} modules, ${total.functions} functions, ${total.bytes} bytes, ${speed.toFixed(1)} MB/s: ` +
    `${total.unproven} functions not proven${flags.again ? `, ${total.recompiled} compiled once more` : ""}`,
);
for (const [reason, count] of [...byReason].sort((x, y) => y[1] - x[1])) console.log(`${count}  ${reason}`);
process.exit(total.unproven > 0 ? 1 : 0);
