/**
 * WASI's WIT in the component model's suite. In: a release and a proposal. Out: the proposal's package with those that
 * it depends on.
 */
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadWit } from "../../component/wit/load.ts";
import type { ResolveOptions, WitDocument } from "../../component/wit/resolve.ts";
import { suiteFolder, suiteNamed } from "./suites.ts";

const WASI = join(suiteFolder(suiteNamed("components")), "wit");

/** The releases that are present. */
export const WASI_RELEASES: readonly string[] = existsSync(WASI) ? readdirSync(WASI).sort() : [];

/** The proposals of a release. */
export function proposalsOf(release: string): string[] {
  return readdirSync(join(WASI, release, "proposals")).sort();
}

/** Reads the package of a proposal, with further files in WIT by name. */
export function loadProposal(
  release: string,
  proposal: string,
  options: ResolveOptions = {},
  more: Readonly<Record<string, string>> = {},
): WitDocument {
  const folder = mkdtempSync(join(tmpdir(), "wit-"));
  try {
    const proposals = join(WASI, release, "proposals");
    cpSync(join(proposals, proposal, "wit"), folder, { recursive: true });
    for (const other of proposalsOf(release)) {
      if (other !== proposal) cpSync(join(proposals, other, "wit"), join(folder, "deps", other), { recursive: true });
    }
    for (const [name, text] of Object.entries(more)) writeFileSync(join(folder, name), text);
    return loadWit(folder, options);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
