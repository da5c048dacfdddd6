import { apiVersionOf, type Resource } from '../api/object.ts';
import type { AuditRecord } from '../audit/record.ts';
import type { ChildView, RequestView } from './stores/views.ts';

/** Something of ours, wherever it is kept. */
export interface Child extends ChildView {
  readonly resource: Resource;
}

/**
 * The audit line of an object that no live request accounts for. Who had it is known only while the request still stands; otherwise
 * the line of the grant tells, under the uid in the message.
 */
export function orphanRecord({ resource, namespace, name, uid, madeFor }: Child, request?: RequestView): AuditRecord {
  const { requester, templateName } = request?.spec ?? {};
  return {
    event: 'revocation',
    verdict: 'revoked',
    who: { user: requester?.username ?? '', uid: requester?.uid ?? '', groups: requester?.groups ?? [] },
    what: {
      operation: 'REVOKE',
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      namespace,
      name,
      uid,
    },
    ...(templateName === undefined ? {} : { template: templateName }),
    code: 'Orphaned',
    message: request
      ? `request ${request.name} (uid ${madeFor.uid}) does not account for it`
      : `its request (uid ${madeFor.uid}) is gone and did not close it`,
  };
}
