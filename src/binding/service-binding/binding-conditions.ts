import { bindConditions } from '../../api/binding/names.ts';
import { parseTime } from '../../kit/clock.ts';
import {
  type BindConditionUpdate,
  conditionFalse,
  conditionTrue,
  conditionUnknown,
  findCondition,
} from '../conditions.ts';
import type { Heartbeat, SessionLookup, SessionState } from '../sessions/provider-session.ts';
import type { BindingView } from '../stores/consumer-stores.ts';
import type { ExportRequestView, ExportView } from '../stores/provider-stores.ts';
import type { CrdOutcome } from './crd-outcome.ts';
import type { JudgedClaims } from './sync-plan.ts';

const { connected, heartbeating, informersSynced, schemaInSync, secretValid } = bindConditions;

/** Everything that the conditions of an APIServiceBinding follow from. */
export interface BindingFacts {
  readonly binding: BindingView;
  readonly lookup: SessionLookup;
  /** Of the session that serves it; undefined without one. */
  readonly state: SessionState | undefined;
  readonly heartbeat: Heartbeat | undefined;
  /** Undefined while the provider's objects are not known. */
  readonly exportFacts: ExportFacts | undefined;
  /** What is wrong with single objects, worst first. */
  readonly problems: readonly string[];
  /** False for a while after the provider was read anew: what is wrong with single objects is yet to be found out. */
  readonly settled: boolean;
  /** While it is being deleted: what it waits for. */
  readonly unbindProgress: UnbindProgress | undefined;
  readonly nowMs: number;
}

/** What the provider has for the binding. */
export interface ExportFacts {
  readonly clusterNamespace: string;
  readonly exported: ExportView | undefined;
  readonly request: ExportRequestView | undefined;
  /** One for each exported resource. */
  readonly outcomes: readonly CrdOutcome[];
  /** What is defined here as it should be, and cannot be used yet. */
  readonly unserved: readonly Unserved[];
  readonly claims: JudgedClaims;
}

export interface Unserved {
  /** Name of the CustomResourceDefinition. */
  readonly crd: string;
  readonly established: boolean;
}

export interface UnbindProgress {
  /** True when it cannot go on by itself. */
  readonly blocked: boolean;
  readonly message: string;
}

/** How many problems are told; one condition is no place for thousands. */
const maxProblems = 5;
/** Problems of single objects come and go; what is said of them is renewed no more often than this, milliseconds. */
export const problemsRefreshMs = 60_000;

const retryNote = 'It goes on trying; check that the provider can be reached from here and accepts the kubeconfig';

/** All that was found out; what could not be is left as it was said before. */
export function bindingConditions(facts: BindingFacts): BindConditionUpdate[] {
  return [
    secretCondition(facts),
    ...sessionConditions(facts),
    connectedCondition(facts),
    schemaCondition(facts),
  ].filter((update) => update !== undefined);
}

function secretCondition({ lookup }: BindingFacts): BindConditionUpdate | undefined {
  if (lookup.kind === 'pending') return undefined;
  return lookup.kind === 'session'
    ? conditionTrue(secretValid)
    : conditionFalse(secretValid, 'Error', lookup.reason, lookup.message);
}

function sessionConditions(facts: BindingFacts): BindConditionUpdate[] {
  const { binding, lookup, state, heartbeat } = facts;
  if (lookup.kind === 'invalid' && !state) {
    // Nothing is known of the provider any more, so nothing may go on being True.
    return [informersSynced, heartbeating, connected, schemaInSync]
      .filter((type) => findCondition(binding.conditions, type))
      .map((type) => conditionUnknown(type, lookup.reason, `the kubeconfig cannot be used, see ${secretValid}`));
  }
  const informers = informersCondition(facts);
  const heart = heartbeatCondition(heartbeat);
  return [...(informers ? [informers] : []), ...(heart ? [heart] : [])];
}

function informersCondition(facts: BindingFacts): BindConditionUpdate | undefined {
  const { binding, state, exportFacts } = facts;
  switch (state?.kind) {
    case 'synced':
      return servedCondition(facts, exportFacts?.unserved ?? []);
    case 'unreachable':
      return conditionFalse(informersSynced, 'Error', 'InformerSyncTimeout', `${state.message}. ${retryNote}`);
    case 'connecting':
      if (state.problem !== undefined) {
        const message = `the provider could not be read so far: ${state.problem}. ${retryNote}`;
        return conditionFalse(informersSynced, 'Warning', 'InformersSyncing', message);
      }
      // After a restart the last word stands until there is a new one; a new binding must not look ready.
      return findCondition(binding.conditions, informersSynced)?.status === 'True'
        ? undefined
        : conditionFalse(informersSynced, 'Info', 'InformersSyncing', 'reading what the provider offers');
    case undefined:
      return undefined;
  }
}

/** Whoever has waited for `Ready` may create objects at once. */
function servedCondition(
  { binding, problems }: BindingFacts,
  unserved: readonly Unserved[],
): BindConditionUpdate | undefined {
  if (unserved.length === 0) return conditionTrue(informersSynced);
  // After a restart nothing has been listed either, and what could be used goes on being so, unless that lasts.
  const wasServed = [informersSynced, schemaInSync].every(
    (type) => findCondition(binding.conditions, type)?.status === 'True',
  );
  if (wasServed && problems.length === 0 && unserved.every(({ established }) => established)) return undefined;
  const names = unserved.map(({ crd }) => crd).join(', ');
  const message = `the API server of this cluster has not listed any ${names} yet; if that lasts, see that the konnector may list and watch them`;
  return conditionFalse(informersSynced, 'Info', 'InformersSyncing', message);
}

function heartbeatCondition(heartbeat: Heartbeat | undefined): BindConditionUpdate | undefined {
  if (!heartbeat) return undefined;
  return heartbeat.ok
    ? conditionTrue(heartbeating)
    : conditionFalse(heartbeating, 'Warning', 'ClusterBindingUpdateFailed', heartbeat.message);
}

function connectedCondition(facts: BindingFacts): BindConditionUpdate | undefined {
  const { binding, exportFacts, unbindProgress } = facts;
  if (unbindProgress)
    return conditionFalse(connected, unbindProgress.blocked ? 'Warning' : 'Info', 'Unbinding', unbindProgress.message);
  if (!exportFacts) return undefined;
  const { exported, outcomes, claims } = exportFacts;
  if (!exported) return noExportCondition(binding, exportFacts);
  if (exported.unreadable !== undefined)
    return conditionFalse(connected, 'Error', 'APIServiceExportInvalid', unreadable(exported));
  const refusals = ofKind(outcomes, 'refused');
  if (refusals[0]) return conditionFalse(connected, 'Error', refusals[0].reason, messagesOf(refusals));
  if (outcomes.some(({ kind }) => kind === 'again')) return undefined;
  if (claims.problem !== undefined)
    return conditionFalse(connected, 'Warning', 'InvalidClaimableAnnotation', claims.problem);
  if (claims.refused.length > 0) {
    const names = claims.refused.join(', ');
    return conditionFalse(
      connected,
      'Warning',
      'InvalidPermissionClaim',
      `the provider claims ${names}, which is not shared; only configmaps, secrets and serviceaccounts of the core group may be claimed`,
    );
  }
  return objectsCondition(facts);
}

function objectsCondition({
  binding,
  heartbeat,
  problems,
  settled,
  nowMs,
}: BindingFacts): BindConditionUpdate | undefined {
  if (problems.length === 0) return !settled && hasObjectsOutOfSync(binding) ? undefined : conditionTrue(connected);
  // A provider that is away says so once, by its heartbeat.
  if (heartbeat && !heartbeat.ok) return undefined;
  const said = findCondition(binding.conditions, connected);
  const since = said?.reason === 'ObjectsNotInSync' ? parseTime(said.lastTransitionTime) : undefined;
  if (since !== undefined && nowMs - since < problemsRefreshMs) return undefined;
  return conditionFalse(connected, 'Warning', 'ObjectsNotInSync', joinProblems(problems));
}

/** Whether it was said last that single objects are not in step. */
export const hasObjectsOutOfSync = ({ conditions }: BindingView): boolean =>
  findCondition(conditions, connected)?.reason === 'ObjectsNotInSync';

function noExportCondition({ name }: BindingView, { clusterNamespace, request }: ExportFacts): BindConditionUpdate {
  if (request?.phase === 'Failed') {
    const why = request.terminalMessage || 'it gives no reason';
    return conditionFalse(
      connected,
      'Error',
      'APIServiceExportFailed',
      `the provider refused the request for ${name}: ${why}`,
    );
  }
  return conditionFalse(
    connected,
    'Error',
    'APIServiceExportNotFound',
    `the provider has no APIServiceExport ${name} in its namespace ${clusterNamespace}; request it with kubectl bind, or delete this binding`,
  );
}

const unreadable = ({ name, unreadable: why = '' }: ExportView): string =>
  `APIServiceExport ${name} of the provider cannot be read: ${why}. Its objects are not kept in step, and nothing is deleted; the provider has to correct it`;

function schemaCondition({ exportFacts, unbindProgress }: BindingFacts): BindConditionUpdate | undefined {
  if (!exportFacts || unbindProgress) return undefined;
  const { exported, outcomes, clusterNamespace } = exportFacts;
  if (!exported) {
    const message = `there is no APIServiceExport in ${clusterNamespace} to compare with`;
    return conditionUnknown(schemaInSync, 'APIServiceExportNotFound', message);
  }
  if (exported.unreadable !== undefined)
    return conditionUnknown(schemaInSync, 'APIServiceExportInvalid', unreadable(exported));
  const refusals = ofKind(outcomes, 'refused');
  const late = ofKind(outcomes, 'outOfSync');
  if (refusals[0]) return conditionFalse(schemaInSync, 'Error', refusals[0].reason, messagesOf([...refusals, ...late]));
  if (late[0]) return conditionFalse(schemaInSync, 'Warning', late[0].reason, messagesOf(late));
  return outcomes.some(({ kind }) => kind === 'again') ? undefined : conditionTrue(schemaInSync);
}

function ofKind<Kind extends CrdOutcome['kind']>(outcomes: readonly CrdOutcome[], kind: Kind) {
  return outcomes.filter((outcome): outcome is Extract<CrdOutcome, { kind: Kind }> => outcome.kind === kind);
}

const messagesOf = (outcomes: readonly { readonly message: string }[]): string =>
  outcomes.map(({ message }) => message).join('. ');

function joinProblems(problems: readonly string[]): string {
  const more = problems.length - maxProblems;
  return [...problems.slice(0, maxProblems), ...(more > 0 ? [`and ${more} more`] : [])].join('. ');
}
