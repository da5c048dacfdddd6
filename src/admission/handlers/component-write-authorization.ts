import { runIdOf } from '../../api/inventory/names.ts';
import { writeViolation } from '../../inventory/policy/component-write.ts';
import { readComponentAccount, writeAuthorizationViolation } from '../../inventory/policy/run-authorization.ts';
import { noSuchRunCode } from '../../inventory/policy/violation.ts';
import { own } from '../../kit/json-value.ts';
import type { Review, UserInfo } from '../codec.ts';
import { type Decision, type Handler, refuse } from '../decision.ts';
import type { InventoryPorts } from '../ports.ts';

type Ports = Pick<InventoryPorts, 'latestRun' | 'writesOf' | 'fenced' | 'clock'>;

/** Validating webhook of what components write into the status of an entry: with the token of the run that is on, where they may. */
export function authorizeComponentWrite(ports: Ports): Handler {
  return {
    async decide(review, signal) {
      const decision = await decide(review, ports, signal);
      if (decision.refusal && !review.dryRun) ports.fenced(decision.refusal.code);
      return decision;
    },
  };
}

async function decide(review: Review, { latestRun, writesOf, clock }: Ports, signal: AbortSignal): Promise<Decision> {
  const account = readComponentAccount(review.user.username);
  if (!account) return noRun(`${review.user.username} is no account that was made for a component`);
  const { entryUid, component } = account;
  if (account.namespace !== review.namespace || uidOf(review) !== entryUid) {
    return noRun(`component ${component} has this account for another entry`, { component });
  }
  const run = await latestRun(account.namespace, entryUid, component, signal);
  const details = { component, ...(run ? { run: runIdOf(entryUid, component, run.spec.seq) } : {}) };
  const fenced = writeAuthorizationViolation(
    run?.spec,
    { entryUid, component, credentialId: credentialOf(review.user) },
    clock.now(),
  );
  if (fenced) return refuse(fenced, details);
  const writes = await writesOf(component, signal);
  if (!writes) return noRun(`component ${component} is not registered, so nobody knows what it may write`, details);
  const writer = { component, entryUid, writes };
  const violation = writeViolation(writer, own(review.oldObject, 'status'), own(review.object, 'status'));
  return violation ? refuse(violation, details) : { details };
}

const noRun = (message: string, details?: Decision['details']): Decision =>
  refuse({ code: noSuchRunCode, message, status: 403 }, details);

const uidOf = ({ oldObject }: Review): unknown => own(own(oldObject, 'metadata'), 'uid');

/** What the API server says of the token; nobody else can. */
function credentialOf({ extra }: UserInfo): string | undefined {
  const ids = own(extra, 'authentication.kubernetes.io/credential-id');
  return Array.isArray(ids) && ids.length === 1 ? ids[0] : undefined;
}
