/**
 * `waft man [--out DIR]`: generates the manual pages from the command definitions: `waft.1`, and one page per command.
 */
import { writeText } from "@waft/engine/internal/host/process";
import type { Command } from "commander";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../../base/failure.ts";
import { writeOutput } from "../../base/replace_file.ts";
import { VERSION } from "../../base/version_string.ts";
import { type CommandNode, commandTree } from "../command_tree.ts";
import type { CommandRow } from "../command_row.ts";

/** Adds `man`. */
export function addCommand(program: Command, rows: readonly CommandRow[] = []): void {
  program.command("man")
    .description("Print a manual page (try `waft man run | man -l -`), or write all of them to a directory.")
    .argument("[command]", "Command (default: waft itself)")
    .option("--out <dir>", "Write all pages to this directory, such as ~/.local/share/man/man1")
    .action(async (command: string | undefined, { out }: { readonly out?: string }) => {
      const nodes = await commandTree(rows);
      const pages = new Map([["waft", mainPage(nodes)], ...nodes.map((n) => [`waft-${n.name}`, page(n)] as const)]);
      if (out !== undefined) {
        mkdirSync(out, { recursive: true });
        for (const [name, text] of pages) writeOutput(join(out, `${name}.1`), text);
        return;
      }
      const text = pages.get(command === undefined ? "waft" : `waft-${command}`);
      if (text === undefined) throw new UsageError(`unknown command "${command}"`);
      writeText(1, text);
    });
}

/** Text that roff takes as it is. */
function roff(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^([.'])/gm, "\\&$1");
}

function head(name: string, summary: string): string[] {
  return [
    `.TH "${name.toUpperCase()}" "1" "" "waft ${VERSION}" "waft"`,
    ".SH NAME",
    `${roff(name)} \\- ${roff(summary.replace(/\.$/, ""))}`,
  ];
}

function mainPage(nodes: readonly CommandNode[]): string {
  return [
    ...head("waft", "compile and run WebAssembly, and manage projects and plugins"),
    ".SH SYNOPSIS",
    ".B waft",
    roff("<command> [options] [arguments]"),
    ".br",
    ".B waft",
    roff("<file> [arguments]"),
    ".SH COMMANDS",
    ...nodes.flatMap(({ name, summary }) => [".TP", `.BR waft\\-${roff(name)} (1)`, roff(summary)]),
    "",
  ].join("\n");
}

function page(node: CommandNode): string {
  const lines = [...head(`waft-${node.name}`, node.summary), ".SH SYNOPSIS", ...synopsis(node, `waft ${node.name}`)];
  lines.push(...details(node));
  for (const child of node.children) {
    lines.push(`.SH "${roff(`${node.name} ${child.name}`).toUpperCase()}"`, roff(child.summary), ".PP");
    lines.push(...synopsis(child, `waft ${node.name} ${child.name}`), ...details(child, ".SS"));
  }
  return [...lines, ".SH SEE ALSO", ".BR waft (1)", ""].join("\n");
}

function synopsis({ args }: CommandNode, words: string): string[] {
  return [`.B ${roff(words)}`, roff(["[options]", ...args.map(({ term }) => term)].join(" "))];
}

function details({ args, options }: CommandNode, section = ".SH"): string[] {
  return [
    ...(args.length === 0 ? [] : [`${section} ARGUMENTS`]),
    ...args.flatMap(({ term, description }) => [".TP", `.I ${roff(term)}`, roff(description)]),
    `${section} OPTIONS`,
    ...options.flatMap(({ words, value, description }) => [
      ".TP",
      `.B ${roff(words.join(", "))}${value === undefined ? "" : ` ${roff(value)}`}`,
      roff(description),
    ]),
  ];
}
