/**
 * Edits `waft.json` in place and changes only the affected lines.
 *
 * In: the text of a valid manifest. Out: the text with one requirement set or removed; indentation, line ends,
 * order and the final newline are preserved. A new key is inserted in code-unit order if the present keys are in that
 * order, else at the end.
 */
import { applyEdits, type FormattingOptions, modify, parse } from "jsonc-parser";

/** The text with `plugins[id]` set to `range`. */
export function setRequirement(text: string, id: string, range: string): string {
  const known = (parse(text) as { readonly plugins?: object } | undefined)?.plugins !== undefined;
  const edits = modify(text, ["plugins", id], range, {
    formattingOptions: formattingOf(text),
    // Without `plugins` that key itself is inserted: first, or after $schema.
    getInsertionIndex: (keys) => known ? insertionIndex(keys, id) : keys[0] === "$schema" ? 1 : 0,
  });
  return applyEdits(text, edits);
}

/** The text without `plugins[id]`. */
export function removeRequirement(text: string, id: string): string {
  const { plugins } = parse(text) as { readonly plugins?: object };
  // Removing the last requirement leaves an empty object, not an empty line.
  const last = plugins !== undefined && Object.keys(plugins).every((key) => key === id);
  if (last) return applyEdits(text, modify(text, ["plugins"], {}, { formattingOptions: formattingOf(text) }));
  return applyEdits(text, modify(text, ["plugins", id], undefined, { formattingOptions: formattingOf(text) }));
}

/** The text with several requirements set (a range) or removed (undefined), in code-unit order of the ids. */
export function editRequirements(text: string, changes: ReadonlyMap<string, string | undefined>): string {
  let result = text;
  for (const id of [...changes.keys()].sort()) {
    const range = changes.get(id);
    result = range === undefined ? removeRequirement(result, id) : setRequirement(result, id, range);
  }
  return result;
}

function insertionIndex(keys: readonly string[], id: string): number {
  const others = keys.filter((k) => k !== id);
  const sorted = others.every((k, i) => i === 0 || others[i - 1] < k);
  if (!sorted) return others.length;
  const at = others.findIndex((k) => k > id);
  return at < 0 ? others.length : at;
}

/** The formatting that the text already has. */
function formattingOf(text: string): FormattingOptions {
  const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? "  ";
  const tabs = indent.startsWith("\t");
  return {
    insertSpaces: !tabs,
    tabSize: tabs ? 1 : indent.length,
    eol: text.includes("\r\n") ? "\r\n" : "\n",
    insertFinalNewline: false,
  };
}

/** The text with a key of a group of `settings` set, or removed (undefined), with groups that become empty. */
export function editSetting(text: string, group: string, name: string, value: boolean | string | undefined): string {
  const style = { formattingOptions: formattingOf(text) };
  const { settings = {} } = parse(text) as { readonly settings?: Readonly<Record<string, object>> };
  const known = Object.hasOwn(settings, group) ? settings[group] : {};
  if (value !== undefined) return applyEdits(text, modify(text, ["settings", group, name], value, style));
  if (!Object.hasOwn(known, name)) return text;
  const path = Object.keys(known).length > 1
    ? ["settings", group, name]
    : Object.keys(settings).length > 1
    ? ["settings", group]
    : ["settings"];
  return applyEdits(text, modify(text, path, undefined, style));
}
