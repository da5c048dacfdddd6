import type { Static, TObject } from 'typebox';
import { own } from '../../kit/json-value.ts';
import { apiVersionOf, type ObjectMeta, objectMeta, type Resource } from '../object.ts';
import { type FieldError, type Read, readBySchema } from './read.ts';
import { type CelRule, type StructuralSchema, toStructural } from './structural-schema.ts';

const structuralMeta = toStructural(objectMeta);

/** Untrusted. `name` is empty in an admission review for a CREATE with generateName. */
function readObjectMeta(metadata: unknown): Read<ObjectMeta> {
  return readBySchema(structuralMeta, metadata, 'metadata');
}

/** A column of `kubectl get`. */
interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'date' | 'integer';
  readonly jsonPath: string;
  readonly description: string;
  /** Above 0, only `-o wide` shows the column. Default 0. */
  readonly priority?: number;
}

/** Of type `string` by default. */
export const column = (
  name: string,
  jsonPath: string,
  description: string,
  rest: Partial<Pick<PrinterColumn, 'type' | 'priority'>> = {},
): PrinterColumn => ({ name, type: 'string', jsonPath, description, ...rest });

export const ageColumn = column('Age', '.metadata.creationTimestamp', 'The creation time.', { type: 'date' });

/** Still served. To convert an object, the API server changes only its apiVersion. */
interface OlderVersion {
  readonly name: string;
  readonly spec: TObject;
  readonly status: TObject;
}

/** A kind of drawbridge: its type, its CRD, and its reader derive from this. */
interface KindDefinition<Spec extends TObject, Status extends TObject, Named extends Resource = Resource> {
  readonly resource: Named;
  readonly description: string;
  readonly spec: Spec;
  readonly status: Status;
  /** Over the whole object. Rules over the spec are in its schema. */
  readonly rules?: readonly CelRule[];
  readonly printerColumns: readonly PrinterColumn[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  /** Objects may lack a spec, which `readObject` then reads as empty. */
  readonly specOptional?: boolean;
  readonly olderVersions?: readonly OlderVersion[];
}

export interface Kind<
  Spec extends TObject = TObject,
  Status extends TObject = TObject,
  Named extends Resource = Resource,
> extends KindDefinition<Spec, Status, Named> {
  readonly structural: { readonly spec: StructuralSchema; readonly status: StructuralSchema };
}

/** After reading: with defaults, and without managedFields. */
export type ObjectOf<K extends Kind> = {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: Static<K['spec']>;
  status?: Static<K['status']>;
};

/** Throws if a schema is not structural. */
export function defineKind<Spec extends TObject, Status extends TObject, Named extends Resource>(
  definition: KindDefinition<Spec, Status, Named>,
): Kind<Spec, Status, Named> {
  const { kind } = definition.resource;
  return {
    ...definition,
    structural: {
      spec: toStructural(definition.spec, `${kind}.spec`),
      status: toStructural(definition.status, `${kind}.status`),
    },
  };
}

/** The object is untrusted, and must have the kind's current version. Never throws. */
export function readObject<K extends Kind>(kind: K, object: unknown): Read<ObjectOf<K>> {
  const apiVersion = apiVersionOf(kind.resource);
  const errors: FieldError[] = [
    ...mismatch(object, 'apiVersion', apiVersion),
    ...mismatch(object, 'kind', kind.resource.kind),
  ];
  if (errors.length > 0) return { ok: false, errors };
  const metadata = readObjectMeta(own(object, 'metadata'));
  const spec = readBySchema<Static<K['spec']>>(kind.structural.spec, rawSpec(kind, object), 'spec');
  const rawStatus = own(object, 'status') ?? undefined;
  const status =
    rawStatus === undefined
      ? undefined
      : readBySchema<Static<K['status']>>(kind.structural.status, rawStatus, 'status');
  if (!metadata.ok || !spec.ok || status?.ok === false) {
    for (const part of [metadata, spec, status]) if (part && !part.ok) errors.push(...part.errors);
    return { ok: false, errors };
  }
  const value: ObjectOf<K> = { apiVersion, kind: kind.resource.kind, metadata: metadata.value, spec: spec.value };
  if (status) value.status = status.value;
  return { ok: true, value };
}

function rawSpec(kind: Kind, object: unknown): unknown {
  return own(object, 'spec') ?? (kind.specOptional ? {} : undefined);
}

function mismatch(object: unknown, field: string, expected: string): FieldError[] {
  const found = own(object, field);
  if (found === expected) return [];
  const shown = typeof found === 'string' ? JSON.stringify(found.slice(0, 64)) : 'none';
  return [{ field, message: `must be ${JSON.stringify(expected)}; found ${shown}` }];
}
