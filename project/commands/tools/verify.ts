/**
 * `waft verify FILE`: proves that the machine code of a file stays in its sandbox. In: a module, component or artifact.
 * Out: a line for each compiled module, and one for each function that is not proven; status 1 if there are any. With
 * `--json`, one document in the envelope of output_schemas.ts.
 */
import type { Command } from "commander";
import process from "node:process";
import { displayName } from "@waft/engine/internal/base/guest_stack";
import { writeText } from "@waft/engine/internal/host/process";
import { type Diagnostic, EXIT } from "../../base/diagnostic.ts";
import { oneLine } from "../../base/failure.ts";
import { machineOf } from "../../ops/build/machine_name.ts";
import type { FileVerification } from "../../ops/tools/verify_file.ts";
import { ENGINE_OPTION_ROWS } from "../settings/engine_options.ts";
import { withEnvelope } from "./file_envelope.ts";
import { addOptions } from "../option_rows.ts";
import { type CompilingFlags, compilingOptions } from "../settings/project_defaults.ts";
import { PROJECT_OPTION_ROWS } from "../run/run_flags.ts";

type VerifyFlags = CompilingFlags & { readonly json?: boolean; readonly target?: string };

/** Adds `verify`. */
export function addCommand(program: Command): void {
  const command = program.command("verify")
    .description(
      "Prove that the machine code of a module, component or artifact stays in its sandbox, function by function.",
    )
    .argument("<file>", "Module or component in either form, or artifact; - is standard input")
    .option("--target <os/arch>", "Compile for this machine, such as linux/arm64 (default: this one)")
    .option("--json", "Print the result as JSON");
  addOptions(command, [...PROJECT_OPTION_ROWS, ...ENGINE_OPTION_ROWS]).action(
    async (file: string, flags: VerifyFlags) => {
      const { verifyFile } = await import("../../ops/tools/verify_file.ts");
      const architecture = flags.target === undefined ? undefined : machineOf("--target", flags.target).arch;
      const options = await compilingOptions(flags);
      await withEnvelope(
        "verify",
        file,
        flags.json === true,
        () => verifyFile(file, options, architecture),
        {
          data: verificationData,
          print: (result) => writeText(1, verificationText(file, result)),
          diagnostics: (result) => findings(file, result),
        },
      );
    },
  );
}

/** Sets the status as well. */
function findings(file: string, { codes }: FileVerification): Diagnostic[] {
  const list = codes.flatMap((code) =>
    code.unproven.map((unproven): Diagnostic => ({
      code: "verify.unproven",
      severity: "error",
      message: `${partName(code)}: ${findingText(unproven)}`,
      file,
    }))
  );
  if (list.length > 0) process.exitCode = EXIT.failure;
  return list;
}

type Part = FileVerification["codes"][number];

function partName({ module, tier, explicitBounds }: Part): string {
  const parts = [module === undefined ? "" : `module ${module}`, tier, explicitBounds ? "explicit bounds" : ""];
  return parts.filter((part) => part !== "").join(", ");
}

function findingText({ index, name, offset, reason }: Part["unproven"][number]): string {
  if (index < 0) return reason;
  const label = name === undefined ? "" : ` ($${displayName(name)})`;
  return oneLine(`function ${index}${label} at offset ${offset}: ${reason}`);
}

/** Printed after the functions that are not proven, if other code of them is. */
function provableText(recompiled = 0): string {
  const these = recompiled === 1 ? "this function" : `these ${recompiled} functions`;
  return `  An engine with the option verify: "code" compiles ${these} once more, to proven code with more checks.\n`;
}

function verificationText(file: string, { codes }: FileVerification): string {
  return codes.map((code) => {
    const { functions, isProvable, recompiled, unproven } = code;
    const proven = unproven.length === 0 ? `${functions}` : `${functions - unproven.length} of ${functions}`;
    const head = `${oneLine(file)}: ${partName(code)}: ${proven} ${
      functions === 1 ? "function" : "functions"
    } proven\n`;
    const list = unproven.map((finding) => `  ${findingText(finding)}\n`).join("");
    return head + list + (unproven.length > 0 && isProvable === true ? provableText(recompiled) : "");
  }).join("");
}

function verificationData({ kind, codes }: FileVerification): object {
  return {
    kind,
    codes: codes.map(({ module, tier, explicitBounds, functions, bytes, isProvable, recompiled, unproven }) => ({
      ...(module === undefined ? {} : { module }),
      tier,
      bounds: explicitBounds ? "explicit" : "guard",
      functions,
      bytes,
      ...(isProvable === undefined ? {} : { provable: isProvable, recompiled }),
      unproven: unproven.map(({ index, name, offset, reason }) => ({
        index,
        ...(name === undefined ? {} : { name }),
        offset,
        reason,
      })),
    })),
  };
}
