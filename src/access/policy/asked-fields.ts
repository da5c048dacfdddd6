import type { RequestSpec } from '../../api/access/kinds.ts';
import type { AuditRecord } from '../../audit/record.ts';
import { own } from '../../kit/json-value.ts';

/** The fields of an audit line that say what a request asks for. */
export type AskedFields = Pick<AuditRecord, 'duration' | 'target' | 'startAt' | 'emergency' | 'reason'>;

/** Picks the `AskedFields` from the spec of a request. Omits those that are not set. */
export function askedFields(spec: RequestSpec): AskedFields {
  const { duration, startAt, emergency, reason } = spec;
  const target = own(spec, 'targetPod');
  return {
    ...(duration === undefined ? {} : { duration }),
    ...(typeof target === 'string' ? { target } : {}),
    ...(startAt === undefined ? {} : { startAt }),
    ...(emergency ? { emergency } : {}),
    ...(reason === undefined ? {} : { reason }),
  };
}
