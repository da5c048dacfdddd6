import { boolYaml11Tag, CORE_SCHEMA, loadAll, mergeTag, YAMLException } from 'js-yaml';

export { dump as dumpYaml, load as loadYaml } from 'js-yaml';

/** As kubectl reads manifests: `Off` is false, and a time stays text. */
const manifestSchema = CORE_SCHEMA.withTags(mergeTag, boolYaml11Tag);

/** The documents of a manifest file. @throws Error whose message is one line */
export function loadManifests(text: string): unknown[] {
  try {
    return loadAll(text, { schema: manifestSchema });
  } catch (error) {
    if (!(error instanceof YAMLException) || !error.mark) throw error;
    throw new Error(`line ${error.mark.line + 1}: ${error.reason}`);
  }
}
