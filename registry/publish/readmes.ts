/**
 * Renders READMEs that have no HTML of the current renderer, one after the other, in the check process.
 *
 * In: a store and the pool. Out: every release has HTML. Runs in the background after start; until a README's turn
 * comes, pages show it as plain text. A README that cannot be rendered within the bounds stays plain text.
 */
import type { Settings } from "../settings.ts";
import type { Database } from "../store/database.ts";
import { keepReadme, staleReadme } from "../store/releases.ts";
import { Problem } from "../problem.ts";
import type { CheckPool } from "./check_pool.ts";

/** Renders all stale READMEs; their number. */
export async function renderStaleReadmes(database: Database, pool: CheckPool, settings: Settings): Promise<number> {
  for (let count = 0;; count++) {
    const stale = await staleReadme(database);
    if (stale === undefined) return count;
    await keepReadme(database, stale, await render(pool, stale.readme, settings.readmeHtmlBytes));
  }
}

async function render(pool: CheckPool, markdown: string, readmeHtmlBytes: number): Promise<string> {
  if (markdown === "") return "";
  try {
    return await pool.render(markdown, readmeHtmlBytes);
  } catch (error) {
    if (error instanceof Problem && error.code === "publish.check") return "";
    throw error;
  }
}
