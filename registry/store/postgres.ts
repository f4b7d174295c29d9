/**
 * PostgreSQL, for several app processes on one database, through npm `postgres`.
 *
 * Statements keep their `?` placeholders and are numbered here. Integers come back as numbers (all columns hold safe
 * integers). A transaction that loses against another (deadlock, serialization) is run again; a lost connection is an
 * error that says "try again", because whether the last commit happened cannot be known here.
 */
import { errorCode } from "@waft/engine/internal/errors";
import postgres from "postgres";
import { type Database, type Queries, type Row, type SqlValue, StoreUnavailable } from "./database.ts";

const TEXT_OID = 25;
const INT8_OID = 20;
const ATTEMPTS = 5;

const numbered = new Map<string, string>();

/** `?` becomes `$1`, `$2`, …; no statement of the registry has a question mark in a literal. */
function numberPlaceholders(sql: string): string {
  let text = numbered.get(sql);
  if (text === undefined) {
    let n = 0;
    text = sql.replace(/\?/g, () => `$${++n}`);
    if (numbered.size > 1000) numbered.clear();
    numbered.set(sql, text);
  }
  return text;
}

/** Turns errors of a lost or overloaded server into StoreUnavailable; others stay as they are. */
function translated(error: unknown): unknown {
  const code = errorCode(error) ?? "";
  const lost = /^(?:CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|ENOENT|57P0|08|53)/.test(code);
  return lost ? new StoreUnavailable(`PostgreSQL: ${(error as Error).message}`) : error;
}

function isContention(error: unknown): boolean {
  return ["40001", "40P01"].includes(errorCode(error) ?? "");
}

/** Bounds of waiting for a connection. */
const MAX_WAITING = 5000;
const MAX_WAIT_MS = 20_000;
/** Timeouts: connecting, one statement on the server, and its answer. */
const CONNECT_MS = 10_000;
const STATEMENT_MS = 30_000;
const ANSWER_MS = STATEMENT_MS + 5000;

/** The result of a statement. */
type Result = Iterable<Row> & { readonly count: number | null };

/** A started client, and functions that fail its pending statements. */
interface Client {
  readonly sql: ReturnType<typeof postgres>;
  readonly pending: Set<(error: unknown) => void>;
}

/**
 * One connection, used by one caller at a time.
 *
 * A client that lost its server is discarded, and the next statement starts another: the library's own reconnection can
 * leave statements without an answer for ever (seen on all connections of a process after `kill -9` of the server). For
 * the same reason every statement has a timeout here.
 */
class Connection implements Queries {
  readonly #url: string;
  readonly #schema: string | undefined;
  #client: Client | undefined;
  /** Number of losses; a transaction does not survive one. */
  losses = 0;
  /** Whether a transaction may still be open on it. */
  unclean = false;

  constructor(url: string, schema: string | undefined) {
    this.#url = url;
    this.#schema = schema;
  }

  async all(sql: string, ...values: readonly SqlValue[]): Promise<Row[]> {
    return [...await this.#send(sql, values)];
  }

  async run(sql: string, ...values: readonly SqlValue[]): Promise<number> {
    return (await this.#send(sql, values)).count ?? 0;
  }

  async #send(sql: string, values: readonly SqlValue[]): Promise<Result> {
    if (this.#client === undefined) {
      const client = this.#client = connect(this.#url, this.#schema, () => this.#lose(client));
      await this.#ask(client, "SELECT 1", [], CONNECT_MS);
    }
    return await this.#ask(this.#client, numberPlaceholders(sql), values, ANSWER_MS);
  }

  async #ask(client: Client, sql: string, values: readonly SqlValue[], limitMs: number): Promise<Result> {
    let fail: (error: unknown) => void = () => {};
    const timer = setTimeout(() => this.#lose(client), limitMs);
    try {
      return await new Promise<Result>((resolve, reject) => {
        client.pending.add(fail = reject);
        client.sql.unsafe(sql, values as SqlValue[], { prepare: true }).then(
          (result) => resolve(result as unknown as Result),
          reject,
        );
      });
    } catch (error) {
      const known = translated(error);
      if (known instanceof StoreUnavailable) this.#lose(client);
      throw known;
    } finally {
      clearTimeout(timer);
      client.pending.delete(fail);
    }
  }

  #lose(client: Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.losses++;
    this.unclean = false;
    for (const fail of client.pending) fail(new StoreUnavailable("PostgreSQL: the connection was lost"));
    void client.sql.end({ timeout: 0 }).catch(() => {});
  }

  async close(): Promise<void> {
    await this.#client?.sql.end({ timeout: 5 });
  }
}

/** The statements of one transaction; they fail once the connection on which it began is lost. */
class TransactionQueries implements Queries {
  readonly #connection: Connection;
  readonly #losses: number;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#losses = connection.losses;
  }

  all(sql: string, ...values: readonly SqlValue[]): Promise<Row[]> {
    return this.lost ? this.#refuse() : this.#connection.all(sql, ...values);
  }

  run(sql: string, ...values: readonly SqlValue[]): Promise<number> {
    return this.lost ? this.#refuse() : this.#connection.run(sql, ...values);
  }

  get lost(): boolean {
    return this.#connection.losses !== this.#losses;
  }

  #refuse(): Promise<never> {
    return Promise.reject(new StoreUnavailable("PostgreSQL: the connection was lost in a transaction"));
  }
}

/** A registry's data on a PostgreSQL server. */
export class PostgresDatabase implements Database {
  readonly dialect = "postgres";
  readonly #connections: readonly Connection[];
  readonly #idle: Connection[];
  readonly #waiting: ((connection: Connection) => void)[] = [];

  readonly #waitMs: number;

  constructor(
    url: string,
    options: { readonly schema?: string; readonly connections?: number; readonly waitMs?: number } = {},
  ) {
    this.#waitMs = options.waitMs ?? MAX_WAIT_MS;
    // The client's own pool can pipeline a BEGIN behind other queries and then rejects it (UNSAFE_TRANSACTION, seen
    // once in some thousand transactions under load). So each connection is a pool of one with one user at a time.
    this.#connections = Array.from({ length: options.connections ?? 10 }, () => new Connection(url, options.schema));
    this.#idle = [...this.#connections];
  }

  async all(sql: string, ...values: readonly SqlValue[]): Promise<Row[]> {
    return await this.#use((connection) => connection.all(sql, ...values));
  }

  async run(sql: string, ...values: readonly SqlValue[]): Promise<number> {
    return await this.#use((connection) => connection.run(sql, ...values));
  }

  async write<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    for (let attempt = 1;; attempt++) {
      try {
        return await this.#use((connection) => transact(connection, work));
      } catch (error) {
        if (!isContention(error) || attempt === ATTEMPTS) throw translated(error);
        await new Promise((resolve) => setTimeout(resolve, attempt * 10));
      }
    }
  }

  async #use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = this.#idle.pop() ?? await this.#wait();
    try {
      if (connection.unclean) await connection.run("ROLLBACK");
      connection.unclean = false;
      return await work(connection);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#idle.push(connection);
      else next(connection);
    }
  }

  #wait(): Promise<Connection> {
    if (this.#waiting.length >= MAX_WAITING) {
      return Promise.reject(new StoreUnavailable("PostgreSQL: too many requests wait for a connection"));
    }
    return new Promise((resolve, reject) => {
      const take = (connection: Connection): void => {
        clearTimeout(timer);
        resolve(connection);
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        reject(new StoreUnavailable(`PostgreSQL: no connection was free for ${this.#waitMs / 1000} s`));
      }, this.#waitMs);
      this.#waiting.push(take);
    });
  }

  async snapshot<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return await this.#use((connection) =>
      transact(connection, work, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }
}

/** Not the client's own begin: on a lost connection it rolls back into a closed socket, which ends the process. */
async function transact<T>(
  connection: Connection,
  work: (queries: Queries) => Promise<T>,
  begin = "BEGIN",
): Promise<T> {
  connection.unclean = true;
  await connection.run(begin);
  const transaction = new TransactionQueries(connection);
  let result: T;
  try {
    result = await work(transaction);
    await transaction.run("COMMIT");
  } catch (error) {
    // When the rollback fails, too, `unclean` stays and the next user of the connection begins with another.
    if (!transaction.lost) await connection.run("ROLLBACK");
    connection.unclean = false;
    throw error;
  }
  connection.unclean = false;
  return result;
}

function connect(url: string, schema: string | undefined, onLoss: () => void): Client {
  const sql = postgres(url, {
    max: 1,
    onclose: onLoss,
    connect_timeout: CONNECT_MS / 1000,
    idle_timeout: 60,
    onnotice: () => {},
    // Otherwise the client requests array types after connecting, and a connection lost then is a rejection that no
    // caller can handle: it ends the process. We use no arrays.
    fetch_types: false,
    connection: {
      application_name: "waft-registry",
      statement_timeout: STATEMENT_MS,
      ...(schema === undefined ? {} : { search_path: schema }),
    },
    types: {
      bigint: {
        to: INT8_OID,
        from: [INT8_OID],
        parse: (text: string) => Number(text),
        serialize: (n: number) => String(n),
      },
      // Values are not converted: a number for a text column is a defect of the registry and must fail.
      text: { to: TEXT_OID, from: [TEXT_OID], parse: (text: string) => text, serialize: (text: string) => text },
    },
  });
  return { sql, pending: new Set() };
}
