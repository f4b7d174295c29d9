/**
 * `waft cache [dir|list|clear]`: inspects and clears the cache of compiled modules that `waft run` uses. In: the
 * cache directory from paths.ts. Out: the directory's name, its entries with their source files, or the amount
 * removed. Loads no part of the compiler.
 */
import { CodeCache } from "@waft/engine/internal/cache";
import type { Command } from "commander";
import process from "node:process";
import { escapeHostile } from "../../base/diagnostic.ts";
import { FileFailure } from "../../base/failure.ts";
import { codeCacheOptions } from "../../base/paths.ts";

/** Adds `cache`. */
export function addCommand(program: Command): void {
  const command = program.command("cache").description("Manage the cache of compiled modules that `waft run` uses.");
  command.command("dir").description("Print the cache's folder").action(() => print([codeCacheOptions().directory]));
  command.command("list", { isDefault: true }).description("List cached modules, most recently used first")
    .action(() => print(listing(new CodeCache(codeCacheOptions()))));
  command.command("clear").description("Remove all compiled modules").action(() => {
    const cache = new CodeCache(codeCacheOptions());
    const bytes = total(cache);
    const { removed, remaining } = cache.clear();
    print([`removed ${modules(removed)}, ${sizeText(bytes - total(cache))}`]);
    if (remaining > 0) throw cannotRemove(remaining, cache.directory);
  });
}

function print(lines: string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(""));
}

function modules(count: number): string {
  return `${count} compiled module${count === 1 ? "" : "s"}`;
}

function cannotRemove(count: number, directory: string): Error {
  const files = count === 1 ? "1 file" : `${count} files`;
  return new FileFailure(directory, `cannot remove ${files}: check that they are yours and not in use, then try again`);
}

function total(cache: CodeCache): number {
  return cache.entries().reduce((sum, { bytes }) => sum + bytes, 0);
}

function listing(cache: CodeCache): string[] {
  const entries = cache.entries();
  return [
    ...entries.map(({ name, bytes, usedAt, label }) =>
      [
        name.slice(0, 16),
        sizeText(bytes).padStart(9),
        `${new Date(usedAt).toISOString().slice(0, 19)}Z`,
        escapeHostile(label),
      ].join("  ").trimEnd()
    ),
    `${modules(entries.length)}, ${sizeText(total(cache))} of at most ${
      sizeText(cache.maxBytes)
    } in ${cache.directory}`,
  ];
}

function sizeText(bytes: number): string {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
