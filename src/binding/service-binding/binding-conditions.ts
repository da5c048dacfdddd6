import { bindConditions } from '../../api/binding/names.ts';
import { parseTime } from '../../kit/clock.ts';
import { type BindFinding, fails, findCondition, holds, unknown } from '../conditions.ts';
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
  readonly offer: Offer | undefined;
  /** What is wrong with single objects, worst first. */
  readonly problems: readonly string[];
  /** False for a while after the provider was read anew: what is wrong with single objects is yet to be found out. */
  readonly settled: boolean;
  /** While it is being deleted: what it waits for. */
  readonly unbinding: Unbinding | undefined;
  readonly nowMs: number;
}

/** What the provider has for the binding. */
export interface Offer {
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

export interface Unbinding {
  /** True when it cannot go on by itself. */
  readonly blocked: boolean;
  readonly message: string;
}

/** How many problems are told; one condition is no place for thousands. */
const mostProblems = 5;
/** Problems of single objects come and go; what is said of them is renewed no more often than this, milliseconds. */
export const problemsStandMs = 60_000;

const tryingOn = 'It goes on trying; check that the provider can be reached from here and accepts the kubeconfig';

/** All that was found out; what could not be is left as it was said before. */
export function bindingFindings(facts: BindingFacts): BindFinding[] {
  return [secretFinding(facts), ...sessionFindings(facts), connectedFinding(facts), schemaFinding(facts)].filter(
    (finding) => finding !== undefined,
  );
}

function secretFinding({ lookup }: BindingFacts): BindFinding | undefined {
  if (lookup.kind === 'pending') return undefined;
  return lookup.kind === 'session' ? holds(secretValid) : fails(secretValid, 'Error', lookup.reason, lookup.message);
}

function sessionFindings(facts: BindingFacts): BindFinding[] {
  const { binding, lookup, state, heartbeat } = facts;
  if (lookup.kind === 'invalid' && !state) {
    // Nothing is known of the provider any more, so nothing may go on being True.
    return [informersSynced, heartbeating, connected, schemaInSync]
      .filter((type) => findCondition(binding.conditions, type))
      .map((type) => unknown(type, lookup.reason, `the kubeconfig cannot be used, see ${secretValid}`));
  }
  const informers = informersFinding(facts);
  const heart = heartbeatFinding(heartbeat);
  return [...(informers ? [informers] : []), ...(heart ? [heart] : [])];
}

function informersFinding(facts: BindingFacts): BindFinding | undefined {
  const { binding, state, offer } = facts;
  switch (state?.kind) {
    case 'synced':
      return servedFinding(facts, offer?.unserved ?? []);
    case 'unreachable':
      return fails(informersSynced, 'Error', 'InformerSyncTimeout', `${state.message}. ${tryingOn}`);
    case 'connecting':
      if (state.problem !== undefined) {
        const message = `the provider could not be read so far: ${state.problem}. ${tryingOn}`;
        return fails(informersSynced, 'Warning', 'InformersSyncing', message);
      }
      // After a restart the last word stands until there is a new one; a new binding must not look ready.
      return findCondition(binding.conditions, informersSynced)?.status === 'True'
        ? undefined
        : fails(informersSynced, 'Info', 'InformersSyncing', 'reading what the provider offers');
    case undefined:
      return undefined;
  }
}

/** Whoever has waited for `Ready` may create objects at once. */
function servedFinding({ binding, problems }: BindingFacts, unserved: readonly Unserved[]): BindFinding | undefined {
  if (unserved.length === 0) return holds(informersSynced);
  // After a restart nothing has been listed either, and what could be used goes on being so, unless that lasts.
  const wasServed = [informersSynced, schemaInSync].every(
    (type) => findCondition(binding.conditions, type)?.status === 'True',
  );
  if (wasServed && problems.length === 0 && unserved.every(({ established }) => established)) return undefined;
  const names = unserved.map(({ crd }) => crd).join(', ');
  const message = `the API server of this cluster has not listed any ${names} yet; if that lasts, see that the konnector may list and watch them`;
  return fails(informersSynced, 'Info', 'InformersSyncing', message);
}

function heartbeatFinding(heartbeat: Heartbeat | undefined): BindFinding | undefined {
  if (!heartbeat) return undefined;
  return heartbeat.ok
    ? holds(heartbeating)
    : fails(heartbeating, 'Warning', 'ClusterBindingUpdateFailed', heartbeat.message);
}

function connectedFinding(facts: BindingFacts): BindFinding | undefined {
  const { binding, offer, unbinding } = facts;
  if (unbinding) return fails(connected, unbinding.blocked ? 'Warning' : 'Info', 'Unbinding', unbinding.message);
  if (!offer) return undefined;
  const { exported, outcomes, claims } = offer;
  if (!exported) return noExport(binding, offer);
  if (exported.unreadable !== undefined)
    return fails(connected, 'Error', 'APIServiceExportInvalid', unreadable(exported));
  const refusals = ofKind(outcomes, 'refused');
  if (refusals[0]) return fails(connected, 'Error', refusals[0].reason, messagesOf(refusals));
  if (outcomes.some(({ kind }) => kind === 'again')) return undefined;
  if (claims.problem !== undefined) return fails(connected, 'Warning', 'InvalidClaimableAnnotation', claims.problem);
  if (claims.refused.length > 0) {
    const names = claims.refused.join(', ');
    return fails(
      connected,
      'Warning',
      'InvalidPermissionClaim',
      `the provider claims ${names}, which is not shared; only configmaps, secrets and serviceaccounts of the core group may be claimed`,
    );
  }
  return objectsFinding(facts);
}

function objectsFinding({ binding, heartbeat, problems, settled, nowMs }: BindingFacts): BindFinding | undefined {
  if (problems.length === 0) return !settled && hasObjectsOutOfSync(binding) ? undefined : holds(connected);
  // A provider that is away says so once, by its heartbeat.
  if (heartbeat && !heartbeat.ok) return undefined;
  const said = findCondition(binding.conditions, connected);
  const since = said?.reason === 'ObjectsNotInSync' ? parseTime(said.lastTransitionTime) : undefined;
  if (since !== undefined && nowMs - since < problemsStandMs) return undefined;
  return fails(connected, 'Warning', 'ObjectsNotInSync', told(problems));
}

/** Whether it was said last that single objects are not in step. */
export const hasObjectsOutOfSync = ({ conditions }: BindingView): boolean =>
  findCondition(conditions, connected)?.reason === 'ObjectsNotInSync';

function noExport({ name }: BindingView, { clusterNamespace, request }: Offer): BindFinding {
  if (request?.phase === 'Failed') {
    const why = request.terminalMessage || 'it gives no reason';
    return fails(connected, 'Error', 'APIServiceExportFailed', `the provider refused the request for ${name}: ${why}`);
  }
  return fails(
    connected,
    'Error',
    'APIServiceExportNotFound',
    `the provider has no APIServiceExport ${name} in its namespace ${clusterNamespace}; request it with kubectl bind, or delete this binding`,
  );
}

const unreadable = ({ name, unreadable: why = '' }: ExportView): string =>
  `APIServiceExport ${name} of the provider cannot be read: ${why}. Its objects are not kept in step, and nothing is deleted; the provider has to correct it`;

function schemaFinding({ offer, unbinding }: BindingFacts): BindFinding | undefined {
  if (!offer || unbinding) return undefined;
  const { exported, outcomes, clusterNamespace } = offer;
  if (!exported) {
    const message = `there is no APIServiceExport in ${clusterNamespace} to compare with`;
    return unknown(schemaInSync, 'APIServiceExportNotFound', message);
  }
  if (exported.unreadable !== undefined) return unknown(schemaInSync, 'APIServiceExportInvalid', unreadable(exported));
  const refusals = ofKind(outcomes, 'refused');
  const late = ofKind(outcomes, 'outOfSync');
  if (refusals[0]) return fails(schemaInSync, 'Error', refusals[0].reason, messagesOf([...refusals, ...late]));
  if (late[0]) return fails(schemaInSync, 'Warning', late[0].reason, messagesOf(late));
  return outcomes.some(({ kind }) => kind === 'again') ? undefined : holds(schemaInSync);
}

function ofKind<Kind extends CrdOutcome['kind']>(outcomes: readonly CrdOutcome[], kind: Kind) {
  return outcomes.filter((outcome): outcome is Extract<CrdOutcome, { kind: Kind }> => outcome.kind === kind);
}

const messagesOf = (outcomes: readonly { readonly message: string }[]): string =>
  outcomes.map(({ message }) => message).join('. ');

function told(problems: readonly string[]): string {
  const more = problems.length - mostProblems;
  return [...problems.slice(0, mostProblems), ...(more > 0 ? [`and ${more} more`] : [])].join('. ');
}
