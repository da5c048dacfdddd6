import { apiVersionOf, type KubeObject, type ObjectName } from '../api/object.ts';
import { leases } from '../api/resources.ts';
import { formatMicroTime } from '../kit/clock.ts';
import { own } from '../kit/json-value.ts';
import { number, text } from './fields.ts';
import { formatServiceAccount, readServiceAccount, type ServiceAccountId } from './service-account.ts';

/** With which ServiceAccount the holder claimed the Lease. */
export const accountAnnotation = 'drawbridge.dev/holder-account';

/** The spec of a coordination.k8s.io/v1 Lease. */
export interface LeaseRecord {
  /** Empty if no process holds the Lease. */
  readonly holder: string;
  readonly durationSeconds: number | undefined;
  readonly acquireTime: string | undefined;
  readonly renewTime: string | undefined;
  /** How often the holder has changed. */
  readonly transitions: number;
  /** With which ServiceAccount the holder claimed the Lease, if any. */
  readonly account: ServiceAccountId | undefined;
}

/** A field of another type counts as absent; absent transitions count as 0. */
export function readLease({ metadata, spec }: KubeObject): LeaseRecord {
  return {
    holder: text(spec, 'holderIdentity') ?? '',
    durationSeconds: number(spec, 'leaseDurationSeconds'),
    acquireTime: text(spec, 'acquireTime'),
    renewTime: text(spec, 'renewTime'),
    transitions: number(spec, 'leaseTransitions') ?? 0,
    account: readServiceAccount(own(metadata.annotations, accountAnnotation)),
  };
}

export interface LeaseClaim {
  readonly name: ObjectName;
  readonly holder: string;
  readonly account: ServiceAccountId | undefined;
  readonly durationMs: number;
  /** Wall clock, for display only: no process decides by it. */
  readonly nowMs: number;
  /** As last read or written, if it exists. */
  readonly before: KubeObject | undefined;
}

/** To acquire or renew. The resourceVersion of `before` makes a write in between a conflict. */
export function claimLease({ name, holder, account, durationMs, nowMs, before }: LeaseClaim): KubeObject {
  const previous = before && readLease(before);
  const now = formatMicroTime(nowMs);
  const isRenewal = previous?.holder === holder;
  const lease = leaseObject(name, before, {
    holderIdentity: holder,
    leaseDurationSeconds: Math.ceil(durationMs / 1000),
    acquireTime: (isRenewal ? previous?.acquireTime : undefined) ?? now,
    renewTime: now,
    leaseTransitions: previous ? previous.transitions + (isRenewal ? 0 : 1) : 0,
  });
  const { [accountAnnotation]: earlier, ...others } = lease.metadata.annotations ?? {};
  if (!account && earlier === undefined) return lease;
  const annotations = { ...others, ...(account ? { [accountAnnotation]: formatServiceAccount(account) } : {}) };
  return { ...lease, metadata: { ...lease.metadata, annotations } };
}

/** Without a holder, so that the next one need not wait until the Lease expires. */
export function releaseLease(name: ObjectName, before: KubeObject, nowMs: number): KubeObject {
  const now = formatMicroTime(nowMs);
  return leaseObject(name, before, {
    holderIdentity: '',
    leaseDurationSeconds: 1,
    acquireTime: now,
    renewTime: now,
    leaseTransitions: readLease(before).transitions,
  });
}

function leaseObject({ name, namespace }: ObjectName, before: KubeObject | undefined, spec: object): KubeObject {
  const metadata = before ? before.metadata : { name, ...(namespace === undefined ? {} : { namespace }) };
  return { apiVersion: apiVersionOf(leases), kind: leases.kind, metadata, spec };
}

/** No process has written the Lease between the two reads. */
export function sameVersion(a: KubeObject | undefined, b: KubeObject): boolean {
  const resourceVersion = own(a?.metadata, 'resourceVersion');
  return (
    resourceVersion !== undefined &&
    resourceVersion === b.metadata.resourceVersion &&
    a?.metadata.uid === b.metadata.uid
  );
}
