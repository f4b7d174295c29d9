/**
 * Worlds by name. In: the worlds of a file, and a name or none. Out: the world of that name, or all. Throws UsageError
 * that lists the worlds.
 */
import type { WitWorld } from "@waft/component/internal/wit/document";
import { oneLine, UsageError } from "../../base/failure.ts";

/** The worlds called `name`, or all of the file at `path`. */
export function chosenWorlds(
  worlds: readonly WitWorld[],
  path: string,
  name: string | undefined,
): readonly WitWorld[] {
  const found = name === undefined ? worlds : worlds.filter((world) => world.name === name);
  if (found.length > 0) return found;
  if (worlds.length === 0) throw new UsageError(`${oneLine(path)} contains no world`);
  const names = worlds.map((world) => world.name).join(", ");
  throw new UsageError(`${oneLine(path)} has no world ${oneLine(name ?? "")}; it has ${oneLine(names)}`);
}
