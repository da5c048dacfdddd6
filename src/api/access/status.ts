import { type Static, Type } from 'typebox';
import { conditions, listOf, objectName } from '../schema/fields.ts';
import { column } from '../schema/kind.ts';
import type { CelRule } from '../schema/structural-schema.ts';
import { grant } from './grant.ts';

const common = {
  conditions: Type.Optional(conditions),
  ready: Type.Optional(Type.Boolean({ description: 'Whether every condition is True.' })),
  accessMessage: Type.Optional(
    Type.String({ description: 'How to use the access, for the requester to read.', maxLength: 32_768 }),
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
        description: 'The signature of spec.author under the present key, so that keys can be rotated.',
        maxLength: 128,
      }),
    ),
  },
  { description: 'What has been found out about this template.' },
);

export const requestStatus = Type.Object(
  {
    ...common,
    podName: Type.Optional(objectName('The pod that access was granted to.')),
    grant: Type.Optional(grant),
    children: Type.Optional(listOf(child, 8, { description: 'What was created for this request.' })),
  },
  { description: 'What has come of this request.' },
);

export type TemplateStatus = Static<typeof templateStatus>;
export type RequestStatus = Static<typeof requestStatus>;
export type RequestChild = Static<typeof child>;

/** Stands at the root, because a rule on status is silent when the whole status is taken away. */
export const grantIsFinal: CelRule = {
  rule: '!has(oldSelf.status) || !has(oldSelf.status.grant) || (has(self.status) && has(self.status.grant) && self.status.grant == oldSelf.status.grant)',
  message: 'status.grant cannot change once it is set',
  reason: 'FieldValueForbidden',
  fieldPath: '.status.grant',
};

const readyColumn = column('Ready', '.status.ready', 'Whether every condition is True.', { type: 'boolean' });

export const templateColumns = [readyColumn];

export const requestColumns = [
  column('Template', '.spec.templateName', 'The template that access was asked for through.'),
  column('Pod', '.status.podName', 'The pod that access was granted to.'),
  readyColumn,
];
