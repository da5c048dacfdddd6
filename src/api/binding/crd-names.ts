import { Type } from 'typebox';
import { listOf } from '../schema/fields.ts';

const name = (description: string) => Type.String({ description, maxLength: 253 });
const names = (description: string) => listOf(Type.String({ maxLength: 253 }), 64, { description });

/** The names of a custom resource, as a CustomResourceDefinition has them. */
export const crdNames = (description: string) =>
  Type.Object(
    {
      plural: name('The name in URLs.'),
      kind: name('The name in manifests.'),
      singular: Type.Optional(name('The name for one of them.')),
      listKind: Type.Optional(name('The kind of lists.')),
      shortNames: Type.Optional(names('Short names for kubectl.')),
      categories: Type.Optional(names('Groups of resources for kubectl.')),
    },
    { description },
  );
