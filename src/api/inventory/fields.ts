import { type Static, type TSchemaOptions, Type } from 'typebox';
import { anyJson, oneOf } from '../schema/fields.ts';

const segment = '(/([^~/]|~[01])+)';

/** A field of an entry that a component may read. */
export const readPath = (description: string) =>
  Type.String({ description, maxLength: 253, pattern: `^/(spec|status/outputs)${segment}*$` });

/** A field of an entry that a component may own. */
export const writePath = (description: string) =>
  Type.String({ description, maxLength: 253, pattern: `^/status/outputs${segment}+$` });

/** `managed`: components create the cluster. `byoc`: it already exists. */
export const mode = (options: TSchemaOptions = {}) => oneOf(['managed', 'byoc'], options);

export type Mode = Static<ReturnType<typeof mode>>;

/** Another run follows once all missing inputs are as wanted, or on another trigger. */
export const missingInput = Type.Object(
  {
    path: readPath('The field, as a JSON pointer such as /status/outputs/network/vnetName.'),
    want: oneOf(['present', 'absent', 'equals', 'noReaders'], {
      description:
        'What the component waits for. equals: the field equals value. noReaders: no component of the entry reads the field; while the entry is being deleted, only those with a ReconcileRun count. The value null counts as absent.',
    }),
    value: Type.Optional(anyJson('The expected value; set only if want is equals.')),
  },
  { description: 'A missing input.' },
);

/** An input that a component waits for. */
export type MissingInput = Static<typeof missingInput>;

/** For a column of `kubectl get`, characters. */
export const maxColumnText = 80;

export const maxMissing = 16;
