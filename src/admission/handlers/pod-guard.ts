import type { Review } from '../codec.ts';
import { type Decision, type Handler, refuse } from '../decision.ts';
import type { AdmissionPorts, EnteredPod } from '../ports.ts';
import { type Entry, entryDetails, entryEvent, grantFor, readEntry } from './pod-entry.ts';

type Ports = Pick<AdmissionPorts, 'enteredPod' | 'breakGlassGroup' | 'podEntered'>;

/**
 * Guards the pods that we made: whoever else has rights on pods of the namespace has no business in them. It is told only of pods
 * with a name like ours; the pods of others among them are open to whom they were open before.
 */
export function guardPod(ports: Ports): Handler {
  return {
    async decide(review, signal) {
      const entry = readEntry(review);
      const details = entryDetails(entry);
      const pod = await ports.enteredPod(entry.namespace, entry.pod, signal);
      if (!pod) {
        const message = `there is no pod ${entry.pod} in namespace ${entry.namespace}`;
        return refuse({ code: 'PodNotFound', message, status: 404 }, details);
      }
      const decision = decide(entry, review, pod, ports);
      return { ...decision, objectUid: pod.uid, details: { ...details, ...decision.details } };
    },
  };
}

function decide(entry: Entry, { user, dryRun }: Review, pod: EnteredPod, ports: Ports): Decision {
  const grant = grantFor(pod, user);
  if (grant || !pod.ours) {
    if (!dryRun) ports.podEntered(entryEvent(entry));
    return grant ? { details: { request: grant.request } } : {};
  }
  const request = pod.grants[0]?.request;
  const details = request === undefined ? {} : { request };
  if (ports.breakGlassGroup !== undefined && user.groups.includes(ports.breakGlassGroup)) {
    if (!dryRun) ports.podEntered({ ...entryEvent(entry, 'Warning'), reason: 'BreakGlass' });
    const message = 'entered by the break-glass group';
    return { details: { ...details, code: 'BreakGlass', message }, opensAccess: true };
  }
  return refuse(request === undefined ? ended(entry) : opened(entry, request), details);
}

const opened = ({ pod }: Entry, request: string) => ({
  code: 'NotYourPod',
  message: `pod ${pod} was opened for those whom PodAccessRequest ${request} lets in, and for nobody else; ask for one of your own`,
  status: 403,
});

const ended = ({ pod }: Entry) => ({
  code: 'AccessEnded',
  message: `no request gives access to pod ${pod} any more, and it is about to be deleted; make a new request`,
  status: 403,
});
