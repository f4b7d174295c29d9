/**
 * Pages written by the program: commands from the command tree, settings and the API from their tables, speed from
 * figures.
 *
 * In: the running code. Out: Markdown, so these pages are searched, indexed and shipped like the others.
 */
import { Command } from "commander";
import { COMMANDS } from "../../project/commands/table.ts";
import { FEATURES, OPTIMIZATIONS, RUNTIME_KEYS, type SettingKey } from "../../project/manifest/setting_names.ts";
import { addRegistryCommand } from "../command_tree.ts";
import { API_ROUTES } from "../api_routes.ts";
import { openapiPage } from "../openapi.ts";
import { abiPage } from "./abi_page.ts";
import { OUTPUT_SCHEMAS } from "../../project/output_schemas.ts";
import { performancePage } from "./performance_page.ts";
import type { StoredDocument } from "../store/keys.ts";

/** All generated pages. */
export async function generatedPages(): Promise<StoredDocument[]> {
  return [
    { path: "commands.md", source: await commandPage() },
    { path: "settings.md", source: settingsPage() },
    { path: "registry-api.md", source: openapiPage(API_ROUTES) },
    { path: "performance.md", source: performancePage() },
    { path: "plugin-abi.md", source: abiPage() },
  ];
}

/** Every key of `settings`. */
function settingsPage(): string {
  const table = (keys: readonly SettingKey[]): string[] => [
    "| Key | Default | Meaning |",
    "| --- | --- | --- |",
    ...keys.map((k) => `| \`${k.name}\` | ${k.default ? "on" : "off"} | ${cell(sentence(k.meaning))} |`),
    "",
  ];
  return [
    "# Settings",
    "",
    "Every key of a manifest's `settings`, generated from the program's own tables.",
    "",
    "## Features",
    "",
    "A module that needs a disabled feature is rejected.",
    "",
    ...table(FEATURES),
    "## Optimizations",
    "",
    "Optimizations change speed and size, never results.",
    "",
    ...table(OPTIMIZATIONS),
    "## Runtime",
    "",
    "| Key | Default | Meaning |",
    "| --- | --- | --- |",
    ...RUNTIME_KEYS.map((k) => `| \`${k.name}\` | \`${cell(k.default)}\` | ${cell(sentence(k.meaning))} |`),
    "",
  ].join("\n");
}

/** The command reference. */
async function commandPage(): Promise<string> {
  const program = new Command("waft").enablePositionalOptions();
  for (const row of COMMANDS) (await row.load()).addCommand(program);
  addRegistryCommand(program, () => Promise.reject(new Error("the command reference runs no command")));
  const lines = [
    "# Commands",
    "",
    "Every command of `waft` with its arguments and options, generated from the command tree. `waft help <command>` " +
    "prints the same.",
    "",
    "Exit codes: 0 success, 1 other failure, 2 usage, 3 project invalid or stale, 4 review needed, 5 integrity failure, " +
    "6 not found or not resolvable, 7 network, 8 authentication, 9 incompatible, 10 changes pending (`plugin plan` only). " +
    "`waft run` ends with the guest's own code, or 134 after a trap.",
    "",
    "With `--json` the commands of projects print one document: `schemaVersion`, `command`, `ok`, `data`, `diagnostics`. " +
    `Their schemas: ${
      Object.keys(OUTPUT_SCHEMAS).map((c) => `[${c}](/schemas/v1/output/${c}.schema.json)`).join(", ")
    }.`,
    "",
  ];
  for (const command of program.commands) describe(command, "waft", lines);
  return lines.join("\n");
}

function describe(command: Command, parent: string, lines: string[]): void {
  const name = `${parent} ${command.name()}`;
  lines.push(`${parent === "waft" ? "##" : "###"} ${name}`, "", `${sentence(command.description())}`, "");
  lines.push("```sh", `${name} ${command.usage()}`.trim(), "```", "");
  const help = command.createHelp();
  const rows = [
    ...help.visibleArguments(command).map((a) => [a.name(), a.description] as const),
    ...help.visibleOptions(command).filter((o) => !o.flags.includes("--help")).map((o) => {
      const fallback = o.defaultValue === undefined || o.defaultValue === false || Array.isArray(o.defaultValue)
        ? ""
        : ` Default: ${o.defaultValue}.`;
      return [o.flags, `${sentence(o.description)}${fallback}`] as const;
    }),
  ];
  if (rows.length > 0) {
    lines.push("| Argument or option | Meaning |", "| --- | --- |");
    for (const [term, about] of rows) lines.push(`| \`${cell(term)}\` | ${cell(about)} |`);
    lines.push("");
  }
  for (const child of command.commands) describe(child, name, lines);
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return trimmed === "" || /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replace(/\s+/g, " ");
}
