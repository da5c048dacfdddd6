import type { BindCondition } from '../../api/binding/condition.ts';
import { bindConditions } from '../../api/binding/names.ts';
import { sameConditions } from '../../api/conditions.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import {
  type BindConditionUpdate,
  conditionFalse,
  conditionTrue,
  findCondition,
  setConditionsAndReady,
} from '../conditions.ts';
import type { ClusterBindingView } from '../stores/provider-stores.ts';

/** The heartbeat interval that the konnector promises in the status, as a Go duration. */
const heartbeatInterval = '5m0s';
/** Age of the last heartbeat at which the next heartbeat is due, milliseconds. */
export const heartbeatDueMs = 150_000;

/**
 * Condition type of drawbridge on ClusterBindings. It is False while another konnector seems to report to the same ClusterBinding. At other
 * times, the condition does not exist.
 */
export const soleKonnector = 'SoleKonnector';

/** Namespace and name of a Secret. */
export interface SecretName {
  readonly namespace: string;
  readonly name: string;
}

/** The input of `planStatus`. */
export interface StatusInput {
  readonly view: ClusterBindingView;
  /**
   * The consumer's kubeconfig Secrets for this ClusterBinding. If the status names no Secret, the plan writes the first one at once. If the
   * status names a foreign Secret, one that is not in this list, the plan writes the first one with the next heartbeat.
   */
  readonly secrets: readonly SecretName[];
  /** Result of copying the provider's Secret; undefined if the copy failed. The condition then stays. */
  readonly secretValid: BindConditionUpdate | undefined;
  /** Version of drawbridge. */
  readonly version: string;
  /** Another konnector that reports to this ClusterBinding; undefined if none was detected. */
  readonly conflict: ConflictingKonnector | undefined;
  /** Epoch milliseconds. */
  readonly nowMs: number;
}

/** Evidence that another konnector uses the ClusterBinding. */
export interface ConflictingKonnector {
  readonly reason: 'AnotherKonnector' | 'ForeignConsumerSecret';
  readonly message: string;
}

/** The write that is due, and the time until the next heartbeat. */
export interface StatusPlan {
  /** The fields of the status to change; absent if none. */
  readonly status?: StatusPatch;
  /** Time until the next heartbeat is due, milliseconds. */
  readonly dueInMs: number;
}

/** Fields of the status of a ClusterBinding; absent fields stay. */
export interface StatusPatch {
  lastHeartbeatTime?: string;
  heartbeatInterval?: string;
  konnectorVersion?: string;
  consumerSecretRef?: SecretName;
  conditions?: BindCondition[];
}

/**
 * Plans the status of a ClusterBinding. Only a heartbeat replaces a foreign Secret in the status, and only a heartbeat removes the
 * condition about another konnector. So two konnectors that share a ClusterBinding alternate every few minutes instead of overwriting each
 * other at once.
 */
export function planStatus(input: StatusInput): StatusPlan {
  const { view, secrets, nowMs } = input;
  const dueInMs = msUntilHeartbeat(view.lastHeartbeatTime, nowMs);
  const recorded = view.consumerSecretRef;
  const isForeign = recorded !== undefined && !includesSecret(secrets, recorded);
  if (isForeign && dueInMs > 0) return { ...planConflictOnly(input), dueInMs };

  const status: StatusPatch = {};
  const [consumerSecretRef] = secrets;
  const version = comparableVersion(input.version) ?? 'unknown';
  const conditions = conditionsOf(input, dueInMs <= 0);
  if (consumerSecretRef && (isForeign || !recorded)) status.consumerSecretRef = consumerSecretRef;
  if (view.heartbeatInterval !== heartbeatInterval) status.heartbeatInterval = heartbeatInterval;
  if (dueInMs <= 0) status.lastHeartbeatTime = formatTime(nowMs);
  if (view.konnectorVersion !== version) status.konnectorVersion = version;
  if (!sameConditions(conditions, view.conditions)) status.conditions = conditions;
  if (Object.keys(status).length === 0) return { dueInMs };
  return { status, dueInMs: dueInMs > 0 ? dueInMs : heartbeatDueMs };
}

export const includesSecret = (secrets: readonly SecretName[], { namespace, name }: SecretName): boolean =>
  secrets.some((secret) => secret.namespace === namespace && secret.name === name);

/** Plans only the condition about the conflict. The other fields belong to the other konnector until this server's next heartbeat. */
function planConflictOnly({ view, conflict, nowMs }: StatusInput): { readonly status?: StatusPatch } {
  const isReported = findCondition(view.conditions, soleKonnector)?.status === 'False';
  if (!conflict || isReported) return {};
  return { status: { conditions: setConditionsAndReady(view.conditions, [conflictCondition(conflict)], nowMs) } };
}

function conditionsOf(
  { view, secretValid, version, conflict, nowMs }: StatusInput,
  isHeartbeat: boolean,
): BindCondition[] {
  const updates: BindConditionUpdate[] = [
    ...(secretValid ? [secretValid] : []),
    comparableVersion(version) === undefined
      ? conditionFalse(
          bindConditions.validVersion,
          'Warning',
          'ParseError',
          `the konnector's version ${quote(version)} is not a semantic version such as 1.2.3; install a release of drawbridge`,
        )
      : conditionTrue(bindConditions.validVersion),
    ...(conflict === undefined ? [] : [conflictCondition(conflict)]),
  ];
  const kept = view.conditions.filter(({ type }) => type !== soleKonnector || conflict !== undefined || !isHeartbeat);
  return setConditionsAndReady(kept, updates, nowMs);
}

const conflictCondition = ({ reason, message }: ConflictingKonnector): BindConditionUpdate =>
  conditionFalse(soleKonnector, 'Warning', reason, message);

/** Milliseconds until the next heartbeat; 0 if `last` is undefined, invalid, at least 150 s ago, or more than 150 s in the future. */
function msUntilHeartbeat(last: string | undefined, nowMs: number): number {
  const lastMs = last === undefined ? undefined : parseTime(last);
  if (lastMs === undefined || lastMs - nowMs > heartbeatDueMs) return 0;
  return Math.max(0, Math.ceil(lastMs + heartbeatDueMs - nowMs));
}

/**
 * `version` in the form that backends and kubectl plugins can compare, without pre-release and build: `v0.1.0` for `0.1.0`, `v0.1.0-rc.1`,
 * and `v0.1.0+build`. Undefined if `version` is no semantic version.
 */
export function comparableVersion(version: string): string | undefined {
  const [, numbers] = /^v?(\d+\.\d+\.\d+)(?:[-+][0-9A-Za-z.+-]+)?$/.exec(version) ?? [];
  return numbers === undefined ? undefined : `v${numbers}`;
}
