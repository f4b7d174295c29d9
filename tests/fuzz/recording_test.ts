/**
 * Recordings of random programs, replayed in both tiers; `deno task fuzz:replay` runs more. RECORDING_SEEDS=FROM-TO
 * selects other seeds.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { replayPrograms } from "./recording.ts";

const [FROM, TO] = (process.env["RECORDING_SEEDS"] ?? "0-25").split("-").map(Number) as [number, number];

Deno.test("random programs repeat from their recordings", () => {
  const { recordings, calls, hostCalls, failed } = replayPrograms(FROM, TO - FROM);
  assert.ok(recordings >= (TO - FROM) / 2 && calls > TO - FROM && hostCalls > 0 && failed > 0);
});
