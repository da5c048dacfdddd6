import { Type } from 'typebox';
import { defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { accessResource } from './names.ts';
import { requestColumns } from './printer-columns.ts';
import { requestSpec, specIsFinal } from './request-spec.ts';
import { grantIsFinal, requestStatus } from './status.ts';

export const podAccessRequests = accessResource('podaccessrequests', 'PodAccessRequest');

export const podAccessRequestKind = defineKind({
  resource: podAccessRequests,
  description:
    'A PodAccessRequest asks for a pod of one’s own through a PodAccessTemplate. Deleting or revoking it gives the access back at once.',
  spec: Type.Object(requestSpec, {
    description: 'What is asked for. It cannot be changed later, only revoked.',
    'x-kubernetes-validations': specIsFinal(requestSpec),
  }),
  status: requestStatus,
  rules: [grantIsFinal],
  printerColumns: requestColumns,
});

export type PodAccessRequest = ObjectOf<typeof podAccessRequestKind>;
export type PodAccessRequestSpec = PodAccessRequest['spec'];

export function readPodAccessRequest(object: unknown): Read<PodAccessRequest> {
  return readObject(podAccessRequestKind, object);
}
