import type { BindCondition } from '../../api/binding/condition.ts';
import { bindConditions } from '../../api/binding/names.ts';
import { sameConditions } from '../../api/conditions.ts';
import type { ObjectName } from '../../api/object.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import { type BindConditionUpdate, conditionFalse, conditionTrue, setConditionsAndReady } from '../conditions.ts';
import type { ClusterBindingView } from '../stores/provider-stores.ts';

/** Promised in the status, as a Go duration. */
const heartbeatInterval = '5m0s';
/** Age of the last heartbeat at which the next one is due. */
export const heartbeatDueMs = 150_000;

export type SecretName = Required<ObjectName>;

export interface StatusInput {
  readonly view: ClusterBindingView;
  /** The first is written if the status names none, or a foreign one at the next heartbeat. */
  readonly secrets: readonly SecretName[];
  /** Result of the copy of the provider's Secret. Undefined if it failed: the condition stays. */
  readonly secretValid: BindConditionUpdate | undefined;
  readonly version: string;
  readonly nowMs: number;
}

export interface StatusPlan {
  readonly status?: StatusPatch;
  readonly dueInMs: number;
}

/** Absent fields stay. */
export interface StatusPatch {
  lastHeartbeatTime?: string;
  heartbeatInterval?: string;
  konnectorVersion?: string;
  consumerSecretRef?: SecretName;
  conditions?: BindCondition[];
}

/**
 * Plans the status of a ClusterBinding. Only a heartbeat replaces a foreign Secret, so that two
 * konnectors alternate every few minutes instead of fighting at once.
 */
export function planStatus(input: StatusInput): StatusPlan {
  const { view, secrets, nowMs } = input;
  const dueInMs = msUntilHeartbeat(view.lastHeartbeatTime, nowMs);
  const recorded = view.consumerSecretRef;
  const isForeign = recorded !== undefined && !includesSecret(secrets, recorded);
  if (isForeign && dueInMs > 0) return { dueInMs };

  const status: StatusPatch = {};
  const [consumerSecretRef] = secrets;
  const version = comparableVersion(input.version) ?? 'unknown';
  const conditions = conditionsOf(input);
  if (consumerSecretRef && (isForeign || !recorded)) status.consumerSecretRef = consumerSecretRef;
  if (view.heartbeatInterval !== heartbeatInterval) status.heartbeatInterval = heartbeatInterval;
  if (dueInMs <= 0) status.lastHeartbeatTime = formatTime(nowMs);
  if (view.konnectorVersion !== version) status.konnectorVersion = version;
  if (!sameConditions(conditions, view.conditions)) status.conditions = conditions;
  if (Object.keys(status).length === 0) return { dueInMs };
  return { status, dueInMs: dueInMs > 0 ? dueInMs : heartbeatDueMs };
}

const includesSecret = (secrets: readonly SecretName[], { namespace, name }: SecretName): boolean =>
  secrets.some((secret) => secret.namespace === namespace && secret.name === name);

function conditionsOf({ view, secretValid, version, nowMs }: StatusInput): BindCondition[] {
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
  ];
  return setConditionsAndReady(view.conditions, updates, nowMs);
}

/** 0 also if `last` is invalid, or more than 150 s in the future. */
function msUntilHeartbeat(last: string | undefined, nowMs: number): number {
  const lastMs = last === undefined ? undefined : parseTime(last);
  if (lastMs === undefined || lastMs - nowMs > heartbeatDueMs) return 0;
  return Math.max(0, Math.ceil(lastMs + heartbeatDueMs - nowMs));
}

/** As backends and kubectl plugins compare versions: `v0.1.0` for `0.1.0` and `v0.1.0-rc.1`. */
export function comparableVersion(version: string): string | undefined {
  const [, numbers] = /^v?(\d+\.\d+\.\d+)(?:[-+][0-9A-Za-z.+-]+)?$/.exec(version) ?? [];
  return numbers === undefined ? undefined : `v${numbers}`;
}
