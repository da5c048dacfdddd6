import { Type } from 'typebox';
import { objectName } from '../schema/fields.ts';
import { defineKind, type ObjectOf } from '../schema/kind.ts';
import { accessResource } from './names.ts';
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
    { description: 'The access that the template gives, its recipients, and its duration.' },
  ),
  status: templateStatus,
  printerColumns: templateColumns,
});

export type ExecAccessTemplateSpec = ObjectOf<typeof execAccessTemplateKind>['spec'];

export const execAccessRequests = accessResource('execaccessrequests', 'ExecAccessRequest');

const fields = {
  ...requestSpec,
  targetPod: Type.Optional(
    objectName(
      'The pod to exec into. It must be a running pod of the template’s workload. If unset, the server chooses one.',
    ),
  ),
};

export const execAccessRequestKind = defineKind({
  resource: execAccessRequests,
  description:
    'An ExecAccessRequest asks for a shell in a running pod through an ExecAccessTemplate. Deleting or revoking it ends access at once.',
  spec: Type.Object(fields, {
    description: 'The requested access. It is immutable, except that revoked can become true.',
    'x-kubernetes-validations': specIsFinal(fields),
  }),
  status: requestStatus,
  rules: [grantIsFinal],
  printerColumns: requestColumns,
});

/** Access to a running pod of a workload. */
export const execAccess = {
  request: execAccessRequestKind,
  template: execAccessTemplateKind,
  createsPod: false,
} as const;
