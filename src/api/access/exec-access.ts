import { Type } from 'typebox';
import { objectName } from '../schema/fields.ts';
import { defineKind, type ObjectOf } from '../schema/kind.ts';
import { endIsFinal } from './ended.ts';
import { accessCategory, accessResource } from './names.ts';
import { requestSpec, specIsFinal } from './request-spec.ts';
import { grantIsFinal, requestColumns, requestStatus, templateColumns, templateStatus } from './status.ts';
import { accessConfig, author, controllerTargetRef } from './template-spec.ts';

const execAccessTemplates = accessResource('execaccesstemplates', 'ExecAccessTemplate');

export const execAccessTemplateKind = defineKind({
  resource: execAccessTemplates,
  description:
    'An ExecAccessTemplate allows members of some groups to request a shell in a running pod of a workload, for a limited time.',
  spec: Type.Object(
    { accessConfig, controllerTargetRef, author: Type.Optional(author) },
    { description: 'What the template gives access to, and how.' },
  ),
  status: templateStatus,
  printerColumns: templateColumns,
  shortNames: ['eat'],
});

export type ExecAccessTemplateSpec = ObjectOf<typeof execAccessTemplateKind>['spec'];

/** Requests for a shell in a running pod. */
export const execAccessRequests = accessResource('execaccessrequests', 'ExecAccessRequest');

const fields = {
  ...requestSpec,
  targetPod: Type.Optional(
    objectName('When access opens, it must be a running pod of the workload. If unset, drawbridge chooses one.'),
  ),
};

export const execAccessRequestKind = defineKind({
  resource: execAccessRequests,
  description:
    'An ExecAccessRequest asks for a shell in a running pod through an ExecAccessTemplate. Deleting or revoking it ends access at once, but open sessions only with session.via: Gateway.',
  spec: Type.Object(fields, {
    description: 'Immutable, except that the requester can claim and extend access, and that revoked can become true.',
    'x-kubernetes-validations': specIsFinal(fields),
  }),
  status: requestStatus,
  rules: [grantIsFinal, endIsFinal],
  printerColumns: requestColumns,
  shortNames: ['ear'],
  categories: [accessCategory],
});

export const execAccess = {
  request: execAccessRequestKind,
  template: execAccessTemplateKind,
  createsPod: false,
} as const;
