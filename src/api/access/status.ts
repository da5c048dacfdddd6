import { type Static, Type } from 'typebox';
import { conditions, listOf, objectName } from '../schema/fields.ts';
import { column } from '../schema/kind.ts';
import type { CelRule } from '../schema/structural-schema.ts';
import { grant } from './grant.ts';

const common = {
  conditions: Type.Optional(conditions),
  ready: Type.Optional(Type.Boolean({ description: 'Whether every condition is True.' })),
  accessMessage: Type.Optional(
    Type.String({
      description: 'The command or text that tells the requester how to use the access.',
      maxLength: 32_768,
    }),
  ),
};

const child = Type.Object({
  kind: Type.Union([Type.Literal('Pod'), Type.Literal('Role'), Type.Literal('RoleBinding')], {
    description: 'The kind of the object.',
  }),
  name: objectName('Its name.'),
  uid: Type.String({ description: 'Its uid.', minLength: 1, maxLength: 128 }),
});

export const templateStatus = Type.Object(
  {
    ...common,
    authorSignature: Type.Optional(
      Type.String({
        description: 'The signature of spec.author under the current key, so that it survives a key rotation.',
        maxLength: 128,
      }),
    ),
  },
  { description: 'The observed state of this template.' },
);

export const requestStatus = Type.Object(
  {
    ...common,
    podName: Type.Optional(objectName('The granted pod.')),
    grant: Type.Optional(grant),
    children: Type.Optional(listOf(child, 8, { description: 'The objects that the server created for this request.' })),
  },
  { description: 'The observed state of this request.' },
);

export type TemplateStatus = Static<typeof templateStatus>;
export type RequestStatus = Static<typeof requestStatus>;
export type RequestChild = Static<typeof child>;

/** A rule for the root of the schema, because the API server does not evaluate rules of the status if an update removes the status. */
export const grantIsFinal: CelRule = {
  rule: '!has(oldSelf.status) || !has(oldSelf.status.grant) || (has(self.status) && has(self.status.grant) && self.status.grant == oldSelf.status.grant)',
  message: 'status.grant is immutable once it is set',
  reason: 'FieldValueForbidden',
  fieldPath: '.status.grant',
};

const readyColumn = column('Ready', '.status.ready', 'Whether every condition is True.', { type: 'boolean' });

export const templateColumns = [readyColumn];

export const requestColumns = [
  column('Template', '.spec.templateName', 'The template of the request.'),
  column('Pod', '.status.podName', 'The granted pod.'),
  readyColumn,
];
