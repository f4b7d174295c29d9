/**
 * The lines that only macOS runs, and the checks that reach them. In: the sources, the records of the systems
 * (systems.ts) and coverage of the checks in LCOV's format. Out: the lines that no check reaches.
 *
 * A line counts if it is in a file for macOS alone, if it names macOS, or if it reads a fact that differs between Linux
 * and macOS; the deeper indented lines below it count, too.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type PosixFacts, SYSTEMS } from "../../engine/host/systems/systems.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The folders and files of the product. */
const PRODUCT = ["engine", "component", "project", "registry", "cli.ts", "mod.ts", "single_entry.ts"];
/** Files of which Linux runs nothing. */
const WHOLE = /^engine\/host\/\w+\/(?:darwin_\w+|bsearch_entry|c_calls)\.ts$/;
/** Test doubles, tests and machine code as data. */
const OTHER = /_test\.ts$|\/testing\/|\/generated_\w+\.ts$/;
const NAMES = /darwin|macos|macho/i;

/** Facts that differ between Linux and macOS, except for names in messages. */
const FACTS = (Object.keys(SYSTEMS.linux) as (keyof PosixFacts)[]).filter((fact) =>
  !["name", "title"].includes(fact) && String(SYSTEMS.linux[fact]) !== String(SYSTEMS.darwin[fact])
);
const READS_FACT = new RegExp(
  `[sS]ystem\\??\\.(?:${FACTS.join("|")})\\b|\\b(?:${FACTS.join("|")})\\b[^=]*\\} = (?:this\\.)?system\\b`,
);

/** The source files of the product. */
function productFiles(): string[] {
  return PRODUCT.flatMap((path) =>
    path.endsWith(".ts") ? [path] : readdirSync(join(ROOT, path), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts")).map((name) => `${path}/${name}`)
  ).filter((path) => !OTHER.test(path)).sort();
}

/** The source's lines without comments, at their places. */
function codeLines(text: string): string[] {
  const bare = text.replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ""));
  return bare.split("\n").map((line) => line.replace(/(^|\s)\/\/.*$/, ""));
}

function indentation(line: string): number {
  return line.length - line.trimStart().length;
}

/** The numbers, from 1 on, of a file's lines that only macOS runs. */
function darwinLines(path: string): number[] {
  const lines = codeLines(readFileSync(join(ROOT, path), "utf8"));
  const found = new Set<number>();
  const matches = (line: string) => WHOLE.test(path) || NAMES.test(line) || READS_FACT.test(line);
  lines.forEach((line, at) => {
    if (line.trim() === "" || !matches(line)) return;
    found.add(at + 1);
    for (let next = at + 1; next < lines.length; next++) {
      if (lines[next].trim() === "") continue;
      if (indentation(lines[next]) <= indentation(line)) break;
      found.add(next + 1);
    }
  });
  return [...found].sort((a, b) => a - b);
}

/** The hits of each line, by the path of the file in this tree: a reading of LCOV's `SF` and `DA` records. */
function hits(lcov: string): Map<string, Map<number, number>> {
  const files = new Map<string, Map<number, number>>();
  let lines = new Map<number, number>();
  for (const record of lcov.split("\n")) {
    const [, kind, value = ""] = /^(SF|DA):(.*)$/.exec(record) ?? [];
    if (kind === "SF") {
      const path = value.startsWith(ROOT) ? value.slice(ROOT.length) : value;
      files.set(path, lines = files.get(path) ?? new Map<number, number>());
    } else if (kind === "DA") {
      const [line = 0, count = 0] = value.split(",").map(Number);
      lines.set(line, (lines.get(line) ?? 0) + count);
    }
  }
  return files;
}

/** Coverage of the checks: `files` ran on Linux's host with macOS's files, `host` is macOS's alone. */
interface Coverage {
  readonly files: string;
  readonly host: string;
}

/** A line of code that only macOS runs and no check reaches. */
export interface Unreached {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** The function at the file's top level around it, if any. */
  readonly inFunction: string;
}

/** The name of the function at the file's top level in which a line is; empty outside of functions. */
function functionOf(lines: readonly string[], line: number): string {
  const heads = lines.slice(0, line).filter((text) => /^(?:export )?(?:async )?(?:function|class) /.test(text));
  return /(?:function|class) (\w+)/.exec(heads.at(-1) ?? "")?.[1] ?? "";
}

/** The lines that only macOS runs, and those of them that no check reaches. */
export function unreachedLines({ files, host }: Coverage): { all: number; unreached: Unreached[] } {
  const [byFiles, byHost] = [hits(files), hits(host)];
  let all = 0;
  const unreached: Unreached[] = [];
  for (const path of productFiles()) {
    const text = readFileSync(join(ROOT, path), "utf8").split("\n");
    const reached = byHost.get(path), also = WHOLE.test(path) ? byFiles.get(path) : undefined;
    for (const line of darwinLines(path)) {
      all++;
      const counts = [reached?.get(line), also?.get(line)];
      // A file without coverage was not loaded by any check; a line without a count has no code.
      const isCode = (reached ?? also) === undefined || counts.some((count) => count !== undefined);
      if (isCode && !counts.some((count) => count !== undefined && count > 0)) {
        unreached.push({ path, line, text: text[line - 1].trim(), inFunction: functionOf(text, line) });
      }
    }
  }
  return { all, unreached };
}
