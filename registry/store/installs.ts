/**
 * Install counts.
 *
 * In: a package, a version, and the network of the report. One report counts for each (package, version, day, network);
 * the network is stored only as a hash with a salt that is deleted after its day. A report is counted and acknowledged
 * in one transaction, so none is lost or doubled when a process dies.
 */
import { createHash, randomBytes } from "node:crypto";
import { type Database, first, numberOf, type Queries, textOf } from "./database.ts";

/** Milliseconds of a day. */
export const DAY = 86_400_000;

/** Numbers shown for a package. */
interface InstallCounts {
  readonly total: number;
  readonly week: number;
}

/** Counts a report; undefined when there is no such release. Without a version it counts for the newest release. */
export function countInstall(
  database: Database,
  report: { readonly package: string; readonly version?: string; readonly network: string; readonly at: number },
): Promise<InstallCounts | undefined> {
  const day = Math.floor(report.at / DAY);
  return database.write(async (queries) => {
    const known = await first(queries, "SELECT latest FROM packages WHERE id = ?", report.package);
    const version = report.version ?? (known === undefined ? undefined : known.latest);
    if (typeof version !== "string") return undefined;
    const release = await first(
      queries,
      "SELECT version FROM releases WHERE package = ? AND version = ?",
      report.package,
      version,
    );
    if (release === undefined) return undefined;
    const salt = await saltOf(queries, day);
    const mark = createHash("sha256").update([salt, report.package, version, report.network].join("\n")).digest("hex");
    const isNew = await queries.run(
      "INSERT INTO install_marks (day, mark) VALUES (?, ?) ON CONFLICT DO NOTHING",
      day,
      mark.slice(0, 32),
    );
    if (isNew === 1) {
      await queries.run(
        `INSERT INTO installs_daily (package, version, day, count) VALUES (?, ?, ?, 1)
         ON CONFLICT (package, day, version) DO UPDATE SET count = installs_daily.count + 1`,
        report.package,
        version,
        day,
      );
      await queries.run(
        "UPDATE packages SET installs_total = installs_total + 1, installs_week = installs_week + 1 WHERE id = ?",
        report.package,
      );
    }
    const row = (await first(
      queries,
      "SELECT installs_total, installs_week FROM packages WHERE id = ?",
      report.package,
    ))!;
    return { total: numberOf(row, "installs_total"), week: numberOf(row, "installs_week") };
  });
}

/** The salt of a day, the same for all processes. */
async function saltOf(queries: Queries, day: number): Promise<string> {
  const known = await first(queries, "SELECT salt FROM install_salts WHERE day = ?", day);
  if (known !== undefined) return textOf(known, "salt");
  await queries.run(
    "INSERT INTO install_salts (day, salt) VALUES (?, ?) ON CONFLICT DO NOTHING",
    day,
    randomBytes(16).toString("hex"),
  );
  return textOf((await first(queries, "SELECT salt FROM install_salts WHERE day = ?", day))!, "salt");
}

/** Installs of a package for each of the last `days` days, oldest first. */
export async function installSeries(
  queries: Queries,
  id: string,
  days: number,
  at: number,
): Promise<{ date: string; count: number }[]> {
  const today = Math.floor(at / DAY);
  const rows = await queries.all(
    "SELECT day, CAST(sum(count) AS BIGINT) AS n FROM installs_daily WHERE package = ? AND day > ? GROUP BY day",
    id,
    today - days,
  );
  const byDay = new Map(rows.map((row) => [numberOf(row, "day"), numberOf(row, "n")]));
  return Array.from({ length: days }, (_, i) => {
    const day = today - days + 1 + i;
    return { date: new Date(day * DAY).toISOString().slice(0, 10), count: byDay.get(day) ?? 0 };
  });
}

/** Deletes the salts and marks of past days and recounts the last seven days; to be run periodically. */
export function refreshCounts(database: Database, at: number): Promise<void> {
  const today = Math.floor(at / DAY);
  return database.write(async (queries) => {
    await queries.run("DELETE FROM install_salts WHERE day < ?", today);
    await queries.run("DELETE FROM install_marks WHERE day < ?", today);
    const weeks = await queries.all(
      "SELECT package, CAST(sum(count) AS BIGINT) AS n FROM installs_daily WHERE day > ? GROUP BY package ORDER BY package",
      today - 7,
    );
    await queries.run(
      `UPDATE packages SET installs_week = 0, week_rank = 0 WHERE (installs_week > 0 OR week_rank > 0)
         AND id NOT IN (SELECT package FROM installs_daily WHERE day > ?)`,
      today - 7,
    );
    for (const row of weeks) {
      const week = numberOf(row, "n");
      // The rank is logarithmic, so faked counts gain little.
      await queries.run(
        "UPDATE packages SET installs_week = ?, week_rank = ? WHERE id = ?",
        week,
        Math.floor(Math.log2(1 + week)),
        textOf(row, "package"),
      );
    }
  });
}
