/**
 * `waft wit fetch [DIR]`: fetches the packages of WIT that a directory refers to into its `deps`. Prints a line for
 * each one: its name, and the reference with its digest.
 */
import type { Command } from "commander";
import { writeText } from "@waft/engine/internal/host/process";
import { UsageError } from "../../base/failure.ts";
import { addOptions, type OptionRow } from "../option_rows.ts";

interface FetchFlags {
  readonly registry: readonly string[];
}

const ROWS: readonly OptionRow[] = [
  {
    flags: "--registry <namespace=host>",
    description: "The registry of a namespace (repeatable; default: wasi=wasi.dev, ba=bytecodealliance.org)",
    repeatable: true,
  },
];

/** A namespace of WIT, and a host with its port. */
const REGISTRY = /^([a-z][a-z0-9-]*)=([A-Za-z0-9.-]+(?::\d{1,5})?|\[[0-9a-f:.]+\](?::\d{1,5})?)$/;

/** Adds `wit` with its subcommand. */
export function addCommand(program: Command): void {
  const wit = program.command("wit").description("Work with packages of WIT.");
  const command = wit.command("fetch")
    .description("Fetch the packages that a directory of WIT refers to into its folder deps, from OCI registries.")
    .argument("[dir]", "Directory of a package in WIT", "wit");
  addOptions(command, ROWS).action(async (dir: string, { registry }: FetchFlags) => {
    const { fetchWit } = await import("../../ops/tools/fetch_wit.ts");
    const fetched = await fetchWit(dir, new Map(registry.map(parseRegistry)));
    for (const { id, reference } of fetched) writeText(1, `${id} ${reference}\n`);
  });
}

function parseRegistry(text: string): [string, string] {
  const [, namespace, host] = REGISTRY.exec(text) ?? [];
  if (namespace === undefined) throw new UsageError(`--registry takes NAMESPACE=HOST, not "${text}"`);
  return [namespace, host];
}
