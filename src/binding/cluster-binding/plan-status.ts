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

/** What the provider is promised, as Go writes it. */
const heartbeatInterval = '5m0s';
/** A heartbeat is written when the last one is so old, milliseconds. */
export const beatMs = 150_000;

/** Ours, on ClusterBindings: there while another konnector reports to the same one, or seems to. */
export const soleKonnector = 'SoleKonnector';

export interface SecretName {
  readonly namespace: string;
  readonly name: string;
}

export interface StatusInput {
  readonly view: ClusterBindingView;
  /** The Secrets that a kubeconfig of this very place came from; the first is the one to name. */
  readonly secrets: readonly SecretName[];
  /** What came of copying the provider's Secret; undefined when that is not known this time. */
  readonly secretValid: BindConditionUpdate | undefined;
  /** Version of this program. */
  readonly version: string;
  /** Who else reports to this ClusterBinding; undefined when nobody was noticed. */
  readonly conflict: ConflictingKonnector | undefined;
  readonly nowMs: number;
}

/** What tells that a ClusterBinding is not ours alone. */
export interface ConflictingKonnector {
  readonly reason: 'AnotherKonnector' | 'ForeignConsumerSecret';
  readonly message: string;
}

export interface StatusPlan {
  /** The fields of status that have to change; absent when none has. */
  readonly status?: StatusPatch;
  /** Until the next heartbeat is due, milliseconds. */
  readonly dueInMs: number;
}

export interface StatusPatch {
  lastHeartbeatTime?: string;
  heartbeatInterval?: string;
  konnectorVersion?: string;
  consumerSecretRef?: SecretName;
  conditions?: BindCondition[];
}

/**
 * What a ClusterBinding should say of this konnector. Only a heartbeat takes over one that names somebody else's Secret, and only with a
 * heartbeat is it said that we are alone again: two konnectors that share one then write in turns of minutes instead of answering each
 * other at once.
 */
export function planStatus(input: StatusInput): StatusPlan {
  const { view, secrets, nowMs } = input;
  const dueInMs = untilBeat(view.lastHeartbeatTime, nowMs);
  const recorded = view.consumerSecretRef;
  const ours = recorded === undefined || includesSecret(secrets, recorded);
  if (!ours && dueInMs > 0) return { ...planBesideAnother(input), dueInMs };

  const status: StatusPatch = {};
  const [consumerSecretRef] = secrets;
  const version = konnectorVersion(input.version) ?? 'unknown';
  const conditions = conditionsOf(input, dueInMs <= 0);
  if (consumerSecretRef && (!ours || !recorded)) status.consumerSecretRef = consumerSecretRef;
  if (view.heartbeatInterval !== heartbeatInterval) status.heartbeatInterval = heartbeatInterval;
  if (dueInMs <= 0) status.lastHeartbeatTime = formatTime(nowMs);
  if (view.konnectorVersion !== version) status.konnectorVersion = version;
  if (!sameConditions(conditions, view.conditions)) status.conditions = conditions;
  if (Object.keys(status).length === 0) return { dueInMs };
  return { status, dueInMs: dueInMs > 0 ? dueInMs : beatMs };
}

export const includesSecret = (secrets: readonly SecretName[], { namespace, name }: SecretName): boolean =>
  secrets.some((secret) => secret.namespace === namespace && secret.name === name);

/** The rest of the status is the other one's for now. */
function planBesideAnother({ view, conflict, nowMs }: StatusInput): { readonly status?: StatusPatch } {
  const told = findCondition(view.conditions, soleKonnector)?.status === 'False';
  if (!conflict || told) return {};
  return { status: { conditions: setConditionsAndReady(view.conditions, [conflictCondition(conflict)], nowMs) } };
}

function conditionsOf({ view, secretValid, version, conflict, nowMs }: StatusInput, beats: boolean): BindCondition[] {
  const updates: BindConditionUpdate[] = [
    ...(secretValid ? [secretValid] : []),
    konnectorVersion(version) === undefined
      ? conditionFalse(bindConditions.validVersion, 'Warning', 'ParseError', `${quote(version)} is not a version`)
      : conditionTrue(bindConditions.validVersion),
    ...(conflict === undefined ? [] : [conflictCondition(conflict)]),
  ];
  const kept = view.conditions.filter(({ type }) => type !== soleKonnector || conflict !== undefined || !beats);
  return setConditionsAndReady(kept, updates, nowMs);
}

const conflictCondition = ({ reason, message }: ConflictingKonnector): BindConditionUpdate =>
  conditionFalse(soleKonnector, 'Warning', reason, message);

/** A time in the future says nothing, unless the clocks merely differ a little. */
function untilBeat(last: string | undefined, nowMs: number): number {
  const lastMs = last === undefined ? undefined : parseTime(last);
  if (lastMs === undefined || lastMs - nowMs > beatMs) return 0;
  return Math.max(0, Math.ceil(lastMs + beatMs - nowMs));
}

/** `v0.1.0` out of `0.1.0`, `v0.1.0-rc.1` or `v0.1.0+build`: what backends and kubectl plugins compare. Undefined when it is no version. */
export function konnectorVersion(version: string): string | undefined {
  const [, numbers] = /^v?(\d+\.\d+\.\d+)(?:[-+][0-9A-Za-z.+-]+)?$/.exec(version) ?? [];
  return numbers === undefined ? undefined : `v${numbers}`;
}
