import type { RequestSpec } from '../../api/access/kinds.ts';
import type { AuditRecord } from '../../audit/record.ts';
import { own } from '../../kit/json-value.ts';

/** Copied from the spec of a request to audit lines. */
export type AskedFields = Pick<AuditRecord, 'duration' | 'target' | 'startAt' | 'emergency' | 'reason'>;

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
