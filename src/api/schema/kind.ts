import type { Static, TObject } from 'typebox';
import { own } from '../../kit/json-value.ts';
import { apiVersionOf, type ObjectMeta, objectMeta, type Resource } from '../object.ts';
import { type FieldError, type Read, readBySchema } from './read.ts';
import { type CelRule, type StructuralSchema, toStructural } from './structural-schema.ts';

const structuralMeta = toStructural(objectMeta);

/**
 * The metadata of an object that may come from anywhere; managedFields are left out.
 * `name` is empty while an admission review for a CREATE with generateName has not settled it yet.
 */
function readObjectMeta(metadata: unknown): Read<ObjectMeta> {
  return readBySchema(structuralMeta, metadata, 'metadata');
}

/** A column of `kubectl get`. */
interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'date' | 'integer';
  readonly jsonPath: string;
  readonly description: string;
  /** Above 0: shown by `-o wide` only. */
  readonly priority?: number;
}

export const column = (
  name: string,
  jsonPath: string,
  description: string,
  rest: Partial<Pick<PrinterColumn, 'type' | 'priority'>> = {},
): PrinterColumn => ({ name, type: 'string', jsonPath, description, ...rest });

export const ageColumn = column('Age', '.metadata.creationTimestamp', 'When it was created.', { type: 'date' });

/** An older version that is still served; the API server converts by changing apiVersion alone. */
interface OlderVersion {
  readonly name: string;
  readonly spec: TObject;
  readonly status: TObject;
}

/** Everything that is said about one of our kinds, once: its type, its CRD and its reader are derived from this. */
interface KindDefinition<Spec extends TObject, Status extends TObject, Named extends Resource = Resource> {
  readonly resource: Named;
  readonly description: string;
  readonly spec: Spec;
  readonly status: Status;
  /** CEL rules over the whole object; those over spec stand in the spec's own schema. */
  readonly rules?: readonly CelRule[];
  readonly printerColumns: readonly PrinterColumn[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  /** True for kinds whose objects may come without a spec; readers then read an empty one. */
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

/** An object of a kind as readers see it: defaults filled in, metadata without managedFields. */
export type ObjectOf<K extends Kind> = {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: Static<K['spec']>;
  status?: Static<K['status']>;
};

/** Throws at once when a schema is not structural. */
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

/** Reads an object of this kind from anywhere: a watch, an admission review, a file. Never throws. */
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

function mismatch(object: unknown, field: string, wanted: string): FieldError[] {
  const found = own(object, field);
  if (found === wanted) return [];
  const shown = typeof found === 'string' ? JSON.stringify(found.slice(0, 64)) : 'none';
  return [{ field, message: `must be ${JSON.stringify(wanted)}; found ${shown}` }];
}
