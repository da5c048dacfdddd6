import type { Resource } from '../../api/object.ts';
import type { BoundSchemaView, BoundVersion, ExportView } from '../stores/views.ts';

/** The version that is synced: of those that are served, and that the export asks for if it asks for any, the stored one or else the first. */
export function syncVersion(schema: BoundSchemaView, exported: ExportView): BoundVersion | undefined {
  const { group, names, versions } = schema;
  const wanted = exported.resources.find((entry) => entry.group === group && entry.resource === names.plural);
  const asked = wanted?.versions ?? [];
  const possible = versions.filter(({ name, served }) => served && (asked.length === 0 || asked.includes(name)));
  return possible.find(({ storage }) => storage) ?? possible[0];
}

/** The bound kind as the consumer serves it. */
export function consumerResource({ group, names, scope }: BoundSchemaView, version: string): Resource {
  return { group, version, plural: names.plural, kind: names.kind, namespaced: scope === 'Namespaced' };
}
