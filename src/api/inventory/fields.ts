import { type Static, type TSchemaOptions, Type } from 'typebox';
import { anyJson } from '../schema/fields.ts';

const segments = '(/([^~/]|~[01])+)';

/** A field of an entry that runs may depend on. */
export const readPath = (description: string) =>
  Type.String({ description, maxLength: 253, pattern: `^/(spec|status/outputs)${segments}*$` });

/** A field of an entry that a component owns. */
export const writePath = (description: string) =>
  Type.String({ description, maxLength: 253, pattern: `^/status/outputs${segments}+$` });

/** Whether components make the cluster, or it is there already. */
export const mode = (options: TSchemaOptions = {}) =>
  Type.Union([Type.Literal('managed'), Type.Literal('byoc')], options);

export type Mode = Static<ReturnType<typeof mode>>;

/** A condition on an entry: the run is worth repeating once it holds. */
export const missingInput = Type.Object(
  {
    path: readPath('The field, as a JSON pointer such as /status/outputs/network/vnetName.'),
    want: Type.Union(
      [Type.Literal('present'), Type.Literal('absent'), Type.Literal('equals'), Type.Literal('noReaders')],
      {
        description:
          'What has to become of it: present, absent, equal to value, or read by no component that is still there.',
      },
    ),
    value: Type.Optional(anyJson('The value that equals wants.')),
  },
  { description: 'An input that is missing.' },
);

export type MissingInput = Static<typeof missingInput>;

/** Most inputs that one run may name. */
export const maxMissing = 16;
