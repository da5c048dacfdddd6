import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { customResourceDefinitions } from '../../api/resources.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import { inexactNumber } from '../../kit/inexact-number.ts';
import { isRecord, type JsonObject, own } from '../../kit/json-value.ts';
import type { BindingView } from '../stores/consumer-stores.ts';
import type { BoundSchemaView, BoundVersion, ExportView } from '../stores/provider-stores.ts';
import { syncVersion } from '../sync/consumer-objects.ts';
import { ownerReferenceOf } from './owner.ts';

export interface BoundCrd {
  readonly spec: JsonObject;
  readonly canonicalSpec: string;
  /** The only served version, if the provider's versions need its conversion webhook. */
  readonly onlyVersion?: string;
}

export type BoundCrdResult = BoundCrd | { readonly problem: string };

/** By schema and served version: views are immutable, and schemas may be large. */
const resultCache = new WeakMap<BoundSchemaView, Map<string | undefined, BoundCrdResult>>();

/**
 * The CRD that `schema` describes, with the API server's defaults, to compare it with the stored
 * one. Without a conversion webhook, to which this API server would send objects, at a URL of the
 * provider's choice: then only the synced version is served, or all if there is none.
 */
export function boundCrd(schema: BoundSchemaView, exported: ExportView): BoundCrdResult {
  const servedVersion = needsWebhook(schema) ? syncVersion(schema, exported) : undefined;
  const resultsByVersion = resultCache.get(schema) ?? new Map<string | undefined, BoundCrdResult>();
  resultCache.set(schema, resultsByVersion);
  const result = resultsByVersion.get(servedVersion?.name) ?? build(schema, servedVersion);
  resultsByVersion.set(servedVersion?.name, result);
  return result;
}

export function crdManifest({ name }: BoundSchemaView, { spec }: BoundCrd, binding: BindingView): KubeObject {
  return {
    apiVersion: apiVersionOf(customResourceDefinitions),
    kind: customResourceDefinitions.kind,
    metadata: { name, ownerReferences: [ownerReferenceOf(binding)] },
    spec,
  };
}

function build(schema: BoundSchemaView, servedVersion: BoundVersion | undefined): BoundCrdResult {
  const { group, names, scope, versions, name } = schema;
  if (group === '') return problem(name, 'is in the core group, to which no resource can be added');
  if (`${names.plural}.${group}` !== name)
    return problem(
      name,
      `describes ${names.plural}.${group}, but must have the name of the resource that it describes`,
    );
  const unusable = versions.find((version) => !isRecord(version.schema));
  if (unusable) return problem(name, `has no schema for version ${unusable.name}`);
  const inexact = inexactNumber(
    versions.map((version) => ({ schema: withoutBounds(version.schema) })),
    'spec.versions',
  );
  if (inexact !== undefined)
    return problem(name, `has an integer between 2^53 and 2^63 at ${inexact}, which the server cannot copy exactly`);
  const spec: JsonObject = {
    group,
    names: {
      plural: names.plural,
      singular: names.singular || names.kind.toLowerCase(),
      kind: names.kind,
      listKind: names.listKind || `${names.kind}List`,
      ...(names.shortNames?.length ? { shortNames: names.shortNames } : {}),
      ...(names.categories?.length ? { categories: names.categories } : {}),
    },
    scope,
    conversion: { strategy: 'None' },
    versions: versions.map((version) => versionSpec(version, servedVersion)),
  };
  return { spec, canonicalSpec: canonicalJson(spec), ...(servedVersion ? { onlyVersion: servedVersion.name } : {}) };
}

/** Numeric bounds may be inexact: API servers, too, store them as floating point. */
function withoutBounds(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutBounds);
  if (!isRecord(schema)) return schema;
  const kept = Object.entries(schema).filter(
    ([field, value]) => typeof value === 'object' || !['maximum', 'minimum', 'multipleOf'].includes(field),
  );
  return Object.fromEntries(kept.map(([field, value]) => [field, withoutBounds(value)]));
}

function needsWebhook({ conversion, versions }: BoundSchemaView): boolean {
  return own(conversion, 'strategy') === 'Webhook' && versions.length > 1;
}

function versionSpec(version: BoundVersion, servedVersion: BoundVersion | undefined): JsonObject {
  const { name, deprecated, deprecationWarning, schema, subresources, additionalPrinterColumns } = version;
  const isServed = version === servedVersion;
  const { served, storage } = servedVersion ? { served: isServed, storage: isServed } : version;
  return {
    name,
    served,
    storage,
    ...(deprecated ? { deprecated } : {}),
    ...(deprecationWarning ? { deprecationWarning } : {}),
    schema: { openAPIV3Schema: schema },
    ...(subresources.status || subresources.scale ? { subresources } : {}),
    ...(additionalPrinterColumns.length > 0 ? { additionalPrinterColumns } : {}),
  };
}

const problem = (name: string, what: string): BoundCrdResult => ({
  problem: `BoundSchema ${name} ${what}; ask the provider to correct it`,
});
