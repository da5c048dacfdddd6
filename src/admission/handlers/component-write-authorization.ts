import { runIdOf } from '../../api/inventory/names.ts';
import { writeViolation } from '../../inventory/policy/component-write.ts';
import { parseComponentAccount, writeAuthorizationViolation } from '../../inventory/policy/run-authorization.ts';
import { noSuchRunCode } from '../../inventory/policy/violation.ts';
import { own } from '../../kit/json-value.ts';
import type { Review, UserInfo } from '../codec.ts';
import { type Decision, deny, type Handler } from '../decision.ts';
import type { InventoryPorts } from '../ports.ts';

type Ports = Pick<InventoryPorts, 'latestRun' | 'writesOf' | 'recordDeniedWrite' | 'clock'>;

/** Status writes need the token of the current run, and change only the component's paths. */
export function authorizeComponentWrite(ports: Ports): Handler {
  return {
    async decide(review, signal) {
      const decision = await decide(review, ports, signal);
      if (decision.denial && !review.dryRun) ports.recordDeniedWrite(decision.denial.code);
      return decision;
    },
  };
}

async function decide(review: Review, { latestRun, writesOf, clock }: Ports, signal: AbortSignal): Promise<Decision> {
  const account = parseComponentAccount(review.user.username);
  if (!account) {
    const { username } = review.user;
    return denyWrite(
      `${username} may not write the status of an entry: names of ServiceAccounts that begin with inventory- are reserved for components, as inventory-ENTRY_UID.COMPONENT; use a ServiceAccount with another name`,
    );
  }
  const { entryUid, component } = account;
  if (account.namespace !== review.namespace || uidOf(review) !== entryUid) {
    return denyWrite(
      `this account of component ${component} belongs to another entry; use the token of this entry's run`,
      { component },
    );
  }
  const ref = { namespace: account.namespace, name: review.name, uid: entryUid };
  const run = await latestRun(ref, component, signal);
  const details = { component, ...(run ? { run: runIdOf(entryUid, component, run.spec.seq) } : {}) };
  const runViolation = writeAuthorizationViolation(
    run?.spec,
    { entryUid, component, credentialId: credentialOf(review.user) },
    clock.now(),
  );
  if (runViolation) return deny(runViolation, details);
  const writes = await writesOf(component, signal);
  if (!writes) {
    const found = `component ${component} is not registered; only registered components may write`;
    return denyWrite(`${found}; create ComponentReconciler ${component}`, details);
  }
  const writer = { component, entryUid, writes };
  const violation = writeViolation(writer, own(review.oldObject, 'status'), own(review.object, 'status'));
  return violation ? deny(violation, details) : { details };
}

const denyWrite = (message: string, details?: Decision['details']): Decision =>
  deny({ code: noSuchRunCode, message, status: 403 }, details);

const uidOf = ({ oldObject }: Review): unknown => own(own(oldObject, 'metadata'), 'uid');

/** Only who may impersonate the ServiceAccount and this extra field can choose it. */
function credentialOf({ extra }: UserInfo): string | undefined {
  const ids = own(extra, 'authentication.kubernetes.io/credential-id');
  return Array.isArray(ids) && ids.length === 1 ? ids[0] : undefined;
}
