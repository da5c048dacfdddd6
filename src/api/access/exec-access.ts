import { Type } from 'typebox';
import { objectName } from '../schema/fields.ts';
import { defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { accessConfig } from './access-config.ts';
import { author } from './author.ts';
import { controllerTargetRef } from './controller-target-ref.ts';
import { accessResource } from './names.ts';
import { requestSpec, specIsFinal } from './request-spec.ts';
import { grantIsFinal, requestColumns, requestStatus, templateColumns, templateStatus } from './status.ts';

export const execAccessTemplates = accessResource('execaccesstemplates', 'ExecAccessTemplate');

export const execAccessTemplateKind = defineKind({
  resource: execAccessTemplates,
  description:
    'An ExecAccessTemplate lets the members of some groups ask for a shell in a running pod of a workload, for a while.',
  spec: Type.Object(
    { accessConfig, controllerTargetRef, author: Type.Optional(author) },
    { description: 'What access is given, to whom and for how long.' },
  ),
  status: templateStatus,
  printerColumns: templateColumns,
});

export type ExecAccessTemplate = ObjectOf<typeof execAccessTemplateKind>;
export type ExecAccessTemplateSpec = ExecAccessTemplate['spec'];

export function readExecAccessTemplate(object: unknown): Read<ExecAccessTemplate> {
  return readObject(execAccessTemplateKind, object);
}

export const execAccessRequests = accessResource('execaccessrequests', 'ExecAccessRequest');

const fields = {
  ...requestSpec,
  targetPod: Type.Optional(
    objectName('The pod to get into; it must be a running pod of the template’s workload. Without it one is chosen.'),
  ),
};

export const execAccessRequestKind = defineKind({
  resource: execAccessRequests,
  description:
    'An ExecAccessRequest asks for a shell in a running pod through an ExecAccessTemplate. Deleting or revoking it gives the access back at once.',
  spec: Type.Object(fields, {
    description: 'What is asked for. It cannot be changed later, only revoked.',
    'x-kubernetes-validations': specIsFinal(fields),
  }),
  status: requestStatus,
  rules: [grantIsFinal],
  printerColumns: requestColumns,
});

export type ExecAccessRequest = ObjectOf<typeof execAccessRequestKind>;
export type ExecAccessRequestSpec = ExecAccessRequest['spec'];

export function readExecAccessRequest(object: unknown): Read<ExecAccessRequest> {
  return readObject(execAccessRequestKind, object);
}

/** Access to a running pod of a workload. */
export const execAccess = {
  request: execAccessRequestKind,
  template: execAccessTemplateKind,
  createsPod: false,
} as const;
