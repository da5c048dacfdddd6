import type { RequestSpec } from '../../api/access/kinds.ts';
import type { AuditRecord } from '../../audit/record.ts';
import { own } from '../../kit/json-value.ts';

/** The fields of an audit line that are copied from the spec of a request. */
export type AskedFields = Pick<AuditRecord, 'duration' | 'target' | 'startAt' | 'emergency' | 'reason'>;

/** Picks the `AskedFields` from the spec of a request. Omits unset fields, and `emergency` if it is false. */
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
