/**
 * `plugin transfer`: gives a package to another account, which accepts it.
 *
 * In: a package with an account to offer it to, or with what to do about an offer; nothing to list the offers. Out: the
 * offers that the token's account made or got, as the registry has them afterwards.
 */
import { fail } from "../../base/diagnostic.ts";
import type { Schema } from "../../base/schema_walk.ts";
import { requirePluginId } from "../../definitions/plugin_id.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";
import { parsed } from "../../packages/registry_answer.ts";

/** What to do. */
export interface TransferRequest {
  readonly package?: string;
  /** The account that gets the offer. */
  readonly to?: string;
  readonly accept: boolean;
  /** Withdraws the offer, or declines it. */
  readonly cancel: boolean;
}

/** The offers afterwards. */
export interface TransferResult {
  readonly registry: string;
  readonly done: "offered" | "accepted" | "cancelled" | null;
  readonly offers: readonly {
    readonly name: string;
    readonly from: string;
    readonly to: string;
    readonly offeredAt: string;
  }[];
}

const text: Schema = { type: "string", maxLength: 300 };
const OFFERS: Schema = {
  type: "object",
  required: ["offers"],
  properties: {
    offers: {
      type: "array",
      maxItems: 10_000,
      items: {
        type: "object",
        required: ["name", "from", "to", "offeredAt"],
        properties: { name: text, from: text, to: text, offeredAt: text },
      },
    },
  },
};

/** Offers, accepts, cancels or lists transfers. */
export async function transferPackage(
  context: OpsContext,
  root: string,
  { package: id, to, accept, cancel }: TransferRequest,
): Promise<TransferResult> {
  const sources = new SourceSet(context, root);
  const asked = [to !== undefined, accept, cancel].filter(Boolean).length;
  if (asked > 1 || (id === undefined) !== (asked === 0)) {
    throw fail("usage.transfer", "a package is transferred with one of --to, --accept and --cancel", {
      help: "without a package and options, the offers are listed",
    });
  }
  if (id !== undefined) requirePluginId(id);
  const source = id === undefined ? sources.registry(context.machine.registry) : sources.forId(id);
  let done: TransferResult["done"] = null;
  if (id !== undefined && to !== undefined) {
    await source.offerTransfer(id, to);
    done = "offered";
  } else if (id !== undefined) {
    await source.answerTransfer(id, accept);
    done = accept ? "accepted" : "cancelled";
  }
  const { offers } = parsed(await source.transfers(), `${source.name}/api/transfers`, OFFERS) as unknown as Pick<
    TransferResult,
    "offers"
  >;
  return {
    registry: source.name,
    done,
    offers: offers.map(({ name, from, to, offeredAt }) => ({ name, from, to, offeredAt })),
  };
}
