/**
 * Release notes of packages. In: the files of a package, or a changelog. Out: the text of a version's notes; undefined
 * if there is none. Publishing puts the notes into the archive, so that they are signed with it. Invariant: notes have
 * at most MAX_NOTES_BYTES bytes; they are text of an author, which whoever shows it must escape.
 */

/** The file of an archive with the notes of its version. */
export const NOTES_FILE = "register/notes.md";
/** Bytes of the notes of one version. */
export const MAX_NOTES_BYTES: number = 64 << 10;
/** The file of a package's directory that is searched for the notes of its version. */
export const CHANGELOG_FILE = "CHANGELOG.md";

/** The reason why a file cannot be notes; undefined for good ones. */
export function notesFault(bytes: Uint8Array): string | undefined {
  if (bytes.length > MAX_NOTES_BYTES) return `has ${bytes.length} bytes; at most ${MAX_NOTES_BYTES} are accepted`;
  const text = utf8(bytes);
  if (text === undefined) return "is not UTF-8";
  if (text.includes("\0")) return "holds a NUL character";
  return undefined;
}

/** The notes in the files of a package; undefined without notes, and for ones that no registry accepts. */
export function notesOf(files: ReadonlyMap<string, Uint8Array>): string | undefined {
  const bytes = files.get(NOTES_FILE);
  if (bytes === undefined || notesFault(bytes) !== undefined) return undefined;
  const text = utf8(bytes)!.trim();
  return text === "" ? undefined : text;
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** A heading whose first word is a version: `## [1.2.0] - 2026-01-31`, `## v1.2.0`. */
const HEADING = /^(#{1,6})\s+\[?v?([0-9][^\s\]():,]*)/;

/** The section of a changelog under the heading that names `version`, without the heading; undefined without one. */
export function changelogSection(changelog: string, version: string): string | undefined {
  const lines = changelog.split(/\r?\n/);
  const section: string[] = [];
  let level = 0;
  let isCode = false;
  for (const line of lines) {
    if (/^ {0,3}(?:```|~~~)/.test(line)) isCode = !isCode;
    const depth = isCode ? 0 : /^(#{1,6})\s/.exec(line)?.[1].length ?? 0;
    if (level > 0 && depth > 0 && depth <= level) break;
    if (level > 0) section.push(line);
    else if (depth > 0 && HEADING.exec(line)?.[2] === version) level = depth;
  }
  const text = section.join("\n").trim();
  return text === "" ? undefined : text;
}
