import { Type } from 'typebox';

const segments = '(/([^~/]|~[01])+)';

/** A field of an entry that runs may depend on. */
export const readPath = (description: string) =>
  Type.String({ description, maxLength: 253, pattern: `^/(spec|status/outputs)${segments}*$` });

/** A field of an entry that a component owns. */
export const writePath = (description: string) =>
  Type.String({ description, maxLength: 253, pattern: `^/status/outputs${segments}+$` });
