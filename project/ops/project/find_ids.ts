/**
 * Plugin ids for words. In: a word that is not an id, and a question. Out: the id that the question chose among the
 * results of the registry's search. Invariant: nothing is chosen without a question, not even an only result.
 */
import process from "node:process";
import { fail, ProjectError, quote } from "../../base/diagnostic.ts";
import { requirePluginId } from "../../definitions/plugin_id.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";

/** A plugin that was found. */
export interface FoundId {
  readonly name: string;
  readonly version: string;
  readonly description: string;
}

/** Asks which of the plugins found for `word` is meant; undefined for none. */
export type ChooseId = (word: string, found: readonly FoundId[]) => Promise<string | undefined>;

const SHOWN = 10;

/** The id for `word`. Throws for a word that is not chosen, with the results of the search. */
export async function idFor(context: OpsContext, word: string, choose: ChooseId | undefined): Promise<string> {
  const packages = await searchOf(context, word);
  const found = packages.slice(0, SHOWN);
  const chosen = found.length > 0 ? await choose?.(word, found) : undefined;
  if (chosen !== undefined) return chosen;
  // The rule that the word breaks.
  if (found.length === 0) requirePluginId(word);
  throw fail("usage.plugin-id", `${quote(word, 60)} is not a plugin id`, {
    help: `the registry has ${found.map(({ name }) => name).join(", ")}: waft add ${found[0].name}`,
  });
}

/** The results; none where the registry cannot be reached. */
async function searchOf(context: OpsContext, word: string): Promise<readonly FoundId[]> {
  try {
    const registry = new SourceSet(context, process.cwd()).registry(context.machine.registry);
    return (await registry.search(word)).packages;
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    return [];
  }
}
