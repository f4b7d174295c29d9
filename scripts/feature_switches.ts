/**
 * The option `--feature` of tasks that compile. In: the names of features, one for each time that the option is given.
 * Out: the default features with these.
 */
import { ALL_FEATURE_ROWS, type FeatureName, featureSet } from "../engine/settings/features.ts";

/** The option, as a row of a task's options. */
export const FEATURE_SWITCHES = {
  feature: {
    value: "NAME",
    words: ALL_FEATURE_ROWS.map(({ name }): FeatureName => name),
    many: true,
    help: "enable this feature, too; repeatable",
  },
} as const;

/** The default features, and `names`. */
export function switchedFeatures(names: readonly FeatureName[]): ReturnType<typeof featureSet> {
  return featureSet(Object.fromEntries(names.map((name) => [name, true])));
}
