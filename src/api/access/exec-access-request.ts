import { Type } from 'typebox';
import { objectName } from '../schema/fields.ts';
import { defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { accessResource } from './names.ts';
import { requestColumns } from './printer-columns.ts';
import { requestSpec, specIsFinal } from './request-spec.ts';
import { grantIsFinal, requestStatus } from './status.ts';

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
