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
import { refusedWatchMessages } from '../sync-engine/refused-watches.ts';
import type { RefusedWatch } from '../sync-engine/syncer.ts';
import type { CrdOutcome } from './crd-outcome.ts';
import type { JudgedClaims } from './sync-plan.ts';
import type { UnbindProgress } from './unbind-plan.ts';

const { connected, heartbeating, informersSynced, schemaInSync, secretValid } = bindConditions;

export interface BindingFacts {
  readonly binding: BindingView;
  readonly lookup: SessionLookup;
  readonly state: SessionState | undefined;
  readonly heartbeat: Heartbeat | undefined;
  /** While the stores of the session are synced and the binding is not being deleted. */
  readonly exportFacts: ExportFacts | undefined;
  readonly problems: readonly string[];
  /** Of bound kinds, claimed kinds, and the session's stores. */
  readonly refusedWatches: readonly RefusedWatch[];
  /** Set while the binding is being deleted. */
  readonly unbindProgress: UnbindProgress | undefined;
  readonly nowMs: number;
}

export interface ExportFacts {
  readonly clusterNamespace: string;
  readonly exported: ExportView | undefined;
  readonly request: ExportRequestView | undefined;
  /** One for each resource, or only a failed write of the finalizer. */
  readonly outcomes: readonly CrdOutcome[];
  /** CRDs whose objects no syncer has listed yet. Empty unless all outcomes are `inSync`. */
  readonly unserved: readonly string[];
  readonly claims: JudgedClaims;
}

const maxNamed = 5;
/** At most this often, problems of single objects change a condition. */
export const problemsRefreshMs = 60_000;

const retryNote =
  'the server keeps retrying; check that it can reach the provider, and that the provider accepts the kubeconfig and permits these reads';

/** A condition without an update keeps its value. */
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
    // The state of the provider is unknown, so no condition may stay True.
    return [informersSynced, heartbeating, connected, schemaInSync]
      .filter((type) => findCondition(binding.conditions, type))
      .map((type) =>
        conditionUnknown(type, lookup.reason, `the kubeconfig cannot be used; see condition ${secretValid}`),
      );
  }
  const informers = informersCondition(facts);
  const heartbeatUpdate = heartbeatCondition(heartbeat);
  return [...(informers ? [informers] : []), ...(heartbeatUpdate ? [heartbeatUpdate] : [])];
}

function informersCondition({ state, exportFacts }: BindingFacts): BindConditionUpdate | undefined {
  switch (state?.kind) {
    case 'synced':
      return servedCondition(exportFacts?.unserved ?? []);
    case 'unreachable':
      return conditionFalse(informersSynced, 'Error', 'InformerSyncTimeout', `${state.message}; ${retryNote}`);
    case 'connecting':
      if (state.problem !== undefined) {
        const message = `the provider's objects could not be read: ${state.problem}; ${retryNote}`;
        return conditionFalse(informersSynced, 'Warning', 'InformersSyncing', message);
      }
      return conditionFalse(informersSynced, 'Info', 'InformersSyncing', 'waiting for the lists of the provider');
    case undefined:
      return undefined;
  }
}

/** Not True while kinds are unserved: clients that wait for `Ready` create objects at once. */
function servedCondition(unserved: readonly string[]): BindConditionUpdate {
  if (unserved.length === 0) return conditionTrue(informersSynced);
  const message = `the konnector has not listed the objects of ${joinFirst(unserved, ', ')} in this cluster yet; if that lasts, check that it has permission to list and watch them, and read the conditions of the CustomResourceDefinition: kubectl describe crd ${unserved[0]}`;
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
  if (exported.specProblem !== undefined)
    return conditionFalse(connected, 'Error', 'APIServiceExportInvalid', invalidExport(exported));
  const refused = ofKind(outcomes, 'refused');
  if (refused[0]) return conditionFalse(connected, 'Error', refused[0].reason, messagesOf(refused));
  if (outcomes.some(({ kind }) => kind === 'conflict')) return undefined;
  if (claims.problem !== undefined)
    return conditionFalse(connected, 'Warning', 'InvalidClaimableAnnotation', claims.problem);
  if (claims.refused.length > 0) {
    const names = claims.refused.join(', ');
    return conditionFalse(
      connected,
      'Warning',
      'InvalidPermissionClaim',
      `the provider claims ${names}, which is not shared; a provider may claim configmaps, secrets, and serviceaccounts of the core group; ask the provider to remove the claim`,
    );
  }
  return objectsCondition(facts);
}

function objectsCondition({
  binding,
  exportFacts,
  heartbeat,
  problems,
  refusedWatches,
  nowMs,
}: BindingFacts): BindConditionUpdate | undefined {
  // At once: the message names kinds instead of objects, so it seldom changes.
  if (refusedWatches.length > 0)
    return conditionFalse(connected, 'Warning', 'WatchRefused', refusedWatchMessages(refusedWatches).join('. '));
  const current = findCondition(binding.conditions, connected);
  const wasOutOfSync = current?.reason === 'ObjectsNotInSync';
  if (problems.length === 0) {
    // After a restart, the syncers find problems again once they have listed the objects.
    return wasOutOfSync && exportFacts?.unserved.length ? undefined : conditionTrue(connected);
  }
  // Heartbeating reports an unreachable provider.
  if (heartbeat && !heartbeat.ok) return undefined;
  const since = wasOutOfSync ? parseTime(current.lastTransitionTime) : undefined;
  if (since !== undefined && nowMs - since < problemsRefreshMs) return undefined;
  return conditionFalse(connected, 'Warning', 'ObjectsNotInSync', joinFirst(problems, '. '));
}

function noExportCondition({ name }: BindingView, { clusterNamespace, request }: ExportFacts): BindConditionUpdate {
  if (request?.phase === 'Failed') {
    const why = request.terminalMessage || 'no reason given';
    return conditionFalse(
      connected,
      'Error',
      'APIServiceExportFailed',
      `the provider rejected the APIServiceExportRequest ${name}: ${why}; ask the provider to allow it and run kubectl bind again, or delete this binding, with the objects of the kinds that it bound`,
    );
  }
  return conditionFalse(
    connected,
    'Error',
    'APIServiceExportNotFound',
    `the provider has no APIServiceExport ${name} in namespace ${clusterNamespace}; request it with kubectl bind, or delete this binding, with the objects of the kinds that it bound`,
  );
}

const invalidExport = ({ name, specProblem: why = '' }: ExportView): string =>
  `APIServiceExport ${name} of the provider is not valid: ${why}; its objects are neither synced nor deleted; ask the provider to correct it`;

function schemaCondition({ binding, exportFacts, unbindProgress }: BindingFacts): BindConditionUpdate | undefined {
  if (!exportFacts || unbindProgress) return undefined;
  const { exported, outcomes, clusterNamespace } = exportFacts;
  if (!exported) {
    const message = `the provider has no APIServiceExport ${binding.name} in namespace ${clusterNamespace}; see condition ${connected}`;
    return conditionUnknown(schemaInSync, 'APIServiceExportNotFound', message);
  }
  if (exported.specProblem !== undefined)
    return conditionUnknown(schemaInSync, 'APIServiceExportInvalid', invalidExport(exported));
  const refused = ofKind(outcomes, 'refused');
  const outOfSync = ofKind(outcomes, 'outOfSync');
  if (refused[0])
    return conditionFalse(schemaInSync, 'Error', refused[0].reason, messagesOf([...refused, ...outOfSync]));
  if (outOfSync[0]) return conditionFalse(schemaInSync, 'Warning', outOfSync[0].reason, messagesOf(outOfSync));
  return outcomes.some(({ kind }) => kind === 'conflict') ? undefined : conditionTrue(schemaInSync);
}

function ofKind<Kind extends CrdOutcome['kind']>(outcomes: readonly CrdOutcome[], kind: Kind) {
  return outcomes.filter((outcome): outcome is Extract<CrdOutcome, { kind: Kind }> => outcome.kind === kind);
}

const messagesOf = (outcomes: readonly { readonly message: string }[]): string =>
  outcomes.map(({ message }) => message).join('. ');

/** The provider chooses how many there are. */
function joinFirst(texts: readonly string[], separator: string): string {
  const more = texts.length - maxNamed;
  return [...texts.slice(0, maxNamed), ...(more > 0 ? [`and ${more} more`] : [])].join(separator);
}
