import { type Static, type TSchemaOptions, Type } from 'typebox';
import { anyJson } from '../schema/fields.ts';

const segment = '(/([^~/]|~[01])+)';

/** JSON pointer to a field of an entry that a component may read. */
export const readPath = (description: string) =>
  Type.String({ description, maxLength: 253, pattern: `^/(spec|status/outputs)${segment}*$` });

/** JSON pointer to a field of an entry that a component may own. */
export const writePath = (description: string) =>
  Type.String({ description, maxLength: 253, pattern: `^/status/outputs${segment}+$` });

/** `managed`: components create the cluster. `byoc`: the cluster already exists. */
export const mode = (options: TSchemaOptions = {}) =>
  Type.Union([Type.Literal('managed'), Type.Literal('byoc')], options);

/** The mode of an entry. */
export type Mode = Static<ReturnType<typeof mode>>;

/**
 * What a component waits for in an entry. The server runs the component again once all missing inputs of its last outcome are as wanted, or
 * when another trigger starts a run.
 */
export const missingInput = Type.Object(
  {
    path: readPath('The field, as a JSON pointer such as /status/outputs/network/vnetName.'),
    want: Type.Union(
      [Type.Literal('present'), Type.Literal('absent'), Type.Literal('equals'), Type.Literal('noReaders')],
      {
        description:
          'What the component waits for: that the field is present, absent, or equal to value; or (noReaders) that no component that applies to the entry reads the field. While the entry is being deleted, only components that still have a ReconcileRun count. A field with the value null counts as absent.',
      },
    ),
    value: Type.Optional(anyJson('The expected value; set only if want is equals.')),
  },
  { description: 'A missing input.' },
);

/** An input that a component waits for. */
export type MissingInput = Static<typeof missingInput>;

/** Maximum length that the server gives a text for a column of `kubectl get`, characters. */
export const maxColumnText = 80;

/** Maximum number of missing inputs of one run. */
export const maxMissing = 16;
