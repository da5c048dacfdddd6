import type { Handler } from '../decision.ts';
import type { AdmissionPorts } from '../ports.ts';
import { entryDetails, entryEvent, grantFor, readEntry } from './pod-entry.ts';

/** Watches who enters which pod: an Event on the pod and an audit line. It never refuses. */
export function watchPod(ports: Pick<AdmissionPorts, 'podEntered' | 'knownPod'>): Handler {
  return {
    decide(review) {
      const entry = readEntry(review);
      if (!review.dryRun) ports.podEntered(entryEvent(entry));
      const pod = ports.knownPod(entry.namespace, entry.pod);
      const grant = grantFor(pod, review.user);
      return {
        details: { ...entryDetails(entry), ...(grant ? { request: grant.request } : {}) },
        ...(pod ? { objectUid: pod.uid } : {}),
      };
    },
  };
}
