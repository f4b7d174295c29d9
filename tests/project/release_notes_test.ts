/**
 * Release notes: sections of changelogs, and the notes in the files of a package.
 */
import assert from "node:assert/strict";
import { changelogSection, MAX_NOTES_BYTES, NOTES_FILE, notesOf } from "../../project/packages/release_notes.ts";

const CHANGELOG = `# Changelog

## [Unreleased]

## [1.10.0] - 2026-02-01

### Added

- ten

\`\`\`
## 1.1.0
\`\`\`

## v1.1.0 (2026-01-01)

- one\r
- two

## 1.0.0

# 0.9.0
- old
`;

Deno.test("the section of a version ends at the next heading of its level", () => {
  assert.equal(changelogSection(CHANGELOG, "1.10.0"), "### Added\n\n- ten\n\n```\n## 1.1.0\n```");
  assert.equal(changelogSection(CHANGELOG, "1.1.0"), "- one\n- two");
  assert.equal(changelogSection(CHANGELOG, "0.9.0"), "- old");
  assert.equal(changelogSection("## 1.2.0-rc.1: trial\nx", "1.2.0-rc.1"), "x");
  for (const absent of ["1.0.0", "1.1", "2.0.0", ".*"]) assert.equal(changelogSection(CHANGELOG, absent), undefined);
});

Deno.test("notes that no registry accepts count as none", () => {
  const notes = (bytes: Uint8Array) => notesOf(new Map([[NOTES_FILE, bytes]]));
  assert.equal(notes(new TextEncoder().encode("\n hi \n")), "hi");
  assert.equal(notesOf(new Map()), undefined);
  for (const bytes of [new Uint8Array(), Uint8Array.of(0xff), Uint8Array.of(0), new Uint8Array(MAX_NOTES_BYTES + 1)]) {
    assert.equal(notes(bytes), undefined);
  }
});
