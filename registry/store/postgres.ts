/**
 * PostgreSQL, for several app processes on one database, through npm `postgres`.
 *
 * Statements keep their `?` placeholders and are numbered here. Integers come back as numbers (all of ours are safe).
 * A transaction that loses against another (deadlock, serialization) is run again; a lost connection is an error that says
 * "try again", because whether the last commit happened cannot be known here.
 */
import postgres from "postgres";
import { type Database, type Queries, type Row, type SqlValue, StoreUnavailable } from "./database.ts";

const TEXT_OID = 25;
const INT8_OID = 20;
const ATTEMPTS = 5;

/** What we use of a connection or a transaction. */
interface Sql {
  unsafe(
    query: string,
    values: readonly SqlValue[],
    options: { readonly prepare: boolean },
  ): Promise<Iterable<Row> & { readonly count: number | null }>;
}

const numbered = new Map<string, string>();

/** `?` becomes `$1`, `$2`, …; our statements hold no question marks in literals. */
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

class PostgresQueries implements Queries {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async all(sql: string, ...values: readonly SqlValue[]): Promise<Row[]> {
    return [...await this.#send(sql, values)];
  }

  async run(sql: string, ...values: readonly SqlValue[]): Promise<number> {
    return (await this.#send(sql, values)).count ?? 0;
  }

  async #send(sql: string, values: readonly SqlValue[]): Promise<Iterable<Row> & { readonly count: number | null }> {
    try {
      return await this.#sql.unsafe(numberPlaceholders(sql), values, { prepare: true });
    } catch (error) {
      throw translated(error);
    }
  }
}

/** Errors that mean "not now" become StoreUnavailable; the others stay what they are. */
function translated(error: unknown): unknown {
  const code = String((error as { readonly code?: unknown }).code ?? "");
  const lost = /^(?:CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|ENOENT|57P0|08|53)/.test(code);
  return lost ? new StoreUnavailable(`PostgreSQL: ${(error as Error).message}`) : error;
}

function isContention(error: unknown): boolean {
  return ["40001", "40P01"].includes(String((error as { readonly code?: unknown }).code));
}

/** Waiting for a connection is bounded, too. */
const MAX_WAITING = 5000;

/** One connection, used by one caller at a time. */
interface Connection {
  readonly sql: ReturnType<typeof postgres>;
  readonly queries: PostgresQueries;
  /** How often it was lost; a transaction does not outlive a loss. */
  losses: number;
  /** A transaction may still be open on it. */
  unclean: boolean;
}

/** The statements of one transaction: none is sent once the connection it began on is lost. */
class TransactionQueries implements Queries {
  readonly #connection: Connection;
  readonly #losses: number;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#losses = connection.losses;
  }

  all(sql: string, ...values: readonly SqlValue[]): Promise<Row[]> {
    return this.lost ? this.#refuse() : this.#connection.queries.all(sql, ...values);
  }

  run(sql: string, ...values: readonly SqlValue[]): Promise<number> {
    return this.lost ? this.#refuse() : this.#connection.queries.run(sql, ...values);
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

  constructor(url: string, options: { readonly schema?: string; readonly connections?: number } = {}) {
    // The client's own pool pipelines a BEGIN behind the queries of others and then takes it for a mistake of ours
    // (UNSAFE_TRANSACTION, seen once in some thousand transactions under load). So each connection is a pool of one,
    // and who uses it has it alone.
    this.#connections = Array.from({ length: options.connections ?? 10 }, () => connect(url, options.schema));
    this.#idle = [...this.#connections];
  }

  async all(sql: string, ...values: readonly SqlValue[]): Promise<Row[]> {
    return await this.#use(({ queries }) => queries.all(sql, ...values));
  }

  async run(sql: string, ...values: readonly SqlValue[]): Promise<number> {
    return await this.#use(({ queries }) => queries.run(sql, ...values));
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
      if (connection.unclean) await connection.queries.run("ROLLBACK");
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
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async snapshot<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return await this.#use((connection) =>
      transact(connection, work, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.sql.end({ timeout: 5 })));
  }
}

/** Not the client's own begin: on a lost connection it rolls back into a closed socket, which ends the process. */
async function transact<T>(
  connection: Connection,
  work: (queries: Queries) => Promise<T>,
  begin = "BEGIN",
): Promise<T> {
  connection.unclean = true;
  await connection.queries.run(begin);
  const transaction = new TransactionQueries(connection);
  let result: T;
  try {
    result = await work(transaction);
    await transaction.run("COMMIT");
  } catch (error) {
    // When the rollback fails, too, `unclean` stays and the next user of the connection begins with another.
    if (!transaction.lost) await connection.queries.run("ROLLBACK");
    connection.unclean = false;
    throw error;
  }
  connection.unclean = false;
  return result;
}

function connect(url: string, schema: string | undefined): Connection {
  const sql = postgres(url, {
    max: 1,
    onclose: () => connection.losses++,
    connect_timeout: 10,
    idle_timeout: 60,
    onnotice: () => {},
    connection: {
      application_name: "waft-registry",
      statement_timeout: 30_000,
      ...(schema === undefined ? {} : { search_path: schema }),
    },
    types: {
      bigint: {
        to: INT8_OID,
        from: [INT8_OID],
        parse: (text: string) => Number(text),
        serialize: (n: number) => String(n),
      },
      // Values are sent as they are; a number for a text column is our mistake and must fail.
      text: { to: TEXT_OID, from: [TEXT_OID], parse: (text: string) => text, serialize: (text: string) => text },
    },
  });
  const connection: Connection = {
    sql,
    queries: new PostgresQueries(sql as unknown as Sql),
    losses: 0,
    unclean: false,
  };
  return connection;
}
