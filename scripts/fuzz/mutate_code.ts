/**
 * Mutates proven machine code, and counts the mutants that the verifier rejects: `deno task mutate --count N FILE…`.
 * Out: mutants and rejections by kind, and for the accepted ones the reason why they stay in their sandbox
 * (mutant_reasons.ts); status 1 if a mutant is accepted without a reason. --list prints the accepted ones.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { compileModule, stubContext } from "../../engine/compile/compile.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { ARM64_PATCHES, arm64MutantsOf } from "../../engine/verify/testing/arm64_mutants.ts";
import { reasonOf } from "../../engine/verify/testing/mutant_reasons.ts";
import { mutantsOf, X64_PATCHES } from "../../engine/verify/testing/mutants.ts";
import { functionVerifier } from "../../engine/verify/verify_code.ts";
import { machineModuleOf, machineOf } from "../../engine/compile/verify_module.ts";
import { readTaskLine } from "../task_options.ts";
import { CODE_SWITCHES, codeOptions } from "./code_options.ts";

const task = {
  name: "task mutate",
  about: "Mutates proven machine code, and counts the mutants that the verifier rejects.",
  operands: "FILE…",
  options: {
    count: { value: "N", least: 1, help: "most mutants of one kind in one module", default: "100" },
    ...CODE_SWITCHES,
    list: { help: "list the mutants that are missed, with their code" },
  },
} as const;
const { values: flags, operands } = readTaskLine(task);
const allMutants = flags.arm64 ? arm64MutantsOf : mutantsOf;
const patches = flags.arm64 ? ARM64_PATCHES : X64_PATCHES;
const options = await codeOptions(flags);
const { target } = options;

const made = new Map<string, number>();
const caught = new Map<string, number>();
/** Accepted mutants by kind and reason. */
const accepted = new Map<string, number>();
let unexplained = 0;

/** Applies mutants to the proven functions of a module. */
function mutateModule(file: string): void {
  const code = compileModule(NewEngine().parse(readFileSync(file)), options);
  const module = machineModuleOf({ ...code, bytes: code.bytes.slice() }, options, stubContext(code.valid, options));
  const machine = machineOf(target);
  const verifier = functionVerifier(machine, module);
  const proves = (index: number) => verifier.verify(index) === undefined;
  const { functionStart } = module.tables;
  const used = new Map<string, number>();
  for (let index = 0; index < functionStart.length; index++) {
    if (functionStart[index] < 0 || !proves(index)) continue;
    // Code that control never reaches may be anything.
    const mutants = [...allMutants(module, index)].filter(({ at }) => verifier.isReached(at));
    for (const mutant of mutants) {
      const count = (used.get(mutant.kind) ?? 0) + 1;
      if (count > flags.count) continue;
      used.set(mutant.kind, count);
      const { kind, at, bytes } = mutant;
      const original = module.bytes.slice(at, at + bytes.length);
      module.bytes.set(bytes, at);
      made.set(kind, (made.get(kind) ?? 0) + 1);
      const isCaught = !proves(index);
      module.bytes.set(original, at);
      if (isCaught) {
        caught.set(kind, (caught.get(kind) ?? 0) + 1);
        continue;
      }
      const reason = reasonOf(machine, patches, module, mutant, proves);
      if (reason === undefined) unexplained++;
      const row = `${kind}: ${reason ?? "not explained"}`;
      accepted.set(row, (accepted.get(row) ?? 0) + 1);
      if (flags.list) console.log(`${file}: function ${index} at ${at}: ${row}: ${changeOf(mutant, original)}`);
    }
  }
}

/** The instructions that the mutant changes, before and after. */
function changeOf({ bytes }: { readonly bytes: Uint8Array }, original: Uint8Array): string {
  const [before, after] = [original, bytes].map((code) => target.disassemble(code, 0, code.length).trim());
  return `${before} -> ${after.replaceAll("\n", ";")}`;
}

for (const file of operands) mutateModule(file);

let mutants = 0, catches = 0;
for (const [kind, count] of made) {
  mutants += count;
  catches += caught.get(kind) ?? 0;
  console.log(`${kind}: ${caught.get(kind) ?? 0} of ${count}`);
}
const equal = mutants - catches - unexplained;
for (const [row, count] of [...accepted].sort((x, y) => y[1] - x[1])) console.log(`accepted: ${count}  ${row}`);
console.log(
  `${catches} of ${mutants} mutants caught, ${equal} stay in their sandbox, ${unexplained} are not explained: ` +
    `${(100 * catches / (mutants - equal)).toFixed(2)} % of those that may leave it`,
);
process.exit(unexplained > 0 ? 1 : 0);
